"use strict";
(() => {
  const AXIS = 24, LABEL = 17, BAR = 22, GAP = 9, LEAST_NS = 200;
  const PATTERNS = {
    slash: (p, s) => { p.moveTo(-2, 2); p.lineTo(2, -2); p.moveTo(0, s); p.lineTo(s, 0); p.moveTo(s - 2, s + 2); p.lineTo(s + 2, s - 2); },
    back: (p, s) => { p.moveTo(-2, s - 2); p.lineTo(2, s + 2); p.moveTo(0, 0); p.lineTo(s, s); p.moveTo(s - 2, -2); p.lineTo(s + 2, 2); },
    cross: (p, s) => { p.moveTo(0, 0); p.lineTo(s, s); p.moveTo(0, s); p.lineTo(s, 0); },
    grid: (p, s) => { p.moveTo(0, 0); p.lineTo(s, 0); p.moveTo(0, 0); p.lineTo(0, s); },
    rows: (p, s) => { p.moveTo(0, s / 2); p.lineTo(s, s / 2); },
    columns: (p, s) => { p.moveTo(s / 2, 0); p.lineTo(s / 2, s); },
    dots: (p, s) => { p.rect(s / 4, s / 4, 2, 2); },
  };
  const ms = (ns) => (ns / 1e6).toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 6 });
  const whole = (ns) => Math.round(ns).toLocaleString("en");
  const seconds = (ns) => ns.padStart(10, "0").replace(/(.{9})$/, ".$1s");
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // The first place of a sorted list whose value is above `value`.
  const above = (list, value) => {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] > value) high = middle; else low = middle + 1;
    }
    return low;
  };

  const textOn = (hex) => {
    const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
    const light = parts.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.18 ? "#000000" : "#ffffff";
  };

  class Timeline {
    constructor(figure) {
      this.figure = figure;
      this.data = JSON.parse(document.getElementById(figure.dataset.source).textContent);
      this.canvas = figure.querySelector("canvas");
      this.pen = this.canvas.getContext("2d");
      this.tip = figure.querySelector(".tip");
      this.told = figure.querySelector(".told");
      this.length = this.data.axis_ns ?? this.data.length_ns;
      this.lanes = this.lanesOf(this.data);
      Object.assign(this, { from: 0, to: this.length, lane: 0, at: -1, mark: null, pointers: new Map() });
      for (const one of figure.querySelectorAll("[hidden]")) if (one !== this.tip) one.hidden = false;
      this.listen();
      this.resize();
    }

    lanesOf(data) {
      const lanes = data.lanes.map((lane) => ({
        title: `stream ${lane.stream}`, at: lane.at_ns, length: lane.length_ns,
        looks: lane.key.map((key) => data.keys[key]),
        names: lane.name.map((name) => (name < 0 ? "" : data.names[name])),
      }));
      if (data.reasons) {
        lanes.unshift({
          title: "why no compute ran", at: data.reasons.at_ns, length: data.reasons.length_ns,
          looks: data.reasons.reason.map((reason) => data.reasons.reasons[reason]),
          names: data.reasons.reason.map(() => ""),
        });
      }
      return lanes.filter((lane) => lane.at.length);
    }

    resize() {
      const ratio = window.devicePixelRatio || 1;
      this.width = this.canvas.parentElement.clientWidth;
      this.height = AXIS + this.lanes.length * (LABEL + BAR + GAP);
      this.canvas.style.height = `${this.height}px`;
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.recolour();
    }

    recolour() {
      this.inks = { paper: colour("paper"), ink: colour("ink"), soft: colour("soft"), hair: colour("hair"), line: colour("line"), mark: colour("focus"), sheet: colour("sheet"), stripe: colour("stripe") };
      this.fills = new Map();
      this.draw();
    }

    fill(look) {
      const name = `${look[1]} ${look[2]}`;
      if (!this.fills.has(name)) {
        const solid = colour(look[1]);
        this.fills.set(name, { solid, text: textOn(solid), pattern: look[2] === "solid" ? solid : this.tile(solid, look[2]) });
      }
      return this.fills.get(name);
    }

    tile(solid, pattern) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 8;
      const pen = tile.getContext("2d");
      pen.fillStyle = solid;
      pen.fillRect(0, 0, 8, 8);
      pen.strokeStyle = this.inks.stripe;
      pen.lineWidth = 1.6;
      pen.beginPath();
      PATTERNS[pattern](pen, 8);
      pen.stroke();
      return this.pen.createPattern(tile, "repeat");
    }

    x(ns) { return ((ns - this.from) / (this.to - this.from)) * this.width; }
    ns(x) { return this.from + (x / this.width) * (this.to - this.from); }
    // On the recording's clock, whose ns since 1970 are beyond a double's exact integers.
    clock(ns) { return String(BigInt(this.data.start_ns) + BigInt(Math.round(ns))); }
    top(place) { return AXIS + place * (LABEL + BAR + GAP) + LABEL; }

    later() {
      if (this.waits) return;
      this.waits = true;
      requestAnimationFrame(() => { this.waits = false; this.draw(); });
    }

    draw() {
      const pen = this.pen;
      pen.clearRect(0, 0, this.width, this.height);
      this.axis();
      this.beyond();
      if (this.mark) this.markRange();
      this.lanes.forEach((lane, place) => this.drawLane(lane, this.top(place), place));
      this.figure.dataset.from = this.clock(this.from);
      this.figure.dataset.to = this.clock(this.to);
    }

    axis() {
      const pen = this.pen, span = this.to - this.from;
      const raw = span / Math.max(2, this.width / 110), power = 10 ** Math.floor(Math.log10(raw));
      const every = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
      const digits = clamp(6 - Math.floor(Math.log10(every)), 0, 6);
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      pen.lineWidth = 1;
      for (let at = Math.ceil(this.from / every) * every; at <= this.to; at += every) {
        const x = Math.round(this.x(at)) + 0.5;
        pen.strokeStyle = this.inks.hair;
        pen.beginPath();
        pen.moveTo(x, AXIS - 6);
        pen.lineTo(x, this.height);
        pen.stroke();
        const text = `${(at / 1e6).toFixed(digits)} ms`;
        const wide = pen.measureText(text).width;
        pen.fillStyle = this.inks.soft;
        pen.fillText(text, clamp(x - wide / 2, 0, this.width - wide), 9);
      }
    }

    // Where the axis goes on after the end of what is shown here.
    beyond() {
      const x = Math.max(0, this.x(this.data.length_ns));
      if (x >= this.width) return;
      this.pen.fillStyle = this.inks.sheet;
      this.pen.fillRect(x, AXIS - 4, this.width - x, this.height);
    }

    markRange() {
      const pen = this.pen, x = this.x(this.mark[0]), wide = Math.max(2, this.x(this.mark[1]) - x);
      pen.fillStyle = this.inks.sheet;
      pen.fillRect(x, AXIS - 4, wide, this.height);
      pen.strokeStyle = this.inks.mark;
      pen.lineWidth = 2;
      pen.strokeRect(x, AXIS - 4, wide, this.height - AXIS + 3);
    }

    drawLane(lane, top, place) {
      const pen = this.pen;
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      pen.fillStyle = this.inks.ink;
      pen.fillText(`${lane.title}: ${whole(lane.at.length)}`, 2, top - LABEL / 2);
      pen.strokeStyle = this.inks.hair;
      pen.lineWidth = 1;
      pen.strokeRect(0.5, top - 0.5, this.width - 1, BAR + 1);
      const last = above(lane.at, this.to);
      for (let one = Math.max(0, above(lane.at, this.from) - 1); one < last; one += 1) {
        const x = this.x(lane.at[one]), end = this.x(lane.at[one] + lane.length[one]);
        if (end < 0) continue;
        this.block(lane, one, Math.max(-1, x), Math.min(this.width + 1, end), top);
      }
      if (place === this.lane && this.at >= 0) {
        const x = this.x(lane.at[this.at]), wide = Math.max(3, this.x(lane.at[this.at] + lane.length[this.at]) - x);
        pen.strokeStyle = this.inks.ink;
        pen.lineWidth = 2.5;
        pen.strokeRect(x, top - 1, wide, BAR + 2);
      }
    }

    block(lane, one, x, end, top) {
      const pen = this.pen, wide = end - x, fill = this.fill(lane.looks[one]);
      pen.fillStyle = wide > 3 ? fill.pattern : fill.solid;
      pen.fillRect(x, top, Math.max(0.5, wide), BAR);
      if (wide < 3) return;
      pen.fillStyle = this.inks.paper;
      pen.fillRect(end - 0.5, top, 0.5, BAR);
      if (wide < 46) return;
      const text = this.fitted(lane.names[one] || lane.looks[one][0], wide - 8);
      if (!text) return;
      pen.fillStyle = fill.solid;
      pen.fillRect(x + 3, top + 3, pen.measureText(text).width + 4, BAR - 6);
      pen.fillStyle = fill.text;
      pen.fillText(text, x + 5, top + BAR / 2 + 0.5);
    }

    fitted(text, wide) {
      const count = Math.floor((text.length * wide) / Math.max(1, this.pen.measureText(text).width));
      if (count >= text.length) return text;
      return count < 5 ? "" : `${text.slice(0, count - 1)}…`;
    }

    view(from, to) {
      const span = clamp(to - from, Math.min(LEAST_NS, this.length), this.length);
      this.from = clamp((from + to) / 2 - span / 2, 0, this.length - span);
      this.to = this.from + span;
      this.hide();
      this.later();
      for (const other of this.linked()) Object.assign(other, { from: this.from, to: this.to }).later();
    }

    // Timelines of one name in `data-linked` show the same stretch, each from its own beginning.
    linked() {
      const group = this.figure.dataset.linked;
      return group ? [...timelines.values()].filter((one) => one !== this && one.figure.dataset.linked === group) : [];
    }

    zoom(factor, about = (this.from + this.to) / 2) {
      const span = clamp((this.to - this.from) * factor, Math.min(LEAST_NS, this.length), this.length);
      const share = (about - this.from) / (this.to - this.from);
      this.view(about - share * span, about + (1 - share) * span);
    }

    pan(share) {
      const by = (this.to - this.from) * share;
      this.view(this.from + by, this.to + by);
    }

    whole() {
      Object.assign(this, { mark: null, at: -1 });
      this.view(0, this.length);
      this.tell("The whole stretch is shown.");
    }

    tell(text) { this.told.textContent = text; }

    // Moves to a range of the recording's clock where this timeline shows it, and says so either way.
    show(from, length, what) {
      const to = from + length;
      if (to <= 0 || from >= this.length) return false;
      this.mark = [Math.max(0, from), Math.min(this.length, to)];
      this.at = -1;
      const room = Math.max((to - from) * 0.6, LEAST_NS);
      this.view(from - room, to + room);
      this.tell(`The timeline moved to ${what}: from ${ms(Math.max(0, from))} ms, for ${ms(length)} ms.`);
      return true;
    }

    hit(x, y) {
      const place = Math.floor((y - AXIS) / (LABEL + BAR + GAP)), lane = this.lanes[place];
      if (y < AXIS || !lane) return null;
      const ns = this.ns(x), slack = this.ns(3) - this.ns(0);
      let best = null;
      const first = above(lane.at, ns + slack) - 1;
      for (let one = first; one >= 0 && one > first - 40; one -= 1) {
        const away = Math.max(0, lane.at[one] - ns, ns - lane.at[one] - lane.length[one]);
        if (away <= slack && (best === null || away < best.away)) best = { place, one, away };
      }
      return best;
    }

    words(place, one) {
      const lane = this.lanes[place], at = lane.at[one], length = lane.length[one];
      return [
        lane.names[one] || lane.looks[one][0],
        `${lane.looks[one][0]}, ${lane.title}`,
        `${ms(length)} ms (${whole(length)} ns)`,
        `from ${ms(at)} ms, at ${seconds(this.clock(at))}`,
      ];
    }

    point(x, y) {
      const found = this.hit(x, y);
      if (!found) { this.hide(); return; }
      const lines = this.words(found.place, found.one).map((text) => {
        const line = document.createElement("div");
        line.textContent = text;
        return line;
      });
      this.tip.replaceChildren(...lines);
      this.tip.hidden = false;
      const wide = this.tip.offsetWidth;
      this.tip.style.left = `${clamp(x - wide / 2, 0, Math.max(0, this.width - wide))}px`;
      this.tip.style.top = `${this.top(found.place) + BAR + 4}px`;
    }

    hide() { this.tip.hidden = true; }

    // The next activity of the chosen lane, told in words.
    step(by) {
      const lane = this.lanes[this.lane];
      const start = by > 0 ? above(lane.at, this.from) - 1 : above(lane.at, this.to);
      const next = this.at < 0 ? start + by : this.at + by;
      this.at = clamp(next, 0, lane.at.length - 1);
      const at = lane.at[this.at], length = lane.length[this.at], span = this.to - this.from;
      if (at < this.from || at + length > this.to) this.view(at + length / 2 - span / 2, at + length / 2 + span / 2);
      this.later();
      this.tell(this.words(this.lane, this.at).join(", "));
    }

    choose(by) {
      this.lane = clamp(this.lane + by, 0, this.lanes.length - 1);
      this.at = -1;
      this.tell(`${this.lanes[this.lane].title}: press n and p for its activities.`);
      this.later();
    }

    listen() {
      const act = {
        in: () => this.zoom(0.5), out: () => this.zoom(2), left: () => this.pan(-0.3),
        right: () => this.pan(0.3), whole: () => this.whole(),
      };
      const keys = {
        "+": act.in, "=": act.in, "-": act.out, "_": act.out, ArrowLeft: act.left, ArrowRight: act.right,
        0: act.whole, Home: act.whole, ArrowUp: () => this.choose(-1), ArrowDown: () => this.choose(1),
        n: () => this.step(1), p: () => this.step(-1), Escape: () => this.hide(),
      };
      for (const button of this.figure.querySelectorAll("[data-act]")) {
        button.addEventListener("click", act[button.dataset.act]);
      }
      this.canvas.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
      });
      this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
        this.canvas.addEventListener(kind, (event) => this.drag(kind, event));
      }
      this.canvas.addEventListener("pointerleave", () => { if (!this.pointers.size) this.hide(); });
      new ResizeObserver(() => { if (this.canvas.parentElement.clientWidth !== this.width) this.resize(); }).observe(this.canvas.parentElement);
      for (const query of ["(prefers-color-scheme: dark)", "print"]) {
        window.matchMedia(query).addEventListener("change", () => this.recolour());
      }
    }

    // The page scrolls as ever until the timeline was chosen, or Ctrl is held.
    wheel(event) {
      if (!event.ctrlKey && document.activeElement !== this.canvas) return;
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (this.to - this.from >= this.length && (sideways || event.deltaY > 0)) return;
      event.preventDefault();
      if (sideways) this.pan(event.deltaX / this.width);
      else this.zoom(1.0018 ** clamp(event.deltaY, -300, 300), this.ns(event.offsetX));
    }

    drag(kind, event) {
      const here = { x: event.offsetX, y: event.offsetY };
      if (kind === "pointerdown") {
        this.pointers.set(event.pointerId, here);
        this.canvas.setPointerCapture(event.pointerId);
        this.moved = 0;
      } else if (kind !== "pointermove") {
        this.pointers.delete(event.pointerId);
        if (kind === "pointerup" && this.moved < 5) this.point(here.x, here.y);
      } else if (!this.pointers.has(event.pointerId)) {
        this.point(here.x, here.y);
      } else {
        this.move(event.pointerId, here);
      }
    }

    move(id, here) {
      const was = this.pointers.get(id), others = [...this.pointers].filter(([other]) => other !== id);
      this.moved += Math.abs(here.x - was.x);
      if (others.length) {
        const other = others[0][1].x;
        const factor = clamp((Math.abs(was.x - other) + 1) / (Math.abs(here.x - other) + 1), 0.5, 2);
        this.zoom(factor, this.ns((here.x + other) / 2));
      } else if (this.moved >= 5) {
        this.pan((was.x - here.x) / this.width);
      }
      this.pointers.set(id, here);
    }
  }

  const figures = [...document.querySelectorAll("figure.timeline")];
  const timelines = new Map(figures.map((one) => [one.id, new Timeline(one)]));

  for (const button of document.querySelectorAll("button.find")) {
    button.addEventListener("click", () => {
      const timeline = timelines.get(button.dataset.timeline), told = button.dataset;
      for (const one of document.querySelectorAll("button.find")) one.setAttribute("aria-pressed", String(one === button));
      const shown = !told.elsewhere && timeline.show(Number(told.at), Number(told.length), told.what);
      if (!shown) timeline.tell(`Not to be seen here: ${told.what} is in ${told.elsewhere || "another stretch"}, at ${told.clock}. The timeline has not moved.`);
      timeline.figure.scrollIntoView({ block: "nearest" });
    });
  }
})();
