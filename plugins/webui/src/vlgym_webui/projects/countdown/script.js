"use strict";

let left = 180, ticking = 0;
const start = document.querySelector(".start");
function show() {
  document.querySelector(".time").textContent = Math.floor(left / 60) + ":" + String(left % 60).padStart(2, "0");
}
function stop() {
  clearInterval(ticking);
  ticking = 0;
  start.textContent = "Start";
}
start.addEventListener("click", () => {
  if (ticking) { stop(); return; }
  start.textContent = "Pause";
  ticking = setInterval(() => { left -= 1; show(); }, 1000);
});
document.querySelector(".reset").addEventListener("click", () => { stop(); left = 180; show(); });
