"use strict";

const shade = document.querySelector(".shade");
document.querySelector(".open").addEventListener("click", () => shade.classList.add("show"));
document.querySelector(".no").addEventListener("click", () => shade.classList.remove("show"));
document.querySelector(".yes").addEventListener("click", () => {
  shade.classList.remove("show");
  document.querySelector(".usage").textContent = "You use 6 of 20 GB.";
  document.querySelector(".fill").style.width = "30%";
});
