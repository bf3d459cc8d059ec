(() => {
  const steps = all(".step"), bar = document.querySelector("#step-bar .strip");
  const told = document.querySelector(".after-ticks");

  // One framework's spelling a card; where a change has none in it, those that it has.
  const choose = (id) => {
    for (const step of steps) {
      const spellings = all(".spelling", step);
      const has = spellings.some((one) => one.dataset.framework === id);
      spellings.forEach((one, place) => { one.hidden = has ? one.dataset.framework !== id : place > 0; });
    }
    for (const button of all(".switch button")) button.setAttribute("aria-pressed", String(button.dataset.id === id));
  };
  const names = new Map();
  for (const one of all(".spelling")) names.set(one.dataset.framework, one.dataset.name);
  for (const place of all(".switch")) {
    place.hidden = names.size < 2;
    for (const [id, name] of names) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.id = id;
      button.textContent = name;
      button.addEventListener("click", () => choose(id));
      place.append(button);
    }
  }
  if (names.size) choose(names.keys().next().value);

  // What the ticked changes win together is what was replayed together, never a sum.
  const replayed = new Map(JSON.parse(document.getElementById("plan-data").textContent).map(
    ([ids, low, high]) => [[...ids].sort().join(" "), [low, high]],
  ));
  const share = (value) => `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`;
  const range = ([low, high]) => (share(low) === share(high) ? share(high) : `${share(low)} to ${share(high)}`);
  const piece = (name, from, to) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("class", name);
    rect.setAttribute("x", `${100 * from}%`);
    rect.setAttribute("width", `${100 * (to - from)}%`);
    rect.setAttribute("height", "44");
    return rect;
  };
  const shrink = (gain) => {
    if (!bar) return;
    const groups = all(":scope > g", bar);
    for (const one of all(":scope > .won, :scope > .may", bar)) one.remove();
    const left = gain ? 1 - gain[0] : 1;
    for (const group of groups) {
      for (const one of group.children) {
        if (one.tagName === "title") continue;
        for (const name of ["x", "width"]) {
          const whole = (one.dataset[name] ??= one.getAttribute(name));
          one.setAttribute(name, `${parseFloat(whole) * left}%`);
        }
      }
    }
    if (gain) bar.append(piece("may", 1 - gain[1], left), piece("won", left, 1));
  };
  const tick = () => {
    const ids = all("[data-tick]:checked").map((one) => one.dataset.tick).sort();
    const gain = replayed.get(ids.join(" "));
    told.textContent = !ids.length ? "" : gain
      ? `With ${ids.join(", ")} the step would be ${range(gain)} shorter, by replay of ${ids.length > 1 ? "all of them together" : "this change"}.`
      : `${ids.join(" with ")}: not replayed, so what ${ids.length > 1 ? "they win together" : "it wins"} is unknown; gains of single changes do not add up.`;
    told.hidden = !ids.length;
    told.classList.toggle("unknown", !gain);
    shrink(gain);
  };
  for (const one of all("[data-tick]")) one.addEventListener("change", tick);
  tick();
})();
