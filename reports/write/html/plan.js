(() => {
  const steps = all(".step"), bar = document.querySelector("#step-bar .strip");
  const told = document.querySelector(".after-ticks");

  // One framework's spelling a card, with the environment that all need; where it has none in it, its first.
  const inEvery = (one) => one.dataset.framework === "environment";
  const choose = (id) => {
    for (const step of steps) {
      const spellings = all(".spelling", step).filter((one) => !inEvery(one));
      const has = spellings.some((one) => one.dataset.framework === id);
      spellings.forEach((one, place) => { one.hidden = has ? one.dataset.framework !== id : place > 0; });
      step.classList.toggle("as-chosen", has);
    }
    for (const button of all(".switch button")) button.setAttribute("aria-pressed", String(button.dataset.id === id));
  };
  // In one order on every page; chosen is what most cards have first, which is the program in use.
  const order = ["megatron_lm", "megatron_bridge", "bridge_harness", "pytorch"];
  const rank = (id) => (order.indexOf(id) + order.length + 1) % (order.length + 1);
  const own = all(".spelling").filter((one) => !inEvery(one));
  const names = new Map(own.map((one) => [one.dataset.framework, one.dataset.name.split(", ").pop()]));
  const ids = [...names.keys()].sort((one, other) => rank(one) - rank(other));
  const leads = (id) => steps.filter((step) => own.find((one) => step.contains(one))?.dataset.framework === id).length;
  for (const place of all(".switch")) {
    place.hidden = names.size < 2;
    for (const id of ids) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.id = id;
      button.textContent = names.get(id);
      button.addEventListener("click", () => choose(id));
      place.append(button);
    }
  }
  if (ids.length) choose(ids.reduce((best, id) => (leads(id) > leads(best) ? id : best)));

  // Ticks stand where there is a bar to shrink.
  const data = document.getElementById("plan-data");
  if (!data) return;
  for (const one of all(".tick")) one.hidden = false;

  // What the ticked changes win together is what was replayed together, never a sum.
  const replayed = new Map(JSON.parse(data.textContent).map(
    ([ids, low, high, words]) => [[...ids].sort().join(" "), { low, high, words }],
  ));
  const piece = (name, from, to) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("class", name);
    rect.setAttribute("x", `${100 * from}%`);
    rect.setAttribute("width", `${100 * (to - from)}%`);
    rect.setAttribute("height", "56");
    return rect;
  };
  const shrink = (gain) => {
    if (!bar) return;
    const groups = all(":scope > g", bar);
    for (const one of all(":scope > .won, :scope > .may", bar)) one.remove();
    const left = gain ? Math.min(1, 1 - (gain.low ?? 0)) : 1;
    for (const group of groups) {
      for (const one of group.children) {
        if (one.tagName === "title") continue;
        for (const name of ["x", "width"]) {
          const whole = (one.dataset[name] ??= one.getAttribute(name));
          one.setAttribute(name, `${parseFloat(whole) * left}%`);
        }
      }
    }
    if (gain) bar.append(piece("may", 1 - gain.high, left), piece("won", left, 1));
  };
  const words = (ids, gain) => {
    if (!ids.length) return "";
    const names = ids.join(", "), many = ids.length > 1;
    if (!gain) return `${names}: not replayed${many ? " together, so what they save together is unknown. Savings of single changes do not add up." : "."}`;
    const how = gain.low === null ? "a ceiling; the change itself was not replayed" : many ? "replayed together" : "replayed";
    return `With ${names} the bar is ${gain.words} shorter (${how}).`;
  };
  const tick = () => {
    const ids = all("[data-tick]:checked").map((one) => one.dataset.tick).sort();
    const gain = replayed.get(ids.join(" "));
    told.textContent = words(ids, gain);
    told.hidden = !ids.length;
    told.classList.toggle("unknown", !gain);
    shrink(gain);
  };
  for (const one of all("[data-tick]")) one.addEventListener("change", tick);
  tick();
})();
