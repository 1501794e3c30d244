"use strict";

const figures = { today: ["Today", "1,240", "860", "312", "47"], stock: ["Stock", "18,400", "9,120", "2,065", "0"] };
for (const page of ["today", "stock"]) {
  document.querySelector("." + page).addEventListener("click", () => {
    document.querySelectorAll(".entry").forEach((entry) => entry.classList.toggle("on", entry.classList.contains(page)));
    document.querySelector(".head").textContent = figures[page][0];
    document.querySelectorAll(".figure").forEach((figure, i) => { figure.textContent = figures[page][i + 1]; });
  });
}
