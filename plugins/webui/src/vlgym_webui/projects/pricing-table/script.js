"use strict";

const period = document.querySelector(".period");
const prices = document.querySelectorAll(".price");
period.addEventListener("click", () => {
  const yearly = period.textContent === "Bill yearly";
  period.textContent = yearly ? "Bill monthly" : "Bill yearly";
  const list = yearly ? ["$0", "$120", "$290"] : ["$0", "$12", "$29"];
  prices.forEach((price, i) => { price.textContent = list[i]; });
});
