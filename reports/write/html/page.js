"use strict";

const all = (query, within = document) => [...within.querySelectorAll(query)];

const say = (text) => {
  const place = document.getElementById("told");
  place.textContent = "";
  clearTimeout(say.later);
  requestAnimationFrame(() => { place.textContent = text; });
  say.later = setTimeout(() => { place.textContent = ""; }, 5000);
};

const copyText = async (text, source) => {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
    return;
  } catch {
    if (source) window.getSelection().selectAllChildren(source);
  }
  let done = false;
  try { done = Boolean(source) && document.execCommand("copy"); } catch { done = false; }
  say(done ? "Copied." : source ? "Selected: press Ctrl+C or Cmd+C to copy." : text);
};

// What needs a script shows where one runs.
for (const one of all(".live")) one.hidden = false;
for (const button of all("button.copy")) {
  const source = button.parentElement.querySelector("code");
  button.addEventListener("click", () => copyText(source.textContent, source));
}

// Panels become tabs; an address within one opens it, and the folds around it.
const panels = all(".panel");
const strip = document.querySelector(".tabs");
const openTab = (id) => {
  for (const panel of panels) panel.hidden = panel.id !== id;
  for (const tab of all("[role=tab]", strip)) {
    const chosen = tab.dataset.panel === id;
    tab.setAttribute("aria-selected", String(chosen));
    tab.setAttribute("tabindex", chosen ? "0" : "-1");
  }
  document.dispatchEvent(new CustomEvent("tab", { detail: id }));
};
const goTo = (id) => {
  const target = document.getElementById(id), panel = target?.closest(".panel");
  if (!target) return;
  if (panel && strip) openTab(panel.id);
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  (target === panel ? strip : target).scrollIntoView({ block: target === panel ? "nearest" : "start" });
};
if (strip && panels.length) {
  strip.hidden = false;
  strip.setAttribute("role", "tablist");
  strip.setAttribute("aria-label", "Parts of the report");
  for (const panel of panels) {
    const tab = document.createElement("button");
    const heading = panel.querySelector("h2");
    tab.type = "button";
    tab.id = `tab-${panel.id}`;
    tab.textContent = heading.textContent;
    tab.dataset.panel = panel.id;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    panel.classList.add("tabbed");
    tab.addEventListener("click", () => openTab(panel.id));
    strip.append(tab);
  }
  strip.addEventListener("keydown", (event) => {
    const tabs = all("[role=tab]", strip), at = tabs.indexOf(document.activeElement);
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const next = tabs[(moves[event.key] + tabs.length) % tabs.length];
    openTab(next.dataset.panel);
    next.focus();
  });
  openTab(panels[0].id);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  const id = link?.getAttribute("href").slice(1);
  if (id && !link.dataset.wall) requestAnimationFrame(() => goTo(id));
});
if (location.hash.length > 1 && !location.hash.includes("=")) goTo(decodeURIComponent(location.hash.slice(1)));

// The glossary's words beside a term that is pointed at or has the focus.
const tip = document.getElementById("tip");
const showTip = (term) => {
  const entry = document.getElementById(`word-${term.dataset.term}`);
  if (!entry) return;
  const name = document.createElement("b");
  name.textContent = `${term.textContent} (${term.dataset.term})`;
  tip.replaceChildren(name, entry.nextElementSibling.firstChild.textContent);
  tip.hidden = false;
  const at = term.getBoundingClientRect(), wide = tip.offsetWidth;
  const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - wide - 8));
  const above = at.bottom + tip.offsetHeight + 8 > window.innerHeight;
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${(above ? at.top - tip.offsetHeight - 6 : at.bottom + 6) + window.scrollY}px`;
  term.setAttribute("aria-describedby", "tip");
};
const hideTip = () => { tip.hidden = true; };
for (const [show, hide] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  document.addEventListener(show, (event) => { if (event.target.matches?.(".term")) showTip(event.target); });
  document.addEventListener(hide, hideTip);
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

// Long tables are sorted by a click on a column, and searched.
const value = (row, column) => {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace(/[,<>]/g, ""));
  return Number.isNaN(number) ? (text ? text.toLowerCase() : -Infinity) : number;
};
const sortBy = (table, column) => {
  const head = table.tHead.rows[0].cells[column];
  const down = head.getAttribute("aria-sort") !== "descending";
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [value(row, column), row]);
  const order = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
  rows.sort((a, b) => (down ? order(b[0], a[0]) : order(a[0], b[0])));
  table.tBodies[0].append(...rows.map(([, row]) => row));
};
for (const table of all("table.long")) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = cell.textContent;
    cell.replaceChildren(button);
    button.addEventListener("click", () => sortBy(table, column));
  });
  const label = document.createElement("label"), field = document.createElement("input");
  label.className = "find";
  field.type = "search";
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  label.append("Search these rows ", field);
  table.closest(".scroll").before(label);
}

// Only what scrolls is a Tab stop.
const scrolls = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", "0");
    else target.removeAttribute("tabindex");
  }
});
for (const one of all(".scroll, .copied pre")) scrolls.observe(one);

// What is folded is printed too.
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = all("details:not([open])");
  for (const one of folded) one.open = true;
});
window.addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
