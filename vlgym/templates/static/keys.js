// Keys: an arrow follows the link that names it (data-key), space plays. Lists ask for news while they can be seen.
(() => {
  const STEP = 700; // milliseconds between turns while playing
  let timer = null;

  const show = () => {
    for (const button of document.querySelectorAll("[data-play]")) {
      button.hidden = false;
      button.textContent = timer ? "❚❚ pause" : "▶ play";
    }
  };
  const stop = () => { clearInterval(timer); timer = null; show(); };
  const step = () => {
    const link = document.querySelector('[data-key="ArrowRight"]');
    if (link) link.click(); else stop();
  };
  const toggle = () => {
    if (timer) { stop(); return; }
    timer = setInterval(step, STEP);
    show();
    step();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (event.key === " ") {
      if (!document.querySelector("[data-play]") || event.target.closest("button, summary, a")) return;
      event.preventDefault();
      toggle();
      return;
    }
    const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (link) {
      event.preventDefault();
      stop();
      link.click();
    }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-play]")) toggle();
  });
  document.addEventListener("htmx:afterSwap", () => { // a new turn brings a new button
    show();
    const now = document.querySelector(".film [aria-current]");
    if (now) now.scrollIntoView({ block: "nearest", inline: "center" });
  });

  setInterval(() => {
    const list = document.querySelector("[data-poll]");
    if (list && !document.hidden && window.htmx) htmx.trigger(list, "poll");
  }, 2000);
  show();
})();
