"use strict";

const display = document.querySelector(".display");
let left = 0, operator = "", fresh = true;
const work = { "+": (a, b) => a + b, "-": (a, b) => a - b, x: (a, b) => a * b, "/": (a, b) => a / b };
document.querySelectorAll(".key").forEach((key) => key.addEventListener("click", () => {
  const sign = key.textContent;
  const value = Number(display.textContent);
  if (sign >= "0" && sign <= "9") {
    display.textContent = fresh ? sign : display.textContent + sign;
    fresh = false;
  } else if (sign === "C") {
    display.textContent = "0";
    operator = "";
    fresh = true;
  } else {
    if (operator) display.textContent = String(work[operator](left, value));
    left = Number(display.textContent);
    operator = sign === "=" ? "" : sign;
    fresh = true;
  }
}));
