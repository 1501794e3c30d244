"use strict";

let done = false;
document.querySelectorAll(".answer").forEach((answer) => answer.addEventListener("click", () => {
  if (done) return;
  done = true;
  answer.classList.add("wrong");
  document.querySelector("#a2").classList.remove("wrong");
  document.querySelector("#a2").classList.add("right");
  document.querySelector(".note").textContent = answer.id === "a2" ? "Right!" : "It is Venus: 243 of our days.";
}));
