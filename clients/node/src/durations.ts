/** Durations and times. A number is a count of ms, as everywhere in Node; a text has its unit. */

/** Ms, or a text such as "500ms", "30s", "1h30m" or "2d". */
export type Duration = number | string;

const DELAY_MAX = 3155760000000; // 100 years of 365.25 days
const TIME_MAX = 253402300799999; // the end of the year 9999
const UNITS = ["d", "h", "m", "s", "ms"] as const;
const MS: Record<(typeof UNITS)[number], number> = { d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1 };
const WHOLE = /^(?:(\d{1,15})d)?(?:(\d{1,15})h)?(?:(\d{1,15})m)?(?:(\d{1,15})s)?(?:(\d{1,15})ms)?$/;

export function toMs(value: Duration, name: string, least = 0, most = DELAY_MAX): number {
  const ms = typeof value === "number" ? value : ofText(value);
  if (ms === null || !Number.isInteger(ms))
    throw new TypeError(
      `${name}: expected a whole number of ms, or a duration such as '30s' or '1h30m', found ${shown(value)}`,
    );
  if (ms < least || ms > most)
    throw new RangeError(`${name}: expected a duration from ${least} ms to ${most} ms, found ${ms} ms`);
  return ms;
}

function ofText(value: unknown): number | null {
  if (typeof value !== "string" || value === "") return null;
  const parts = WHOLE.exec(value);
  if (parts === null) return null;
  return UNITS.reduce((sum, unit, i) => sum + Number(parts[i + 1] ?? 0) * MS[unit], 0);
}

/** A Date, or a text with its zone, in Unix ms. */
export function toUnixMs(value: Date | string, name: string): number {
  const known = value instanceof Date || (typeof value === "string" && /\d(Z|[+-]\d\d:?\d\d)$/.test(value));
  const ms = known ? new Date(value).getTime() : NaN;
  if (Number.isNaN(ms))
    throw new TypeError(`${name}: expected a Date, or a text such as '2030-01-31T08:00:00Z', found ${shown(value)}`);
  if (ms < 0 || ms > TIME_MAX)
    throw new RangeError(`${name}: expected a time from 1970 to 9999, found ${shown(value)}`);
  return ms;
}

/** A value in the text of an error. */
export function shown(value: unknown): string {
  if (typeof value === "string") return `'${value}'`;
  try {
    const text = JSON.stringify(value) ?? String(value);
    return text.length <= 60 ? text : text.slice(0, 57) + "...";
  } catch {
    return String(value);
  }
}
