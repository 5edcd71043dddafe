/** The options of a job, checked and turned into fields of its record. docs/jobs.md explains each. */
import { shown, toMs, toUnixMs, type Duration } from "./durations.js";
import { checkName } from "./ids.js";
import { checkHeaders, type Fields, type Headers } from "./record.js";

/** What `enqueue` and `call` take as their second argument. */
export interface EnqueueOptions {
  /** The queue of the job; without it that of its type. */
  queue?: string;
  /** Its id; without it one is made. While a job with this id waits, runs or is dead, another one is not accepted. */
  id?: string;
  /** It starts no sooner than after this time. */
  delay?: Duration;
  /** It starts no sooner than at this time: a Date, or a text with its zone. */
  at?: Date | string;
  /** Texts beside the data, at most 4 KiB. */
  headers?: Headers;
  /** After this many failed attempts it is dead: 20 without it. */
  maxAttempts?: number;
  /** A run that takes longer is ended, and is a failed attempt. */
  timeout?: Duration;
  /** How long it is kept with its result when it is done; without it, it has no result. */
  keep?: Duration;
  /** Waiting jobs of a higher priority start first. */
  priority?: "high" | "normal" | "low";
  /** If it has not started after this time, it expires. */
  startWithin?: Duration;
  /** What becomes of it when it expires: `drop` (without it) removes it, `dead` keeps it as a dead job. */
  expired?: "drop" | "dead";
  /** The type of a job that is enqueued when this one is dead. */
  onDead?: string;
  /** A unique key, at most 256 bytes: its queue holds at most one job with it at a time. */
  unique?: string;
  /** When it frees its key: at its `end` (without it), at its `start`, or when it is `done`, also if it was dead before. */
  uniqueUntil?: "end" | "start" | "done";
  /** Its key is taken for at least this time, even if it is done sooner. */
  uniqueFor?: Duration;
  /** What happens to it if its key is taken: `skip` without it. */
  onConflict?: "skip" | "replace" | "next" | "cancel";
  /** It starts when no other job with its key has come for this time. It needs `unique` and `maxWait`. */
  debounce?: Duration;
  /** With `debounce`: it starts at the latest after this time. */
  maxWait?: Duration;
  /** One job with its key is accepted in this time. It needs `unique`. */
  throttle?: Duration;
  /** Redis remembers its end for a caller that asks a moment later. */
  awaited?: boolean;
  /** Removes a dead job with the chosen `id` first. */
  replaceDead?: boolean;
}

const COUNT_MAX = 1000000;
export const TIMEOUT_MAX = 30 * 86400000;

type Check = (value: unknown, name: string) => number | string | Headers | undefined;

export function count(value: unknown, name: string, most = COUNT_MAX): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > most)
    throw new TypeError(`${name}: expected a whole number from 1 to ${most}, found ${shown(value)}`);
  return value;
}

const duration: Check = (value, name) => toMs(value as Duration, name, 1);

/** The first choice is what Redis takes without the field. */
export function choice(...choices: [string, ...string[]]): Check {
  return (value, name) => {
    if (typeof value !== "string" || !choices.includes(value))
      throw new TypeError(`${name}: expected ${listOf(choices)}, found ${shown(value)}`);
    return value === choices[0] ? undefined : value;
  };
}

export function listOf(choices: string[]): string {
  const quoted = choices.map((each) => `"${each}"`);
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

const flag: Check = (value, name) => {
  if (typeof value !== "boolean") throw new TypeError(`${name}: expected true or false, found ${shown(value)}`);
  return value ? 1 : undefined;
};

const headers: Check = (value) => {
  checkHeaders(value);
  return { ...value };
};

const unique: Check = (value, name) => {
  if (typeof value !== "string" || value === "" || Buffer.byteLength(value) > 256)
    throw new TypeError(`${name}: expected a text of 1 to 256 bytes, found ${shown(value)}`);
  return value;
};

/** Each option, its field of the record, and what it may be. Options without a field are no part of the record. */
const FIELDS: Record<keyof EnqueueOptions, readonly [string, Check] | null> = {
  queue: null,
  id: null,
  delay: null,
  at: null,
  headers: ["headers", headers],
  maxAttempts: ["max_attempts", count],
  timeout: ["timeout", (value, name) => toMs(value as Duration, name, 1, TIMEOUT_MAX)],
  keep: ["keep", duration],
  priority: ["priority", choice("normal", "high", "low")],
  startWithin: ["start_within", duration],
  expired: ["expired", choice("drop", "dead")],
  onDead: ["on_dead", checkName],
  unique: ["unique", unique],
  uniqueUntil: ["unique_until", choice("end", "start", "done")],
  uniqueFor: ["unique_for", duration],
  onConflict: ["on_conflict", choice("skip", "replace", "next", "cancel")],
  debounce: ["debounce", duration],
  maxWait: ["max_wait", duration],
  throttle: ["throttle", duration],
  awaited: ["awaited", flag],
  replaceDead: ["replace_dead", flag],
};

const NEED_UNIQUE = ["uniqueUntil", "uniqueFor", "onConflict", "debounce", "maxWait", "throttle"] as const;

export function checkObject(options: unknown): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new TypeError(`options: expected an object, found ${shown(options)}`);
}

export function fieldsOf(options: EnqueueOptions): Fields {
  checkObject(options);
  const fields: Fields = {};
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(FIELDS, name))
      throw new TypeError(`expected one of the options ${Object.keys(FIELDS).join(", ")}, found '${name}'`);
    const field = FIELDS[name as keyof EnqueueOptions];
    if (value === undefined || field === null) continue;
    const made = field[1](value, name);
    if (made !== undefined) fields[field[0]] = made;
  }
  checkTogether(options, fields);
  return fields;
}

function checkTogether(options: EnqueueOptions, fields: Fields): void {
  const has = (name: keyof EnqueueOptions): boolean => fields[FIELDS[name]![0]] !== undefined;
  const later = options.delay !== undefined || options.at !== undefined;
  if (!has("unique")) for (const name of NEED_UNIQUE) if (has(name)) throw new TypeError(`${name} needs unique`);
  if (has("expired") && !has("startWithin")) throw new TypeError("expired: 'dead' needs startWithin");
  if (has("debounce") !== has("maxWait")) throw new TypeError("debounce and maxWait need each other");
  if (options.delay !== undefined && options.at !== undefined) throw new TypeError("expected delay or at, found both");
  if (has("debounce")) {
    for (const name of ["uniqueUntil", "uniqueFor", "onConflict", "throttle"] as const)
      if (has(name)) throw new TypeError(`expected no ${name} with debounce`);
    if (later) throw new TypeError("expected no delay and no time with debounce");
  }
  if (has("throttle") && (has("uniqueFor") || (fields.on_conflict ?? "next") !== "next"))
    throw new TypeError("expected no uniqueFor, and no onConflict but skip and next, with throttle");
}

/** 0: now; a time in Unix ms; or minus a delay. */
export function dueOf(options: EnqueueOptions): number {
  if (options.delay !== undefined) return 0 - toMs(options.delay, "delay");
  if (options.at !== undefined) return Math.max(1, toUnixMs(options.at, "at"));
  return 0;
}
