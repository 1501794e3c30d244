"use strict";

const words = ["Awful", "Weak", "Fine", "Lovely", "Unforgettable"];
const stars = document.querySelectorAll(".star");
stars.forEach((star, i) => star.addEventListener("click", () => {
  stars.forEach((other, j) => other.classList.toggle("on", j <= i));
  document.querySelector(".word").textContent = words[i];
}));
