"use strict";

document.querySelector(".switch").addEventListener("click", () => document.body.classList.toggle("dark"));
