"use strict";

const error = document.querySelector(".error");
document.querySelector(".send").addEventListener("click", () => {
  const email = document.querySelector(".email").value;
  const good = email.includes("@");
  error.className = "error show";
  error.dataset.filterBy = "text";
  error.dataset.evalby = "text|color|background-color|border-radius|font-size";
  error.textContent = good ? "Please enter a password." : "This is not an email address.";
});
