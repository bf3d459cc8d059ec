const TIMELINE = (() => {
  const AXIS = 26, TITLE = 15, GUTTER = 172, NARROW = 640;
  const HEIGHTS = { functions: 15, ranges: 17, calls: 15, why: 20, stream: 26 };
  const GAPS = { functions: 1, ranges: 1, calls: 5, why: 8, stream: 6 };
  const PATTERNS = {
    slash: (p, s) => { p.moveTo(-2, 2); p.lineTo(2, -2); p.moveTo(0, s); p.lineTo(s, 0); p.moveTo(s - 2, s + 2); p.lineTo(s + 2, s - 2); },
    back: (p, s) => { p.moveTo(-2, s - 2); p.lineTo(2, s + 2); p.moveTo(0, 0); p.lineTo(s, s); p.moveTo(s - 2, -2); p.lineTo(s + 2, 2); },
    cross: (p, s) => { p.moveTo(0, 0); p.lineTo(s, s); p.moveTo(0, s); p.lineTo(s, 0); },
    grid: (p, s) => { p.moveTo(0, 0); p.lineTo(s, 0); p.moveTo(0, 0); p.lineTo(0, s); },
    rows: (p, s) => { p.moveTo(0, s / 2); p.lineTo(s, s / 2); },
    columns: (p, s) => { p.moveTo(s / 2, 0); p.lineTo(s / 2, s); },
    dots: (p, s) => { p.rect(s / 4, s / 4, 2, 2); },
  };
  const FONT = "12px system-ui, sans-serif", BOLD = "600 12px system-ui, sans-serif", SMALL = "11px system-ui, sans-serif";
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

  // Beginnings are stored as distances, launches as the time before the beginning.
  const unpacked = (lane) => {
    const at = new Float64Array(lane.at.length);
    let sum = 0;
    lane.at.forEach((by, place) => { sum += by; at[place] = sum; });
    return { ...lane, at, length: Float64Array.from(lane.length) };
  };

  // What is drawn of one stretch: lanes under an axis, each activity a block.
  class Drawing {
    constructor(canvas, looks, names) {
      Object.assign(this, { canvas, looks, names, pen: canvas.getContext("2d") });
      Object.assign(this, { from: 0, to: 1, width: 0, lanes: [], lit: null, mark: null, seen: null });
    }

    load(stretch, axis = stretch.length_ns) {
      this.stretch = stretch;
      this.length = Math.max(1, axis);
      this.lanes = (stretch.unpacked ??= stretch.lanes.map(unpacked));
      Object.assign(this, { from: 0, to: this.length, mark: null, seen: null });
    }

    size(width) {
      const ratio = window.devicePixelRatio || 1;
      this.width = width;
      this.left = width > NARROW ? GUTTER : 0;
      let y = AXIS;
      for (const lane of this.lanes) {
        if (lane.title && lane !== this.lanes[0]) y += this.left ? 3 : TITLE;
        else if (!this.left && lane.title) y += TITLE;
        lane.top = y;
        lane.high = HEIGHTS[lane.kind];
        y += lane.high + GAPS[lane.kind];
      }
      this.height = y + 4;
      this.canvas.style.height = `${this.height}px`;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.recolour();
    }

    recolour() {
      this.inks = Object.fromEntries(["paper", "ink", "soft", "hair", "focus", "sheet", "stripe"].map((name) => [name, colour(name)]));
      this.fills = this.looks.map(([, , name, pattern]) => {
        const solid = colour(name);
        return { solid, text: textOn(solid), pattern: pattern === "solid" ? solid : this.tile(solid, pattern) };
      });
      this.draw();
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

    // A small piece of paper in the look of a class, for the legend.
    swatch(look, canvas) {
      Object.assign(canvas, { width: 22, height: 14 });
      const pen = canvas.getContext("2d");
      pen.fillStyle = this.fills[look].pattern;
      pen.fillRect(0, 0, 22, 14);
    }

    x(ns) { return this.left + ((ns - this.from) / (this.to - this.from)) * (this.width - this.left); }
    ns(x) { return this.from + ((x - this.left) / (this.width - this.left)) * (this.to - this.from); }

    later() {
      if (this.waits) return;
      this.waits = true;
      requestAnimationFrame(() => { this.waits = false; this.draw(); });
    }

    draw() {
      const pen = this.pen;
      if (!this.width) return;
      pen.clearRect(0, 0, this.width, this.height);
      pen.textBaseline = "middle";
      pen.save();
      pen.beginPath();
      pen.rect(this.left, 0, this.width - this.left, this.height);
      pen.clip();
      this.axis();
      if (!this.left) for (const lane of this.lanes) this.title(lane);
      if (this.mark) this.markRange();
      for (const lane of this.lanes) this.drawLane(lane);
      if (this.seen) this.drawSeen();
      pen.restore();
      if (this.left) for (const lane of this.lanes) this.title(lane);
    }

    title(lane) {
      const pen = this.pen, y = lane.top + lane.high / 2;
      pen.fillStyle = this.inks.ink;
      pen.font = BOLD;
      if (!this.left) {
        if (!lane.title) return;
        const wide = pen.measureText(lane.title).width;
        pen.fillText(lane.title, 2, lane.top - TITLE / 2);
        pen.fillStyle = this.inks.soft;
        pen.font = SMALL;
        pen.fillText(lane.under, wide + 9, lane.top - TITLE / 2);
        return;
      }
      const two = lane.under && lane.high > 23;
      pen.fillText(this.fitted(lane.title, GUTTER - 12), 8, two ? y - 6 : y);
      if (!two) return;
      pen.fillStyle = this.inks.soft;
      pen.font = SMALL;
      pen.fillText(this.fitted(lane.under, GUTTER - 12), 8, y + 8);
    }

    axis() {
      const pen = this.pen, span = this.to - this.from;
      const raw = span / Math.max(2, (this.width - this.left) / 110), power = 10 ** Math.floor(Math.log10(raw));
      const every = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
      const digits = clamp(6 - Math.floor(Math.log10(every)), 0, 6);
      pen.font = FONT;
      pen.lineWidth = 1;
      for (let at = Math.ceil(this.from / every) * every; at <= this.to; at += every) {
        const x = Math.round(this.x(at)) + 0.5;
        pen.strokeStyle = this.inks.hair;
        pen.beginPath();
        pen.moveTo(x, AXIS - 6);
        pen.lineTo(x, this.height);
        pen.stroke();
        const text = `${(at / 1e6).toFixed(digits)} ms`, wide = pen.measureText(text).width;
        pen.fillStyle = this.inks.soft;
        pen.fillText(text, clamp(x - wide / 2, this.left + 2, this.width - wide - 2), 11);
      }
    }

    markRange() {
      const pen = this.pen, x = this.x(this.mark[0]), wide = Math.max(2, this.x(this.mark[1]) - x);
      pen.fillStyle = this.inks.sheet;
      pen.fillRect(x, AXIS - 4, wide, this.height);
      pen.strokeStyle = this.inks.focus;
      pen.lineWidth = 2;
      pen.strokeRect(x, AXIS - 3, wide, this.height - AXIS + 1);
    }

    drawLane(lane) {
      const pen = this.pen;
      pen.fillStyle = this.inks.sheet;
      pen.fillRect(this.left, lane.top, this.width - this.left, lane.high);
      pen.font = lane.kind === "stream" ? FONT : SMALL;
      if (!this.lit) { this.blocks(lane, () => true); return; }
      pen.globalAlpha = 0.14;
      this.blocks(lane, (place) => !this.lit(lane, place));
      pen.globalAlpha = 1;
      this.blocks(lane, (place) => this.lit(lane, place));
    }

    // Of activities narrower than a pixel one is drawn for each pixel.
    blocks(lane, wanted) {
      const scale = (this.width - this.left) / (this.to - this.from), last = above(lane.at, this.to);
      let drawn = -1;
      for (let one = Math.max(0, above(lane.at, this.from) - 1); one < last; one += 1) {
        const x = this.left + (lane.at[one] - this.from) * scale, end = x + lane.length[one] * scale;
        if (end < this.left || (end < drawn && end - x < 1) || !wanted(one)) continue;
        this.block(lane, one, Math.max(this.left - 1, x), Math.min(this.width + 1, end));
        drawn = Math.max(end, Math.floor(x) + 1);
      }
    }

    block(lane, one, x, end) {
      const pen = this.pen, wide = end - x, fill = this.fills[lane.look[one]];
      pen.fillStyle = wide > 3 ? fill.pattern : fill.solid;
      pen.fillRect(x, lane.top, Math.max(1, wide), lane.high);
      if (wide < 3) return;
      pen.fillStyle = this.inks.paper;
      pen.fillRect(end - 0.5, lane.top, 0.5, lane.high);
      if (wide < 42) return;
      const text = this.fitted(this.nameOf(lane, one), wide - 8);
      if (!text) return;
      pen.fillStyle = fill.solid;
      pen.fillRect(x + 3, lane.top + 2, pen.measureText(text).width + 4, lane.high - 4);
      pen.fillStyle = fill.text;
      pen.fillText(text, x + 5, lane.top + lane.high / 2 + 0.5);
    }

    drawSeen() {
      const pen = this.pen, { lane, place } = this.seen;
      const x = this.x(lane.at[place]), wide = Math.max(3, this.x(lane.at[place] + lane.length[place]) - x);
      pen.strokeStyle = this.inks.ink;
      pen.lineWidth = 2.5;
      pen.strokeRect(x, lane.top - 1, wide, lane.high + 2);
      const launch = this.launchOf(lane, place);
      if (launch === null) return;
      const from = this.callLane(launch);
      this.arrow(this.x(launch), from ? from.top + from.high : AXIS - 4, x, lane.top);
    }

    // From the call that launched it, or the axis where calls are not drawn, to the activity.
    arrow(fromX, fromY, toX, toY) {
      const pen = this.pen;
      pen.strokeStyle = pen.fillStyle = this.inks.focus;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.moveTo(fromX, fromY);
      pen.bezierCurveTo(fromX, (fromY + toY) / 2, toX, (fromY + toY) / 2, toX, toY - 5);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(toX, toY);
      pen.lineTo(toX - 5, toY - 9);
      pen.lineTo(toX + 5, toY - 9);
      pen.fill();
      pen.beginPath();
      pen.arc(fromX, fromY, 3.5, 0, 7);
      pen.fill();
    }

    // The lane with a call that runs at that time; where calls are cut, any.
    callLane(time) {
      const calls = this.lanes.filter((lane) => lane.kind === "calls");
      const runs = (lane, place) => place >= 0 && lane.at[place] + lane.length[place] >= time;
      return calls.find((lane) => runs(lane, above(lane.at, time) - 1)) ?? calls[0];
    }


    launchOf(lane, place) { const before = lane.before?.[place] ?? null; return before === null ? null : lane.at[place] - before; }
    nameOf(lane, place) { return lane.name[place] < 0 ? this.looks[lane.look[place]][0] : this.names[lane.name[place]]; }

    fitted(text, wide) {
      const count = Math.floor((text.length * wide) / Math.max(1, this.pen.measureText(text).width));
      if (count >= text.length) return text;
      return count < 4 ? "" : `${text.slice(0, count - 1)}…`;
    }

    hit(x, y) {
      const lane = this.lanes.find((one) => y >= one.top - 2 && y <= one.top + one.high + 2);
      if (!lane || x < this.left) return null;
      const ns = this.ns(x), slack = this.ns(this.left + 3) - this.from, first = above(lane.at, ns + slack) - 1;
      let best = null;
      for (let place = first; place >= 0 && place > first - 40; place -= 1) {
        const away = Math.max(0, lane.at[place] - ns, ns - lane.at[place] - lane.length[place]);
        if (away <= slack && (best === null || away < best.away)) best = { lane, place, away };
      }
      return best;
    }
  }
  return { Drawing, above, clamp };
})();
