"use strict";

let from = 0, to = 0;
const days = document.querySelectorAll(".day");
days.forEach((day, i) => day.addEventListener("click", () => {
  const number = i + 1;
  if (!from || to || number <= from) { from = number; to = 0; } else { to = number; }
  days.forEach((other, j) => {
    other.classList.toggle("end", j + 1 === from || j + 1 === to);
    other.classList.toggle("between", to > 0 && j + 1 > from && j + 1 < to);
  });
  document.querySelector(".line").textContent = to ? to - from + " nights from " + from + " February" : "Choose your departure";
}));
