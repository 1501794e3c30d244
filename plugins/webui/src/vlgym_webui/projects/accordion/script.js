"use strict";

document.querySelectorAll(".question").forEach((question) => question.addEventListener("click", () => {
  document.querySelectorAll(".box").forEach((box) => {
    box.classList.toggle("open", box === question.parentElement && !box.classList.contains("open"));
  });
}));
