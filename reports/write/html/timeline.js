(() => {
  const LEAST_NS = 200;
  const { Drawing, above, clamp } = TIMELINE;
  const three = (value) => (Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toLocaleString("en", { maximumSignificantDigits: 3 }));
  const time = (ns) => {
    for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) if (Math.abs(ns) >= size) return `${three(ns / size)} ${unit}`;
    return `${Math.round(ns)} ns`;
  };
  const seconds = (ns) => `${ns.padStart(10, "0").replace(/(.{9})$/, ".$1")} s`;
  const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

  class Timeline {
    constructor(figure) {
      this.figure = figure;
      this.data = JSON.parse(document.getElementById(figure.dataset.source).textContent);
      this.of = (query) => figure.querySelector(query);
      this.stage = this.of(".stage");
      this.card = this.of(".card");
      this.drawing = new Drawing(this.of("canvas"), this.data.looks, this.data.short);
      Object.assign(this, { place: 0, wall: "", matches: [], at: -1, lane: 0, pointers: new Map() });
      for (const one of all("[hidden]", figure)) if (![this.card, this.of(".filter")].includes(one)) one.hidden = false;
      this.choices();
      this.listen();
      this.load(0);
    }

    get stretch() { return this.data.stretches[this.place]; }

    // One choice of the GPU and one of its steps; neither is shown where there is nothing to choose.
    choices() {
      const places = [...new Set(this.data.stretches.map((one) => one.place))];
      const rank = this.of("[data-act=rank]"), step = this.of("[data-act=step]");
      rank?.replaceChildren(...places.map((name) => element("option", name)));
      if (rank) rank.parentElement.hidden = places.length < 2;
      if (step) step.parentElement.hidden = this.data.stretches.length <= places.length;
    }

    load(place) {
      this.place = place;
      const mine = this.data.stretches.map((one, at) => [one, at]).filter(([one]) => one.place === this.stretch.place);
      const step = this.of("[data-act=step]"), rank = this.of("[data-act=rank]");
      if (rank) rank.value = this.stretch.place;
      step?.replaceChildren(...mine.map(([one, at]) => Object.assign(element("option", one.step), { value: at, selected: at === place })));
      this.drawing.load(this.stretch, this.data.axis_ns);
      Object.assign(this, { lane: 0, at: -1 });
      this.search();
      this.resize();
      if (this.stretch.left_out) this.tell(`${this.stretch.left_out.toLocaleString("en")} of its activities, the shortest or last, are left out.`);
    }

    resize() {
      if (!this.stage.clientWidth) return;
      this.drawing.size(this.stage.clientWidth);
      this.note();
      this.legend();
    }

    recolour() {
      this.drawing.recolour();
      this.legend();
    }

    // What looks how, once for a class and the wait for it; a click searches for it.
    legend() {
      const list = this.of(".looks");
      if (!list || !this.drawing.fills) return;
      const used = new Map();
      for (const look of new Set(this.drawing.lanes.flatMap((lane) => lane.look))) {
        const [title, , colour, pattern] = this.data.looks[look], alike = `${colour} ${pattern}`;
        if (!used.has(alike) || title.length < this.data.looks[used.get(alike)][0].length) used.set(alike, look);
      }
      list.replaceChildren(...[...used.values()].map((look) => {
        const item = document.createElement("li"), button = element("button", ""), patch = document.createElement("canvas");
        const [title, key] = this.data.looks[look], words = key.split(".").at(-1);
        this.drawing.swatch(look, patch);
        button.type = "button";
        button.title = key;
        button.append(patch, title);
        button.addEventListener("click", () => {
          const search = this.of("[data-act=search]");
          search.value = search.value === words ? "" : words;
          this.search();
        });
        item.append(button);
        return item;
      }));
    }

    // On the recording's clock, whose ns since 1970 are beyond a double's exact integers.
    clock(ns) { return String(BigInt(this.stretch.start_ns) + BigInt(Math.round(ns))); }
    note() { Object.assign(this.figure.dataset, { from: this.clock(this.drawing.from), to: this.clock(this.drawing.to) }); }
    tell(text) { this.of(".says").textContent = text; }

    view(from, to, together = true) {
      const drawing = this.drawing, length = drawing.length;
      const span = clamp(to - from, Math.min(LEAST_NS, length), length);
      drawing.from = clamp((from + to) / 2 - span / 2, 0, length - span);
      drawing.to = drawing.from + span;
      this.hide();
      this.note();
      drawing.later();
      if (together) for (const other of this.linked()) other.view(drawing.from, drawing.to, false);
    }

    // Figures of one name in `data-linked` show the same stretch, each from its own beginning.
    linked() {
      const group = this.figure.dataset.linked;
      return group ? timelines.filter((one) => one !== this && one.figure.dataset.linked === group) : [];
    }

    zoom(factor, about = (this.drawing.from + this.drawing.to) / 2) {
      const { from, to, length } = this.drawing;
      const span = clamp((to - from) * factor, Math.min(LEAST_NS, length), length), share = (about - from) / (to - from);
      this.view(about - share * span, about + (1 - share) * span);
    }

    pan(share) {
      const by = (this.drawing.to - this.drawing.from) * share;
      this.view(this.drawing.from + by, this.drawing.to + by);
    }

    whole() {
      Object.assign(this.drawing, { mark: null, seen: null });
      this.view(0, this.drawing.length);
      this.tell("All of it is shown.");
    }

    // What a wall is made of is lit, or what is searched for; the rest is dimmed.
    light() {
      const words = this.of("[data-act=search]")?.value.trim().toLowerCase() ?? "", wall = this.wall;
      const { looks, names } = this.data;
      const named = names.map((name) => name.toLowerCase().includes(words));
      const kinds = looks.map((look) => `${look[0]} ${look[1]}`.toLowerCase().includes(words));
      const walls = looks.map((look) => look[4] === wall);
      this.drawing.lit = !words && !wall ? null : (lane, place) =>
        (!wall || walls[lane.look[place]]) && (!words || kinds[lane.look[place]] || (lane.name[place] >= 0 && named[lane.name[place]]));
      return words;
    }

    search() {
      const words = this.light();
      this.matches = [];
      if (words) {
        for (const lane of this.drawing.lanes) for (let place = 0; place < lane.at.length; place += 1) if (this.drawing.lit(lane, place)) this.matches.push({ lane, place });
        this.matches.sort((a, b) => a.lane.at[a.place] - b.lane.at[b.place]);
        this.tell(`${this.matches.length.toLocaleString("en")} found.`);
      }
      this.match = -1;
      this.drawing.later();
    }

    found(by) {
      if (!this.matches.length) return;
      this.match = (this.match + by + this.matches.length) % this.matches.length;
      const { lane, place } = this.matches[this.match];
      this.see(lane, place);
      this.tell(`${this.match + 1} of ${this.matches.length}: ${this.words(lane, place).join(", ")}`);
    }

    filter(wall, name) {
      this.wall = wall;
      this.light();
      const some = this.data.looks.some((look) => look[4] === wall), note = this.of(".filter");
      note.hidden = !wall;
      note.firstElementChild.textContent = some
        ? `Shown in colour: what ${name} is made of.`
        : `No kernel of its own: what ${name} costs cannot be told from other kernels here.`;
      if (!some) this.drawing.lit = null;
      this.drawing.later();
    }

    see(lane, place) {
      const { from, to } = this.drawing, at = lane.at[place], length = lane.length[place], span = to - from;
      this.drawing.seen = { lane, place };
      if (at < from || at + length > to) this.view(at + length / 2 - span / 2, at + length / 2 + span / 2);
      else this.drawing.later();
    }

    words(lane, place) {
      const at = lane.at[place], length = lane.length[place], look = this.data.looks[lane.look[place]];
      const launch = this.drawing.launchOf(lane, place), grid = this.data.grids?.[lane.name[place]];
      const host = ["functions", "ranges", "calls"].includes(lane.kind);
      return [
        lane.name[place] < 0 ? look[0] : this.data.names[lane.name[place]],
        `${time(length)} (${Math.round(length).toLocaleString("en")} ns), ${three((100 * length) / this.stretch.length_ns)} % of what is shown`,
        host ? "" : `${look[0]}${lane.under ? `, ${lane.under}` : ""}`,
        ...(grid ? [`grid ${grid}`] : []),
        ...(launch === null ? [] : [`launched ${time(at - launch)} before`]),
        `from ${time(at)}, at ${seconds(this.clock(at))}`,
      ].filter(Boolean);
    }

    point(x, y, keep) {
      const found = this.drawing.hit(x, y);
      if (!found) { this.hide(); return; }
      const [name, ...lines] = this.words(found.lane, found.place);
      this.card.replaceChildren(element("b", name), ...lines.map((line) => element("div", line)));
      this.card.hidden = false;
      const wide = this.card.offsetWidth, below = found.lane.top + found.lane.high + 6;
      const over = below + this.card.offsetHeight > this.drawing.height && found.lane.top > this.card.offsetHeight;
      this.card.style.left = `${clamp(x - wide / 2, 2, Math.max(2, this.drawing.width - wide - 2))}px`;
      this.card.style.top = `${over ? found.lane.top - this.card.offsetHeight - 6 : below}px`;
      this.drawing.seen = found;
      this.drawing.later();
      if (keep) this.tell([name, ...lines].join(", "));
    }

    hide() { this.card.hidden = true; }

    // The next activity of the chosen lane, in words.
    step(by) {
      const lane = this.drawing.lanes[this.lane], { from, to } = this.drawing;
      const start = by > 0 ? above(lane.at, from) - 1 : above(lane.at, to);
      this.at = clamp(this.at < 0 ? start + by : this.at + by, 0, lane.at.length - 1);
      this.see(lane, this.at);
      this.tell(this.words(lane, this.at).join(", "));
    }

    choose(by) {
      this.lane = clamp(this.lane + by, 0, this.drawing.lanes.length - 1);
      this.at = -1;
      const lane = this.drawing.lanes[this.lane];
      this.tell(`${[lane.title, lane.under].filter(Boolean).join(", ") || "Inner ranges"}: press n and p for its activities.`);
    }

    // `#t=FROM-TO` in ns of the recording's clock, `of` the place of the stretch, `in` the figure.
    link() {
      location.hash = `t=${this.figure.dataset.from}-${this.figure.dataset.to}&of=${this.place}&in=${this.figure.id}`;
      copyText(location.href, null);
    }

    follow(hash) {
      const found = /^#t=(\d+)-(\d+)(?:&of=(\d+))?(?:&in=([\w-]+))?$/.exec(hash);
      if (!found || (found[4] ?? timelines[0].figure.id) !== this.figure.id) return;
      const [start, end] = [BigInt(found[1]), BigInt(found[2])];
      const within = (one) => one && start < BigInt(one.start_ns) + BigInt(one.length_ns) && end > BigInt(one.start_ns);
      const given = Number(found[3] ?? -1);
      const place = within(this.data.stretches[given]) ? given : this.data.stretches.findIndex(within);
      if (place < 0) { this.tell("The moment of this link is in a stretch that is left out."); return; }
      if (this.figure.closest(".panel")) openTab(this.figure.closest(".panel").id);
      if (place !== this.place) this.load(place);
      const first = BigInt(this.stretch.start_ns);
      this.view(Number(start - first), Number(end - first));
      this.figure.scrollIntoView({ block: "nearest" });
    }

    listen() {
      const act = {
        in: () => this.zoom(0.5), out: () => this.zoom(2), left: () => this.pan(-0.3), right: () => this.pan(0.3),
        whole: () => this.whole(), link: () => this.link(), clear: () => this.filter("", ""),
        previous: () => this.found(-1), next: () => this.found(1),
        open: () => { this.of("[data-act=open]").hidden = true; this.resize(); },
      };
      const keys = {
        "+": act.in, "=": act.in, "-": act.out, "_": act.out, ArrowLeft: act.left, ArrowRight: act.right,
        0: act.whole, Home: act.whole, ArrowUp: () => this.choose(-1), ArrowDown: () => this.choose(1),
        n: () => this.step(1), p: () => this.step(-1), Escape: () => this.hide(), "/": () => this.of("[data-act=search]")?.focus(),
      };
      for (const button of all("button[data-act]", this.figure)) button.addEventListener("click", act[button.dataset.act]);
      this.of("[data-act=rank]")?.addEventListener("change", (event) => this.load(this.data.stretches.findIndex((one) => one.place === event.target.value)));
      this.of("[data-act=step]")?.addEventListener("change", (event) => this.load(Number(event.target.value)));
      const search = this.of("[data-act=search]");
      search?.addEventListener("input", () => this.search());
      search?.addEventListener("keydown", (event) => { if (event.key === "Enter") this.found(event.shiftKey ? -1 : 1); });
      const canvas = this.drawing.canvas;
      canvas.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
      });
      canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) canvas.addEventListener(kind, (event) => this.drag(kind, event));
      canvas.addEventListener("pointerleave", () => { if (!this.pointers.size) { this.hide(); this.drawing.seen = null; this.drawing.later(); } });
      new ResizeObserver(() => { if (this.stage.clientWidth !== this.drawing.width) this.resize(); }).observe(this.stage);
      for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", () => this.recolour());
      window.addEventListener("hashchange", () => this.follow(location.hash));
    }

    // The page scrolls as ever until the timeline was chosen, or Ctrl is held.
    wheel(event) {
      if (!event.ctrlKey && document.activeElement !== this.drawing.canvas) return;
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY), { from, to, length } = this.drawing;
      if (to - from >= length && (sideways || event.deltaY > 0)) return;
      event.preventDefault();
      if (sideways) this.pan(event.deltaX / this.drawing.width);
      else this.zoom(1.0018 ** clamp(event.deltaY, -300, 300), this.drawing.ns(event.offsetX));
    }

    drag(kind, event) {
      const here = { x: event.offsetX, y: event.offsetY };
      if (kind === "pointerdown") {
        this.pointers.set(event.pointerId, here);
        this.drawing.canvas.setPointerCapture(event.pointerId);
        this.moved = 0;
      } else if (kind !== "pointermove") {
        this.pointers.delete(event.pointerId);
        if (kind === "pointerup" && this.moved < 5) this.point(here.x, here.y, true);
      } else if (!this.pointers.has(event.pointerId)) {
        this.point(here.x, here.y, false);
      } else {
        this.move(event.pointerId, here);
      }
    }

    move(id, here) {
      const was = this.pointers.get(id), other = [...this.pointers].find(([one]) => one !== id)?.[1].x;
      this.moved += Math.abs(here.x - was.x);
      if (other !== undefined) {
        const factor = clamp((Math.abs(was.x - other) + 1) / (Math.abs(here.x - other) + 1), 0.5, 2);
        this.zoom(factor, this.drawing.ns((here.x + other) / 2));
      } else if (this.moved >= 5) {
        this.pan((was.x - here.x) / (this.drawing.width - this.drawing.left));
      }
      this.pointers.set(id, here);
    }
  }

  // Read and drawn once the page itself has been painted.
  let timelines = [];
  requestAnimationFrame(() => setTimeout(() => {
    timelines = all("figure.timeline").map((one) => new Timeline(one));
    for (const one of timelines) one.follow(location.hash);
    document.body.dataset.ready = "yes";
  }));

  // A click on whose time it is searches for that in the step.
  for (const link of all("[data-search]")) {
    link.addEventListener("click", (event) => {
      const [timeline] = timelines, search = timeline?.of("[data-act=search]");
      if (!search) return;
      event.preventDefault();
      search.value = search.value === link.dataset.search ? "" : link.dataset.search;
      timeline.search();
      timeline.figure.scrollIntoView({ block: "nearest" });
    });
  }

  for (const link of all("[data-wall]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      openTab("panel-timeline");
      const [timeline] = timelines;
      timeline?.filter(link.dataset.wall, link.textContent);
      timeline?.figure.scrollIntoView({ block: "nearest" });
    });
  }
})();
