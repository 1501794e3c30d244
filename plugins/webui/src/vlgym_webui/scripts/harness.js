// Runs in every document, in a world of its own that the page's scripts cannot reach or change: it holds back a page that leaves,
// brings animations to rest, and finds, measures and reads elements.
(() => {
  "use strict";
  const counts = { left_page: 0, download: 0 };
  const home = location.origin;
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[download]") : null;
    if (link) { counts.download += 1; event.preventDefault(); }
  }, true);
  if (window === window.top) {
    // It is held back, so that this is known from the event, whatever the machine is doing, and not from a race between the new
    // document and the reading of the old one; nor has the browser to start a process for an error page.
    navigation.addEventListener("navigate", (event) => {
      const { protocol, origin } = new URL(event.destination.url);
      const source = event.sourceElement;
      // Other schemes (file, data, mailto) and forms sent elsewhere lead nowhere: the browser refuses them and the page stays.
      const form = source instanceof HTMLFormElement || Boolean(source && source.form);
      const leaves = protocol === "http:" || protocol === "https:" || protocol === "about:";
      if (leaves && !form && origin !== home) { counts.left_page += 1; event.preventDefault(); }
    });
  }

  // Time as the page has it, and what was held back so far. (Loading ends with the load event.)
  const state = () => ({ now: Date.now(), loaded: document.readyState === "complete", where: location.origin, counts });

  // Bring every animation to its end; an endless one is shown at its beginning. Then wait until it is drawn.
  const rest = async () => {
    for (let round = 0; round < 4; round += 1) {
      const moving = document.getAnimations().filter((animation) => animation.playState === "running");
      if (!moving.length) break;
      for (const animation of moving) {
        try {
          animation.finish();
        } catch {
          animation.pause();
          animation.currentTime = 0;
        }
      }
      await new Promise((go) => requestAnimationFrame(go));
    }
    await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
  };

  const nodes = new WeakMap();
  let serial = 0;
  const number = (element) => {
    if (!nodes.has(element)) nodes.set(element, (serial += 1));
    return nodes.get(element);
  };
  const digest = (text) => {
    let high = 0xdeadbeef, low = 0x41c6ce57;
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      high = Math.imul(high ^ code, 2654435761);
      low = Math.imul(low ^ code, 1597334677);
    }
    return (high >>> 0).toString(16) + "-" + (low >>> 0).toString(16) + "-" + text.length.toString(16);
  };
  // A form's properties may be replaced by its inputs of that name, so nothing is taken for a string unseen.
  const string = (value, most = 2000) => (typeof value === "string" ? value.slice(0, most) : "");
  const ADDRESS = 2000000;
  const displayed = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  // Where a pointer has to go to reach the first displayed element of a selector, or why it cannot.
  const locate = (selector) => {
    const element = [...document.querySelectorAll(selector)].find(displayed);
    if (!element) return { problem: document.querySelector(selector) ? "hidden" : "not_found" };
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const box = element.getBoundingClientRect();
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    if (!(box.width > 0 && box.height > 0)) return { problem: "hidden" };
    const hit = document.elementFromPoint(x, y);
    const labels = element.labels instanceof NodeList ? [...element.labels] : [];
    const near = hit && (hit === element || element.contains(hit) || labels.some((label) => label.contains(hit)));
    return near ? { x, y } : { problem: "covered" };
  };

  // Every displayed element of the body as a row of the element table.
  const read = (properties, most, annotated) => {
    const where = location.origin;
    const view = [scrollX, scrollY];
    if (!document.body) return { where, view, rows: [], left_out: 0 };
    const all = [...document.body.querySelectorAll("*")];
    const inside = new Map();
    for (let i = all.length - 1; i >= 0; i -= 1) {
      const parent = all[i].parentElement;
      inside.set(parent, (inside.get(parent) || 0) + (inside.get(all[i]) || 0) + 1);
    }
    const rows = [];
    let left_out = 0;
    for (const element of all) {
      const box = element.getBoundingClientRect();
      if (!(box.width * box.height > 0.1) || !displayed(element)) continue;
      if (rows.length >= most) { left_out += 1; continue; }
      const computed = getComputedStyle(element);
      const styles = {};
      for (const name of properties) styles[name] = string(computed.getPropertyValue(name), name === "background-image" ? ADDRESS : 2000);
      styles.text = string(element.innerText, 20000).trim().replace(/\s+/g, " ").slice(0, 2000);
      styles.class = string(element.getAttribute("class")).trim();
      styles.placeholder = string(element.placeholder);
      styles.value = string(element.value);
      styles.src = string(element.currentSrc, ADDRESS) || string(element.src, ADDRESS);
      styles.type = string(element.type);
      rows.push({
        node: number(element), tag: element.localName, descendants: inside.get(element) || 0,
        box: [box.left + scrollX, box.top + scrollY, box.width, box.height].map((value) => Math.round(value * 1000) / 1000),
        styles, html: annotated ? digest(element.outerHTML) : "",
        filter_by: annotated ? (element.dataset && element.dataset.filterBy || "").trim() : "",
        eval_by: annotated ? (element.dataset && element.dataset.evalby || "").split("|").map((m) => m.trim()).filter(Boolean) : [],
      });
    }
    return { where, view, rows, left_out };
  };
  globalThis.vlgymHarness = { state, rest, locate, read };
})();
