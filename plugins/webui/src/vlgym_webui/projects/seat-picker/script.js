"use strict";

document.querySelectorAll(".seat").forEach((seat) => seat.addEventListener("click", () => {
  if (seat.classList.contains("taken")) return;
  seat.classList.toggle("mine");
  const count = document.querySelectorAll(".mine").length;
  document.querySelector(".sum").textContent = count ? count + " seats, " + count * 11 + " euros" : "No seats chosen";
}));
