// charts.js - the pictures as SVG. Each has a sentence for screen readers, and a table with its numbers beside it.
import { clock, count, exact, hm, hms, holderText, plain, span, zoneName } from "./format.js";
import { h, s } from "./dom.js";
import { ROWS, percentile, rowText, rows } from "./histogram.js";

const MINUTE = 60000;
const pic = (width, height, label, ...content) =>
  s("svg", { class: "pic", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, content);

// A line through the points; null is a gap.
function path(points) {
  let pen = "M";
  let d = "";
  for (const p of points) {
    if (p) d += pen + p[0].toFixed(1) + " " + p[1].toFixed(1);
    pen = p ? "L" : "M";
  }
  return d;
}
// The area below it, for each piece without a gap.
function area(points, floor) {
  let d = "";
  let from = 0;
  for (let i = 0; i <= points.length; i++) {
    if (points[i]) continue;
    const piece = points.slice(from, i);
    if (piece.length > 1)
      d += `${path(piece)}L${piece.at(-1)[0].toFixed(1)} ${floor}L${piece[0][0].toFixed(1)} ${floor}Z`;
    from = i + 1;
  }
  return d;
}

// The last hour in the size of a word.
export function spark(values, { label, kind = "", w = 128, height = 28 } = {}) {
  if (!values?.some((v) => v !== null)) return h("span", { class: "spark zero" }, "–");
  const most = Math.max(8, ...values);
  const points = values.map(
    (v, i) =>
      v !== null && [1 + (i * (w - 5)) / Math.max(1, values.length - 1), height - 2 - (v / most) * (height - 6)],
  );
  const last = points.findLast(Boolean);
  return s(
    "svg",
    {
      class: "pic spark",
      viewBox: `0 0 ${w} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    s("path", { class: "area " + kind, d: area(points, height - 1) }),
    s("path", { class: "stroke " + kind, d: path(points), "vector-effect": "non-scaling-stroke" }),
    s("circle", { class: "dot " + kind, cx: last[0], cy: last[1], r: 2.2 }),
  );
}

export const gauge = (value, max, { label, kind = "running", w = 64, height = 8 } = {}) =>
  s(
    "svg",
    {
      class: "pic",
      viewBox: `0 0 ${w} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label ?? `${value} of ${max}`,
    },
    s("rect", { class: "lane", width: w, height, rx: 2 }),
    s("rect", { class: kind, width: max > 0 ? Math.max(0, Math.min(1, value / max)) * w : 0, height, rx: 2 }),
  );

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600].map((t) => t * 1000);
// Round moments. Each has 74 px for its text.
export function ticks(from, to, px) {
  const step = STEPS.find((t) => ((to - from) / t) * 74 < px) ?? 12 * 3600000;
  const list = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) list.push(t);
  return list;
}
const axis = (x1, x2, y1, y2) => s("line", { class: "axis", x1, x2, y1, y2 });
const below = (x, y, text) => s("text", { x, y, "text-anchor": "middle" }, text);
const beside = (x, y, text) => s("text", { x, y: y + 4, "text-anchor": "end" }, text);

// A round step. At most four of them fit below the largest value.
function gridOf(most) {
  const power = 10 ** Math.floor(Math.log10(most / 2));
  const step = [1, 2, 5, 10].map((f) => f * power).find((v) => most / v <= 4) ?? power * 10;
  const n = Math.ceil(most / step);
  return { list: Array.from({ length: n + 1 }, (_, i) => i * step), top: n * step * 1.02 };
}

