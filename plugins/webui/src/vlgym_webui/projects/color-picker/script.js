"use strict";

const codes = { s1: "#264653", s2: "#2a9d8f", s3: "#e9c46a", s4: "#f4a261", s5: "#e76f51" };
const names = { s1: "Deep sea", s2: "Lagoon", s3: "Straw", s4: "Apricot", s5: "Terracotta" };
document.querySelectorAll(".swatch").forEach((swatch) => swatch.addEventListener("click", () => {
  const key = swatch.classList[1];
  document.querySelector(".preview").style.background = codes[key];
  document.querySelector(".code").textContent = codes[key];
  document.querySelector(".hint").textContent = names[key];
}));
