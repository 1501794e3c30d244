"use strict";

const slides = [["#0ea5e9", "Glacier lake"], ["#f97316", "Red canyon"], ["#16a34a", "Fern valley"]];
let current = 0;
function show(number) {
  current = (number + slides.length) % slides.length;
  document.querySelector(".slider").style.background = slides[current][0];
  document.querySelector(".title").textContent = slides[current][1];
  document.querySelectorAll(".dot").forEach((dot, i) => dot.classList.toggle("on", i === current));
}
document.querySelector(".next").addEventListener("click", () => show(current + 1));
document.querySelector(".prev").addEventListener("click", () => show(current - 1));
