// Numbers, times, names and texts, as the pages show them.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as f from "../../dashboard/pages/js/format.js";
import { address } from "../../dashboard/pages/js/api.js";
import { words } from "../../dashboard/pages/js/cron.js";

const table = (name, call, rows) =>
  test(name, () => {
    for (const [given, wanted] of rows) assert.equal(call(given), wanted, `${name}(${JSON.stringify(given)})`);
  });

table("count", f.count, [
  [0, "0"],
  [1.25, "1.3"],
  [12788, "12,788"],
  [99999, "99,999"],
  [100000, "100 k"],
  [312400, "312 k"],
  [999499, "999 k"],
  [999500, "1.0 M"],
  [9940000, "9.9 M"],
  [48201992, "48 M"],
]);
table("span", f.span, [
  [-5, "0 ms"],
  [0, "0 ms"],
  [999, "999 ms"],
  [999.6, "1.0 s"],
  [1000, "1.0 s"],
  [9949, "9.9 s"],
  [9950, "10 s"],
  [59499, "59 s"],
  [59500, "1 min"],
  [432000, "7 min 12 s"],
  [622000, "10 min"],
  [3600000, "1 h"],
  [5400000, "1 h 30 min"],
  [48 * 3600000, "2 days"],
]);
table("bytes", f.bytes, [
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.5 KiB"],
  [65536, "64 KiB"],
  [1310000000, "1.2 GiB"],
]);
table("percent", f.percent, [
  [0, "0 %"],
  [0.01, "< 0.1 %"],
  [0.44, "0.4 %"],
  [9.96, "10 %"],
  [38.2, "38 %"],
]);
table("holderText", f.holderText, [
  ["web1-4711-5f1c9a3e", "web1 pid 4711"],
  ["my-host-17-ab", "my-host pid 17"],
  ["plain", "plain"],
  ["host-x-y", "host-x-y"],
  ["", ""],
  [null, ""],
]);
table("plain", f.plain, [
  ["tab\tand\nline", "tab\tand\nline"],
  ["\u202egnp.exe", "U+202Egnp.exe"],
  ["\u0000\u001b[31m\u007f", "U+0000U+001B[31mU+007F"],
  ["<b>&amp;</b>", "<b>&amp;</b>"],
  [5, "5"],
]);
table("named", (name) => `queue show ${f.named(name)}; cron run ${f.named(name, " -q q")}`, [
  ["mail", "queue show mail; cron run mail -q q"],
  ["-mail", "queue show -- -mail; cron run -q q -- -mail"],
]);
table("jobCommands", ([id, queue]) => f.jobCommands(id, queue)[2], [
  [["j", "mail"], "holdfast job logs j -q mail"],
  [["-j", "-q"], "holdfast job logs -q -q -- -j"],
  [["j", null], "holdfast job logs j"],
]);
table("word", f.word, [
  ["mail", "mail"],
  ["a b", "'a b'"],
  ["it's; rm -rf", "'it'\\''s; rm -rf'"],
  ["", "''"],
]);

test("a moment is relative to the clock of Redis, in the zone that was chosen", () => {
  const at = Date.UTC(2026, 10, 27, 3, 12, 7);
  f.clock.stopped = Date.UTC(2026, 10, 28);
  f.clock.mode = "utc";
  assert.equal(f.moment(at), "27 Nov 03:12:07Z");
  f.clock.stopped = at + 1000;
  assert.equal(f.moment(at), "03:12:07Z");
  f.clock.mode = "local";
  f.clock.local = "America/New_York";
  assert.equal(f.hm(at), "22:12");
  assert.equal(f.day(at), "");
  f.clock.mode = "ago";
  f.clock.stopped = null;
  f.clock.ahead = 5000;
  assert.ok(Math.abs(f.clock.now() - Date.now() - 5000) < 100);
  f.clock.ahead = 0;
});

test("a zone that is not known has no hour", () => {
  assert.equal(f.inZone(0, "Mars/Olympus"), null);
  assert.equal(f.inZone(0, "Asia/Kolkata"), "05:30");
});

test("an address escapes its names, and leaves out what is not given", () => {
  assert.equal(
    address(["queues", "a/b?c", "jobs"], { state: "ready", type: "", after: null, match: "x&y" }),
    "queues/a%2Fb%3Fc/jobs?state=ready&match=x%26y",
  );
  assert.equal(address(["jobs", ".."]), "jobs/..");
});
table("words", words, [
  ["0 4 * * *", "each day at 04:00"],
  ["30 8,18 * * *", "each day at 08:30 and 18:30"],
  ["30 9 * * 1-5", "Monday to Friday at 09:30"],
  ["5 0 * * SAT,0", "Saturday and Sunday at 00:05"],
  ["0 6 1 * *", "on the 1st at 06:00"],
  ["0 6 2,13,23 * *", "on the 2nd, 13th and 23rd at 06:00"],
  ["0 0 1 JAN *", "on 1 January at 00:00"],
  ["15 */6 * * *", "at minute 15 of each 6th hour"],
  ["15 * * * mon-fri", "Monday to Friday, at minute 15 of each hour"],
  ["*/15 * * * *", "every 15 min"],
  ["* * * * *", "every minute"],
  // Each of these would need more words, or would be said wrongly.
  ["*/7 * * * *", ""],
  ["0 */5 * * *", ""],
  ["0 9-17 * * *", ""],
  ["0 6 1 * 1", ""],
  ["0 6 L * *", ""],
  ["0 6 * * 5#2", ""],
  ["0 6 * * 1-3,5", ""],
  ["0 6 1 1,7 *", ""],
  ["@daily", ""],
]);
