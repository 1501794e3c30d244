"use strict";

const rows = document.querySelector(".rows");
const value = (row, column) => row.children[column].textContent;
function sort(column, order) {
  [...rows.children].sort((a, b) => order(value(a, column), value(b, column))).forEach((row) => rows.append(row));
}
document.querySelector(".by-crew").addEventListener("click", () => sort(0, (a, b) => a.localeCompare(b)));
document.querySelector(".by-races").addEventListener("click", () => sort(1, (a, b) => b - a));
document.querySelector(".by-points").addEventListener("click", () => sort(2, (a, b) => b - a));
