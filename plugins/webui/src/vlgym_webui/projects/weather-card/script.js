"use strict";

const unit = document.querySelector(".unit");
unit.addEventListener("click", () => {
  const metric = unit.textContent === "Celsius";
  unit.textContent = metric ? "Fahrenheit" : "Celsius";
  document.querySelector(".degrees").textContent = metric ? "21 C" : "70 F";
  document.querySelector(".value").textContent = metric ? "12 km/h" : "7 mph";
});
