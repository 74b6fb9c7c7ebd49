// Keys; every page works without it.
"use strict";

addEventListener("keydown", (event) => {
  const field = document.querySelector("[data-key='/']");
  const isTyping = event.target.closest("input, textarea, select");
  if (event.key === "/" && field && !isTyping) {
    event.preventDefault();
    field.select();
  } else if (event.key === "e" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const parts = [...document.querySelectorAll("details.parts")];
    const open = parts.some((one) => !one.open);
    parts.forEach((one) => { one.open = open; });
  }
});
