"use strict";

const tours = document.querySelector(".tours");
tours.addEventListener("click", () => {
  tours.classList.toggle("open");
  document.querySelector(".menu").classList.toggle("open");
});
