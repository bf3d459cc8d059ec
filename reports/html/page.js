"use strict";

const say = (text) => {
  const place = document.getElementById("said");
  place.textContent = "";
  clearTimeout(say.later);
  requestAnimationFrame(() => { place.textContent = text; });
  say.later = setTimeout(() => { place.textContent = ""; }, 6000);
};

const select = (element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
};

const copy = async (button) => {
  const text = button.dataset.copy;
  const source = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied: ${text}`);
    return;
  } catch {
    select(source);
  }
  let done = false;
  try { done = document.execCommand("copy"); } catch { done = false; }
  say(done ? `Copied: ${text}` : "Selected: press Ctrl+C or Cmd+C to copy.");
};

// What needs a script shows where one runs.
for (const one of document.querySelectorAll(".live")) one.hidden = false;

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", () => copy(button));
}

// One Tab stop a bar; the arrow keys go from part to part.
for (const bar of document.querySelectorAll("svg.bar")) {
  const parts = [...bar.querySelectorAll(".part")];
  const told = bar.parentElement.querySelector(".told");
  const tell = (part) => { if (told) told.textContent = part.dataset.say; };
  const go = (place) => {
    const next = parts[Math.max(0, Math.min(parts.length - 1, place))];
    for (const part of parts) part.setAttribute("tabindex", part === next ? "0" : "-1");
    next.focus();
  };
  parts.forEach((part, place) => {
    part.setAttribute("tabindex", place === 0 ? "0" : "-1");
    part.addEventListener("pointerenter", () => tell(part));
    part.addEventListener("click", () => tell(part));
    part.addEventListener("focus", () => tell(part));
    part.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: parts.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      go(moves[event.key]);
    });
  });
}

// Only what scrolls is a Tab stop.
const scrolls = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", "0");
    else target.removeAttribute("tabindex");
  }
});
for (const one of document.querySelectorAll(".scroll")) scrolls.observe(one);

// What is folded is printed too.
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true;
});
window.addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
