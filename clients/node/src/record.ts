/**
 * A job as Redis keeps it: a line of JSON, a newline, the payload (docs/keys.md, "The record").
 * The fields come in one order, so that all languages write the same bytes.
 */
import { shown } from "./durations.js";

export type Headers = Readonly<Record<string, string>>;
export type Fields = Record<string, number | string | Headers>;

const HEADERS_MAX = 4096;

// Fields that any script accepts, then those that need `enqueue_with`.
const PLAIN = ["max_attempts", "timeout", "keep"];
const OPTIONS = [
  "priority",
  "start_within",
  "expired",
  "on_dead",
  "awaited",
  "replace_dead",
  "unique_until",
  "on_conflict",
  "unique_for",
  "debounce",
  "max_wait",
  "throttle",
];
const ORDER = [...PLAIN, ...OPTIONS];

export function hasOptions(fields: Fields): boolean {
  return "unique" in fields || OPTIONS.some((name) => name in fields);
}

/** A text between quotes of JSON; only what must be escaped is. */
function quoted(text: string): string {
  if (/[\ud800-\udfff]/.test(text) && Buffer.from(text).toString() !== text)
    throw new TypeError(`expected text that UTF-8 can express, found ${shown(text)}`);
  return (
    '"' + text.replace(/[\x00-\x1f"\\]/g, (found) => "\\u" + found.charCodeAt(0).toString(16).padStart(4, "0")) + '"'
  );
}

function objectOf(texts: Headers): string {
  return (
    "{" +
    Object.entries(texts)
      .map(([name, value]) => `${quoted(name)}:${quoted(value)}`)
      .join(",") +
    "}"
  );
}

export function checkHeaders(headers: unknown): asserts headers is Headers {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers))
    throw new TypeError(`headers: expected an object of texts, found ${shown(headers)}`);
  for (const [name, value] of Object.entries(headers))
    if (typeof value !== "string") throw new TypeError(`headers: expected a text as '${name}', found ${shown(value)}`);
  const size = Buffer.byteLength(objectOf(headers as Headers));
  if (size > HEADERS_MAX) throw new RangeError(`headers: expected at most ${HEADERS_MAX} bytes of JSON, found ${size}`);
}

/** The line and its newline. Without `created` the id tells when the job was made. */
export function recordLine(type: string, created: number | null, fields: Fields): string {
  const parts: string[] = [];
  if (fields.unique !== undefined) parts.push('"unique":' + quoted(String(fields.unique)));
  parts.push(`"type":"${type}"`);
  if (created !== null) parts.push(`"created":${created}`);
  for (const name of ORDER) {
    const value = fields[name];
    if (value !== undefined) parts.push(`"${name}":${typeof value === "string" ? quoted(value) : String(value)}`);
  }
  const headers = fields.headers as Headers | undefined;
  if (headers !== undefined && Object.keys(headers).length > 0) parts.push('"headers":' + objectOf(headers));
  return "{" + parts.join(",") + "}\n";
}
