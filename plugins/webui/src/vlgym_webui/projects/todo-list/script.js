"use strict";

const jobs = document.querySelector(".jobs");
jobs.addEventListener("click", (event) => {
  if (event.target.classList.contains("job")) event.target.classList.toggle("done");
});
document.querySelector(".add").addEventListener("click", () => {
  const input = document.querySelector(".new");
  if (!input.value.trim()) return;
  const job = document.querySelector(".job").cloneNode();
  job.className = "job";
  job.textContent = input.value;
  jobs.append(job);
  input.value = "";
});
