// histogram.js - counts by the length of a time. The server sends [[upper bound in ms, count], ..] with bounds that
// grow by the square root of two; null is the last one, without an end.

export const ROWS = 23; // of a picture: from 1 ms on, each twice the one before; 70 min and longer are the last

const upper = (row) => 2 ** row;
export const rowOf = (bound) =>
  bound === null ? ROWS - 1 : Math.max(0, Math.min(ROWS - 1, Math.ceil(Math.log2(bound) - 1e-6)));
export const rowText = (row, span) =>
  row === ROWS - 1
    ? `longer than ${span(upper(row - 1))}`
    : `${row ? span(upper(row - 1)) : "0 ms"} to ${span(upper(row))}`;

export function rows(buckets) {
  const list = new Array(ROWS).fill(0);
  for (const [bound, n] of buckets) list[rowOf(bound)] += n;
  return list;
}

// Between the bounds of its bucket, by the geometric mean; null: nothing was counted.
export function percentile(buckets, p) {
  const all = buckets.reduce((sum, [, n]) => sum + n, 0);
  if (all === 0) return null;
  const last = 2 ** 22;
  let before = 0;
  for (const [bound, n] of buckets) {
    if (n > 0 && before + n >= all * p) {
      const high = bound ?? last * Math.SQRT2;
      return (high / Math.SQRT2) * Math.SQRT2 ** ((all * p - before) / n);
    }
    before += n;
  }
  return last;
}

// The bucket counts of several, added up.
export function sum(lists) {
  const found = new Map();
  for (const [bound, n] of lists.flat()) found.set(bound, (found.get(bound) ?? 0) + n);
  return [...found].sort(([a], [b]) => (a ?? Infinity) - (b ?? Infinity));
}
