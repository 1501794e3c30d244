"use strict";

const prices = { honey: 6, cherry: 4 };
const rows = document.querySelectorAll(".row");
function change(row, by) {
  const count = row.querySelector(".count");
  count.textContent = Math.max(0, Number(count.textContent) + by);
  let total = 0;
  rows.forEach((one) => { total += prices[one.classList[1]] * Number(one.querySelector(".count").textContent); });
  document.querySelector(".total").textContent = total;
}
rows.forEach((row) => {
  row.querySelector(".minus").addEventListener("click", () => change(row, -1));
  row.querySelector(".plus").addEventListener("click", () => change(row, 1));
});
