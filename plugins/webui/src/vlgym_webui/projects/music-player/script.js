"use strict";

const songs = [["Night Ferry", "linear-gradient(135deg, #f43f5e, #7c3aed)"], ["Salt and Smoke", "linear-gradient(135deg, #0ea5e9, #22c55e)"]];
let song = 0, width = 25;
const fill = document.querySelector(".fill");
const play = document.querySelector(".play");
play.addEventListener("click", () => {
  play.classList.toggle("playing");
  play.textContent = play.classList.contains("playing") ? "Stop" : "Play";
});
setInterval(() => {
  if (!play.classList.contains("playing")) return;
  width = Math.min(100, width + 5);
  fill.style.width = width + "%";
}, 1000);
document.querySelector(".skip").addEventListener("click", () => {
  song = 1 - song;
  width = 0;
  fill.style.width = "2%";
  document.querySelector(".song").textContent = songs[song][0];
  document.querySelector(".cover").style.background = songs[song][1];
});
