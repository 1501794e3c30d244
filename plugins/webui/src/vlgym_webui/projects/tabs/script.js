"use strict";

const pages = [
  ["A lamp for late readers", "Warm light, a heavy foot and one quiet switch."],
  ["8 watts, 2700 kelvin", "Steel and oak, 41 cm high, 1.9 kg, two metres of cord."],
  ["4.7 of 5 from 212 owners", "Most liked: the switch. Least liked: the short cord."],
];
const tabs = document.querySelectorAll(".tab");
tabs.forEach((tab, i) => tab.addEventListener("click", () => {
  tabs.forEach((other) => other.classList.toggle("on", other === tab));
  document.querySelector(".head").textContent = pages[i][0];
  document.querySelector(".text").textContent = pages[i][1];
}));
