"use strict";

const notes = {
  save: ["All changes are saved.", "#16a34a"],
  warn: ["Reactor 2 runs warm.", "#d97706"],
  fail: ["Pump 7 does not answer.", "#dc2626"],
};
document.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => {
  const [text, color] = notes[button.className];
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.dataset.filterBy = "text";
  toast.dataset.evalby = "text|color|background-color|border-left|border-radius|width|height";
  toast.textContent = text;
  toast.style.borderLeftColor = color;
  document.querySelector(".stack").append(toast);
  setTimeout(() => toast.remove(), 6000);
}));
