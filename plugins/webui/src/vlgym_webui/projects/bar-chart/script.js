"use strict";

const tip = document.querySelector(".tip");
document.querySelectorAll(".bar").forEach((bar, i) => {
  bar.addEventListener("mouseenter", () => {
    tip.style.display = "block";
    tip.textContent = bar.dataset.count + " on " + document.querySelectorAll(".day")[i].textContent;
  });
  bar.addEventListener("mouseleave", () => { tip.style.display = "none"; });
});