// Lines over time. series: [{name, values, kind, area}], a value for each of the times; null is a gap.
export function lines(series, { times, width, label, unit = count, height = 170 }) {
  if (times.length < 2) return h("p", { class: "empty" }, "There is no history of it yet.");
  const [left, bottom, top] = [62, 20, 8];
  const [from, to] = [times[0], times.at(-1)];
  const room = width - left - 8;
  const grid = gridOf(Math.max(1, ...series.flatMap((r) => r.values)));
  const x = (t) => left + ((t - from) / (to - from)) * room;
  const y = (v) => height - bottom - (v / grid.top) * (height - bottom - top);
  const column = room / times.length;
  const said = (i) =>
    series.map((r) => `${r.name}: ${r.values[i] === null ? "not known" : unit(r.values[i])}`).join("\n");
  return pic(
    width,
    height,
    label,
    grid.list.map((v) => [axis(left, width - 8, y(v), y(v)), beside(left - 6, y(v), unit(v))]),
    ticks(from, to, room).map((t) => below(x(t), height - 4, hm(t))),
    series.map((r) => {
      const points = r.values.map((v, i) => v !== null && [x(times[i]), y(v)]);
      return [
        r.area && s("path", { class: "area " + (r.kind ?? ""), d: area(points, y(0)) }),
        s("path", { class: "stroke " + (r.kind ?? ""), d: path(points) }),
      ];
    }),
    times.map((t, i) =>
      s("rect", {
        x: x(t) - column / 2,
        y: top,
        width: column,
        height: height - bottom - top,
        fill: "transparent",
        "data-tip": `${hm(t)} ${zoneName()}\n${said(i)}`,
      }),
    ),
  );
}

// Ticks of schedules over a day. rows: [{name, off, dense, said, ticks: [{t, kind, said}]}]; a kind is missed, ended or
// next. marks: [{t, text}], where the clock of the zone changes.
export function strip(list, { from, to, width, label, marks = [], text = hm }) {
  const left = Math.min(150, width * 0.32);
  const [row, top] = [26, 20];
  const height = top + list.length * row + 6;
  const x = (t) => left + ((t - from) / (to - from)) * (width - left - 6);
  const upright = (kind, t, y1) => s("line", { class: kind, x1: x(t), x2: x(t), y1, y2: height - 6 });
  const letters = Math.floor(left / 7);
  const tickOf = (r, t, y) => {
    const tip = `${r.name}\n${t.said}`;
    if (t.kind === "missed")
      return s("path", {
        d: `M${x(t.t) - 5} ${y - 5}l10 10m0-10l-10 10`,
        stroke: "var(--kill)",
        "stroke-width": 2.4,
        "data-tip": tip,
      });
    const kind = t.kind === "ended" ? "tick-ended" : r.off ? "tick-off" : "tick-next";
    return s("circle", { class: kind, cx: x(t.t), cy: y, r: 4.5, "data-tip": tip });
  };
  return pic(
    width,
    height,
    label,
    ticks(from, to, (width - left) * 0.9).map((t) => [
      upright("axis", t, top),
      s("text", { x: Math.min(x(t), width - 18), y: 13, "text-anchor": "middle" }, text(t)),
    ]),
    marks.map((m) => [
      upright("overline", m.t, top - 4),
      s("text", { class: "killtext", x: x(m.t) + 5, y: height - 9 }, m.text),
    ]),
    upright("nowline", clock.now(), top - 2),
    list.map((r, i) => {
      const y = top + i * row + row / 2 + 2;
      return [
        axis(left, width - 6, y, y),
        s(
          "text",
          { class: r.off ? "" : "in", x: 0, y: y + 4 },
          r.name.length > letters ? r.name.slice(0, letters - 1) + "…" : r.name,
        ),
        r.dense &&
          s("rect", {
            class: "band" + (r.off ? " off" : ""),
            x: x(Math.max(from, r.dense[0])),
            y: y - 5,
            width: Math.max(2, x(Math.min(to, r.dense[1])) - x(Math.max(from, r.dense[0]))),
            height: 10,
            rx: 2,
            "data-tip": `${r.name}\n${r.said}`,
          }),
        r.ticks.filter((t) => t.t >= from && t.t <= to).map((t) => tickOf(r, t, y)),
      ];
    }),
  );
}

