// timeline.js - a row for each worker, a bar for each run. A run that is too short for a bar counts in the strip of the
// row. It is a canvas, because it changes all the time: 5,000 bars as SVG take over a second, here some ms. The table
// beside it has the same for screen readers and for the keyboard.
import { clock, hms, plain, span, zoneName } from "./format.js";
import { h } from "./dom.js";
import { ticks } from "./charts.js";

const NAMES = "lane line ink soft ended run fail dead killed kill kill-soft sheet on-run on-ended on-fail".split(" ");
const probe = h("i", { hidden: true });
let palette = null;
function colours() {
  if (palette) return palette;
  if (!probe.isConnected) document.body.append(probe);
  const of = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  palette = Object.fromEntries(NAMES.map((name) => [name, of(name)]));
  return palette;
}
export const repaint = () => {
  palette = null;
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

const FAMILY = 'system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const SANS = "11.5px " + FAMILY;
const STRONG = "650 12.5px " + FAMILY;
const MONO = '10.5px ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const LETTER = 6.3; // px of MONO

// Sizes in px: of a page of its own, and of a row in a table.
const WIDE = { head: 46, foot: 24, gap: 14, slot: 15, pitch: 18, strip: 20, least: 44 };
const SMALL = { head: 4, foot: 2, gap: 8, slot: 3.2, pitch: 4, strip: 0, least: 22 };

class Picture {
  constructor(rows, { from, to, width, compact, label, onopen }) {
    Object.assign(this, { rows, from, to, width, compact, onopen }, compact ? SMALL : WIDE);
    this.left = compact ? 0 : Math.min(132, width * 0.24);
    this.hits = []; // {x, y, w, h, text, bar}
    this.places = new Map(); // of each run: where its bar is
    this.tops = [];
    let y = this.head;
    for (const w of rows) {
      this.tops.push(y);
      y += this.heightOf(w) + this.gap;
    }
    this.height = y - this.gap + this.foot;
    this.bottom = this.height - this.foot;
    this.canvas = h("canvas", { class: "pic", role: "img", "aria-label": label });
    const scale = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.width = width + "px";
    this.canvas.style.height = this.height + "px";
    this.c = this.canvas.getContext("2d");
    this.c.scale(scale, scale);
    this.k = colours();
  }

  heightOf(w) {
    return Math.max(this.least, w.lanes.length * this.pitch + this.strip);
  }
  x(t) {
    const share = (Math.max(this.from, Math.min(this.to, t)) - this.from) / (this.to - this.from);
    return this.left + share * (this.width - this.left - 2);
  }
  box(colour, x, y, w, height) {
    this.c.fillStyle = colour;
    this.c.fillRect(x, y, w, height);
  }
  text(text, x, y, colour, font = SANS, align = "left") {
    this.c.font = font;
    this.c.fillStyle = colour;
    this.c.textAlign = align;
    this.c.fillText(plain(text), x, y);
  }
  line(x1, y1, x2, y2, colour, width = 1, dash = []) {
    this.c.strokeStyle = colour;
    this.c.lineWidth = width;
    this.c.setLineDash(dash);
    this.c.beginPath();
    this.c.moveTo(x1, y1);
    this.c.lineTo(x2, y2);
    this.c.stroke();
    this.c.setLineDash([]);
  }

  ground() {
    this.rows.forEach((w, n) => {
      const a = this.x(Math.max(this.from, w.started ?? this.from));
      this.box(this.k.lane, a, this.tops[n] - 1, this.x(w.gone ?? this.to) - a, this.heightOf(w) + 2);
    });
    for (const t of ticks(this.from, this.to, this.width - this.left)) {
      const x = this.x(t);
      this.line(x + 0.5, this.head - 2, x + 0.5, this.bottom, this.k.line);
      if (this.compact) continue;
      const align = x < this.left + 24 ? "left" : "center";
      this.text(hms(t), Math.min(x, this.width - 24), this.bottom + 16, this.k.soft, SANS, align);
    }
  }

  row(w, top) {
    if (!this.compact) {
      this.text(w.host, 0, top + 13, this.k.ink, STRONG);
      if (w.pid) this.text("pid " + w.pid, 0, top + 29, this.k.soft);
      if (w.gone) this.text("silent", 0, top + 45, this.k.kill, STRONG);
    }
    w.lanes.forEach((lane, i) => {
      for (const bar of lane) this.bar(w, bar, top + i * this.pitch + (this.compact ? 1 : 1.5));
    });
    if (!this.compact) this.stripOf(w, top + w.lanes.length * this.pitch + 18);
  }

  bar(w, bar, y) {
    const x = this.x(bar.start);
    const end = this.x(bar.end);
    const wide = Math.max(1.2, end - x - 0.8);
    if (bar.lease > bar.end) this.leaseOf(bar, end, y);
    this.places.set(`${bar.id} ${bar.run}`, { x, y: y + this.slot / 2 });
    this.c.fillStyle = this.k[bar.kind];
    this.c.beginPath();
    this.c.roundRect(x, y, wide, this.slot, this.compact || wide < 5 ? 0 : 2);
    this.c.fill();
    this.hits.push({ x, y, w: wide, h: this.slot, text: () => this.tipOf(w, bar), bar });
    if (!this.compact) this.inside(bar, x, end, wide, y);
  }

  leaseOf(bar, x, y) {
    const wide = this.x(bar.lease) - x;
    this.box(this.k["kill-soft"], x, y, wide, this.slot);
    this.c.strokeStyle = this.k.kill;
    this.c.lineWidth = 0.7;
    this.c.setLineDash([3, 2]);
    this.c.strokeRect(x + 0.5, y + 0.5, Math.max(0, wide - 1), this.slot - 1);
    this.c.setLineDash([]);
  }

  // Its progress, a cross if it failed, and as much of its name as there is room for.
  inside(bar, x, end, wide, y) {
    if (bar.progress && bar.kind === "run") {
      this.c.globalAlpha = 0.75;
      this.box(this.k.sheet, x, y + this.slot - 3, (wide * bar.progress) / 100, 3);
      this.c.globalAlpha = 1;
    }
    const cross = (bar.kind === "fail" || bar.kind === "dead") && wide > 12;
    if (cross) {
      this.line(end - 8, y + 4.5, end - 2.5, y + 10.5, this.k.sheet, 1.6);
      this.line(end - 2.5, y + 4.5, end - 8, y + 10.5, this.k.sheet, 1.6);
    }
    const room = Math.floor((wide - 8 - (cross ? 9 : 0)) / LETTER);
    if (room < 5) return;
    const whole = `${bar.type} ${bar.id}`;
    const name = (bar.run > 1 ? bar.run + "· " : "") + (room >= whole.length + 3 ? whole : bar.type);
    const ink = { run: "on-run", dead: "on-run", ended: "on-ended" }[bar.kind] ?? "on-fail";
    this.text(name.length > room ? name.slice(0, room - 1) + "…" : name, x + 4, y + 11, this.k[ink], MONO);
  }

  tipOf(w, bar) {
    const how =
      bar.kind === "run"
        ? `runs for ${span(clock.now() - bar.start)}` + (bar.progress ? `, ${bar.progress} %` : "")
        : bar.kind === "killed" && bar.lease
          ? `its worker was last heard ${hms(bar.end)}, its lease ends ${hms(bar.lease)}`
          : `${span(bar.end - bar.start)}, ${bar.outcome}`;
    return plain(`${bar.id}\n${bar.type}, run ${bar.run}\n${w.host} pid ${w.pid}\n${how}`);
  }

  stripOf(w, base) {
    const wide = Math.max(1, this.x(this.from + w.bin) - this.x(this.from) - 0.6);
    const most = Math.max(1, ...w.short.map((q) => q.ok + q.failed));
    for (const q of w.short) {
      const all = q.ok + q.failed;
      if (q.t < this.from || all === 0) continue;
      const x = this.x(q.t);
      const tall = (all / most) * 15;
      const bad = q.failed && Math.max(1.5, (q.failed / most) * 15);
      this.box(this.k.ended, x, base - tall, wide, tall);
      if (bad) this.box(this.k.fail, x, base - bad, wide, bad);
      const text = () => `${hms(q.t)} ${zoneName()}\n${all} short runs, ${q.failed} failed`;
      this.hits.push({ x, y: base - 16, w: wide + 0.6, h: 16, text });
    }
  }

  // A worker that fell silent: when it was last heard, its last lease, and where its jobs ran next.
  silence(w, top) {
    if (!w.gone || w.gone < this.from) return;
    const x = this.x(w.gone);
    this.line(x, this.compact ? top - 3 : this.head - 34, x, top + this.heightOf(w) + 3, this.k.kill, 2);
    if (this.compact) return;
    const killed = w.lanes.flat().filter((bar) => bar.kind === "killed");
    const last = Math.max(0, ...killed.map((bar) => bar.lease ?? 0));
    const near = x > this.width * 0.72;
    const words = this.width < 600 ? `${w.host} is silent` : `${w.host} was last heard ${hms(w.gone)}`;
    this.text(words, x + (near ? -6 : 6), this.head - 24, this.k.kill, STRONG, near ? "right" : "left");
    if (last > this.from && last < this.to) {
      this.line(this.x(last), this.head - 20, this.x(last), this.bottom, this.k.kill, 1.2, [5, 4]);
      if (this.width >= 600) this.text("the last of its leases is over", this.x(last) + 6, this.head - 8, this.k.kill);
    }
    for (const bar of killed) this.again(bar);
  }

  again(bar) {
    const next = this.places.get(`${bar.id} ${bar.run + 1}`);
    const mine = this.places.get(`${bar.id} ${bar.run}`);
    if (!next || !mine) return;
    const x = this.x(bar.lease ?? bar.end);
    this.c.strokeStyle = this.k.kill;
    this.c.lineWidth = 1.3;
    this.c.globalAlpha = 0.8;
    this.c.beginPath();
    this.c.moveTo(x, mine.y);
    this.c.bezierCurveTo(x + 16, mine.y, next.x - 16, next.y, next.x, next.y);
    this.c.stroke();
    this.c.globalAlpha = 1;
    this.box(this.k.kill, next.x - 1, next.y - this.slot / 2, 2.5, this.slot);
  }

  draw() {
    this.ground();
    this.rows.forEach((w, n) => this.row(w, this.tops[n]));
    this.rows.forEach((w, n) => this.silence(w, this.tops[n]));
    return this.canvas;
  }

  at(e) {
    const r = this.canvas.getBoundingClientRect();
    const x = ((e.clientX - r.left) * this.width) / r.width;
    const y = ((e.clientY - r.top) * this.height) / r.height;
    return this.hits.findLast(
      (hit) => x >= hit.x - 1 && x <= hit.x + hit.w + 1 && y >= hit.y - 1 && y <= hit.y + hit.h + 1,
    );
  }
}

// rows: as board() of lanes.js gives them. onopen(bar): a bar was clicked.
export function timeline(rows, options) {
  const picture = new Picture(rows, options);
  const canvas = picture.draw();
  canvas.tipAt = (e) => {
    const hit = picture.at(e);
    canvas.classList.toggle("click", Boolean(hit?.bar && options.onopen));
    return hit?.text();
  };
  if (options.onopen) {
    canvas.onclick = (e) => {
      const bar = picture.at(e)?.bar;
      if (bar) options.onopen(bar);
    };
  }
  return canvas;
}
