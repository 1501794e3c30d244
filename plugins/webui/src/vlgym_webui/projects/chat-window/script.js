"use strict";

const talk = document.querySelector(".talk");
function say(text, mine) {
  const bubble = talk.querySelector(".bubble").cloneNode();
  bubble.className = mine ? "bubble mine" : "bubble";
  bubble.textContent = text;
  talk.append(bubble);
}
document.querySelector(".send").addEventListener("click", () => {
  const input = document.querySelector(".message");
  if (!input.value) return;
  say(input.value, true);
  input.value = "";
  setTimeout(() => say("How lovely.", false), 2500);
});
