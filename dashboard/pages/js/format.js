// format.js - numbers, times and texts as the reader sees them. No document is needed here.

// Characters that would change how the text around them looks: controls, and marks of direction.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
export const plain = (text) =>
  String(text).replace(HIDDEN, (c) => "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));

// ---- numbers ----
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const exact = (n) => whole.format(n);
export function count(n) {
  if (n < 99999.5) return n > 0 && n < 10 && !Number.isInteger(n) ? n.toFixed(1) : whole.format(n);
  if (n < 999500) return Math.round(n / 1e3) + " k";
  return (n < 9.95e6 ? (n / 1e6).toFixed(1) : whole.format(n / 1e6)) + " M";
}
export const several = (n, one, many = one + "s") => `${exact(n)} ${n === 1 ? one : many}`;
export const percent = (p) => (p > 0 && p < 0.05 ? "< 0.1" : p > 0 && p < 9.95 ? p.toFixed(1) : Math.round(p)) + " %";

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return (unit > 0 && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[unit];
}

// The length of a time: two units at most.
export function span(ms) {
  const t = Math.max(0, ms);
  if (t < 999.5) return Math.round(t) + " ms";
  if (t < 9950) return (t / 1000).toFixed(1) + " s";
  if (t < 59500) return Math.round(t / 1000) + " s";
  const s = Math.round(t / 1000);
  const min = Math.floor(s / 60);
  if (min < 60) return min + " min" + (min < 10 && s % 60 ? ` ${s % 60} s` : "");
  if (min < 48 * 60) return Math.floor(min / 60) + " h" + (min % 60 ? ` ${min % 60} min` : "");
  return Math.floor(min / 1440) + " days";
}

// ---- times ----
// `mode` is what the reader has chosen: ago, utc or local. `now` follows the clock of Redis.
export const clock = {
  mode: "ago",
  local: Intl.DateTimeFormat().resolvedOptions().timeZone,
  ahead: 0,
  stopped: null,
  now: () => clock.stopped ?? Date.now() + clock.ahead,
};
const formats = new Map(); // to make one costs 50 us and more
function parts(ms, zone, options) {
  const key = zone + JSON.stringify(options);
  if (!formats.has(key))
    formats.set(key, new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options }));
  return formats.get(key).format(ms);
}
export const zone = () => (clock.mode === "local" ? clock.local : "UTC");
export const hm = (ms, z = zone()) => parts(ms, z, { hour: "2-digit", minute: "2-digit" });
export const hms = (ms, z = zone()) => parts(ms, z, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const iso = (ms) => new Date(ms).toISOString();
// "27 Nov ", or nothing for the day of now.
export function day(ms, z = zone()) {
  const key = (t) => parts(t, z, { year: "numeric", month: "2-digit", day: "2-digit" });
  return key(ms) === key(clock.now()) ? "" : parts(ms, z, { day: "numeric", month: "short" }) + " ";
}
export const zoneName = () =>
  zone() === "UTC"
    ? "UTC"
    : parts(clock.now(), clock.local, { timeZoneName: "short", hour: "2-digit" }).split(" ").pop();
export const moment = (ms) => day(ms) + hms(ms) + (zone() === "UTC" ? "Z" : "");
// A zone that this browser does not know has no hour.
export function inZone(ms, z) {
  try {
    return hm(ms, z);
  } catch {
    return null;
  }
}

// ---- names ----
// A worker's id is host-pid-random; a name of another form stays whole.
export function holder(id) {
  const found = /^(.+)-([1-9][0-9]*)-[^-]+$/.exec(id ?? "");
  return found ? { host: found[1], pid: Number(found[2]) } : { host: id ?? "", pid: null };
}
export function holderText(id) {
  const { host, pid } = holder(id);
  return pid === null ? host : `${host} pid ${pid}`;
}

// A word of a command line as a shell needs it.
export const word = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'");

// A name with the options of its command: one that looks like an option stands behind them.
export const named = (name, options = "") =>
  name.startsWith("-") ? `${options} -- ${word(name)}`.trimStart() : word(name) + options;

// The commands of a job. Another queue may have its id, too; null: its queue is not known yet.
export const jobCommands = (id, queue) =>
  ["show", "why", "logs"].map((verb) => `holdfast job ${verb} ${named(id, queue ? ` -q ${word(queue)}` : "")}`);
