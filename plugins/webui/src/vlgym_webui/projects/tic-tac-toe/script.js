"use strict";

const cells = [...document.querySelectorAll(".cell")];
const turn = document.querySelector(".turn");
const lines = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
let player = "X", over = false;
cells.forEach((cell) => cell.addEventListener("click", () => {
  if (over || cell.textContent) return;
  cell.textContent = player;
  cell.classList.toggle("o", player === "O");
  const line = lines.find((three) => three.every((i) => cells[i].textContent === player));
  if (line) {
    over = true;
    line.forEach((i) => cells[i].classList.add("won"));
    turn.textContent = player + " wins";
    return;
  }
  player = player === "X" ? "O" : "X";
  turn.textContent = player + " to move";
}));
document.querySelector(".new").addEventListener("click", () => {
  cells.forEach((cell) => { cell.textContent = ""; cell.className = "cell"; });
  player = "X";
  over = false;
  turn.textContent = "X to move";
});
