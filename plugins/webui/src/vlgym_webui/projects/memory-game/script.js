"use strict";

const faces = "ABCACDBD";
const cards = [...document.querySelectorAll(".card")];
let open = [], tries = 0;
cards.forEach((card, i) => card.addEventListener("click", () => {
  if (open.length === 2 || card.classList.contains("up") || card.classList.contains("found")) return;
  card.classList.add("up");
  card.textContent = faces[i];
  open.push(card);
  if (open.length < 2) return;
  tries += 1;
  document.querySelector(".tries").textContent = tries + " tries";
  const [a, b] = open;
  if (a.textContent === b.textContent) {
    [a, b].forEach((one) => { one.className = "card found"; });
    open = [];
  } else {
    setTimeout(() => {
      [a, b].forEach((one) => { one.className = "card"; one.textContent = "?"; });
      open = [];
    }, 3000);
  }
}));
