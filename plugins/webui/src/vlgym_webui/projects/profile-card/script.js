"use strict";

const button = document.querySelector(".follow");
button.addEventListener("click", () => {
  button.classList.toggle("on");
  button.textContent = button.classList.contains("on") ? "Following" : "Follow";
  document.querySelectorAll(".figure b")[2].textContent = button.classList.contains("on") ? "9001" : "9k";
});
