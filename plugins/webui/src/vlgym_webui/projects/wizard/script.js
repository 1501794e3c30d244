"use strict";

const pages = [
  ["Choose a cake", "Lemon, poppy seed or plain."],
  ["Where to?", "We deliver by bicycle, within five miles."],
  ["All set", "Your cake leaves the oven on Friday at nine."],
];
let page = 0;
function show(next) {
  page = Math.min(2, Math.max(0, next));
  document.querySelectorAll(".mark").forEach((mark, i) => mark.classList.toggle("on", i <= page));
  document.querySelectorAll(".bar").forEach((bar, i) => bar.classList.toggle("on", i < page));
  document.querySelector(".head").textContent = pages[page][0];
  document.querySelector(".line").textContent = pages[page][1];
  document.querySelector(".next").textContent = page === 2 ? "Done" : "Next";
}
document.querySelector(".next").addEventListener("click", () => show(page + 1));
document.querySelector(".back").addEventListener("click", () => show(page - 1));
