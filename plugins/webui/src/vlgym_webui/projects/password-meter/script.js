"use strict";

const colors = ["#ede9fe", "#ef4444", "#f59e0b", "#22c55e"];
const words = ["Empty", "Weak", "Fair", "Strong"];
document.querySelector(".secret").addEventListener("input", (event) => {
  const text = event.target.value;
  const long = text.length >= 8, digit = /[0-9]/.test(text);
  const level = text ? 1 + long + digit : 0;
  document.querySelector(".long").classList.toggle("met", long);
  document.querySelector(".digit").classList.toggle("met", digit);
  document.querySelectorAll(".bar").forEach((bar, i) => { bar.style.background = i < level ? colors[level] : colors[0]; });
  document.querySelector(".word").textContent = words[level];
});
