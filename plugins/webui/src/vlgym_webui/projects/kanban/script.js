"use strict";

document.querySelectorAll(".card").forEach((card) => card.addEventListener("click", () => {
  const next = card.parentElement.nextElementSibling;
  if (next) next.append(card);
}));