// A column for each minute, a row for each bucket. columns: [{t, buckets}]; p50 and p99 are lines.
const SCALE = [
  [1, "1 ms"],
  [10, "10 ms"],
  [100, "0.1 s"],
  [1000, "1 s"],
  [10000, "10 s"],
  [60000, "1 min"],
  [600000, "10 min"],
];
export function heat(columns, { width, label, step = MINUTE, rowHeight = 12 }) {
  if (columns.length < 2) return h("p", { class: "empty" }, "There is no history of it yet.");
  const [left, bottom, top] = [62, 20, 4];
  const height = top + ROWS * rowHeight + bottom;
  const cells = columns.map((c) => rows(c.buckets));
  const most = Math.max(1, ...cells.flat());
  const [from, to] = [columns[0].t, columns.at(-1).t + step];
  const x = (t) => left + ((t - from) / (to - from)) * (width - left - 8);
  const wide = x(from + step) - left;
  const y = (ms) => top + (ROWS - 1 - Math.max(-1, Math.min(ROWS - 1, Math.log2(ms)))) * rowHeight;
  const values = [0.5, 0.99].map((p) => columns.map((c) => percentile(c.buckets, p)));
  const curve = (list) => path(list.map((v, i) => v !== null && [x(columns[i].t) + wide / 2, y(v)]));
  return pic(
    width,
    height,
    label,
    SCALE.map(([ms, text]) => [axis(left, width - 8, y(ms), y(ms)), beside(left - 6, y(ms), text)]),
    columns.map(({ t }, i) =>
      cells[i].map(
        (n, j) =>
          n > 0 &&
          s("rect", {
            class: "cell",
            x: x(t),
            y: top + (ROWS - 1 - j) * rowHeight,
            width: Math.max(0.5, wide - 0.4),
            height: rowHeight - 0.6,
            opacity: (0.1 + 0.9 * Math.sqrt(n / most)).toFixed(2),
            "data-tip": `${hm(t)} ${zoneName()}\n${exact(n)} jobs, ${rowText(j, span)}\np50 ${span(values[0][i])}, p99 ${span(values[1][i])}`,
          }),
      ),
    ),
    values.map((list, i) => [
      s("path", { class: "halo", d: curve(list) }),
      s("path", { class: i === 0 ? "stroke ink" : "stroke two", d: curve(list) }),
    ]),
    ticks(from, to, width - left).map((t) => below(x(t), height - 4, hm(t))),
  );
}

// A job from its acceptance to `to`: thin where it waited, a bar where it ran.
export function life({ created, runs, leaseMs }, { to, width, label }) {
  const from = Math.min(created, ...runs.map((r) => r.start));
  const [height, y, left] = [92, 38, 2];
  const x = (t) => left + ((t - from) / Math.max(1, to - from)) * (width - 60);
  const bar = (r) => {
    const a = x(r.start);
    const b = Math.max(a + 3, x(r.end ?? to));
    const ran = span((r.end ?? to) - r.start);
    return [
      r.kind === "killed" &&
        r.lease > r.end &&
        s("rect", { class: "leasebar", x: b, y, width: x(r.lease) - b, height: 18 }),
      s("rect", {
        class: r.kind,
        x: a,
        y,
        width: b - a,
        height: 18,
        rx: 2,
        "data-tip": plain(`run ${r.n}\n${holderText(r.worker)}\n${ran}${r.error ? "\n" + r.error : ""}`),
      }),
      s("text", { class: "in", x: a, y: y - 8 }, (b - a > 40 ? "run " : "") + r.n),
      r.kind === "killed" && s("line", { class: "killline", x1: b, x2: b, y1: y - 6, y2: y + 24 }),
    ];
  };
  return pic(
    width,
    height,
    label,
    ticks(from, to, width * 0.8).map((t) => [axis(x(t), x(t), 14, 68), below(x(t), 84, hms(t))]),
    s("line", { class: "axis2", x1: x(from), x2: x(to), y1: y + 9, y2: y + 9, "stroke-width": 2 }),
    s("circle", { class: "birth", cx: x(from) + 4, cy: y + 9, r: 4.5, "data-tip": "accepted\n" + hms(created) }),
    runs.map(bar),
    leaseMs > 0 &&
      s("rect", { class: "lease", x: x(to), y: y + 0.5, width: Math.min(50, x(to + leaseMs) - x(to)), height: 17 }),
  );
}

// entries: [[the class of what is drawn, its meaning]]
const sample = (kind) =>
  kind === "killline" || kind === "overline"
    ? s("line", { class: kind, x1: 9, x2: 9, y1: 0, y2: 10 })
    : kind.startsWith("stroke")
      ? s("path", { class: kind, d: "M1 6L17 4" })
      : s("rect", { class: kind, x: 0.5, y: 0.5, width: 17, height: 9, rx: kind === "leasebar" ? 0 : 2 });
export const legend = (entries) =>
  h(
    "div",
    { class: "legend" },
    entries.map(([kind, text]) =>
      h("span", {}, s("svg", { viewBox: "0 0 18 10", class: "pic", "aria-hidden": "true" }, sample(kind)), text),
    ),
  );
