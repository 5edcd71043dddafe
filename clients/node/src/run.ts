/** One run of a handler, and the verdict that its end means. The worker and the test modes share it. */
import { join, sep } from "node:path";
import { toMs } from "./durations.js";
import { Cancel, Dead, Release, Verdict, type StopReason } from "./errors.js";
import { runAs, type Job } from "./job.js";
import type { JobType } from "./job_type.js";
import { packageFolder } from "./package.js";
import { Misfit, validated } from "./schema.js";

export const RESULT_MAX = 64 * 1024;
const ERROR_MAX = 4096;
const TRACE_MAX = 16 * 1024;

/** The rest of a run: the next middleware, or the handler. */
export type Next = () => Promise<unknown>;
export type Middleware = (job: Job, next: Next) => unknown;

export interface End {
  word: "done" | "retry" | "dead" | "cancel" | "release";
  delay?: number | undefined;
  error?: string;
  body?: string | Buffer;
  json?: boolean;
}

const NOTHING: End = { word: "done" };

/** Runs the handler of a job. It never rejects. */
export async function run(type: JobType<never, unknown>, job: Job, middleware: readonly Middleware[]): Promise<End> {
  let end: End;
  try {
    end = endOfValue(await call(type, job, middleware));
  } catch (error) {
    end = endOfError(type, job, error);
  }
  return job.broken === undefined ? end : { word: "dead", error: job.broken.message };
}

/** What the handler returns, or throws. A handler that is not async costs no promise. */
export function call(type: JobType<never, unknown>, job: Job, middleware: readonly Middleware[]): unknown {
  return runAs(job, () => {
    const data = type.bytes ? job.payload : parsed(job.payload);
    if (type.schema === undefined) return callAround(type, data, job, middleware);
    return validated(type.schema, data).then((input) => callAround(type, input, job, middleware));
  });
}

function callAround(
  type: JobType<never, unknown>,
  data: unknown,
  job: Job,
  middleware: readonly Middleware[],
): unknown {
  const { handler } = type; // called without a `this`, as it was written
  if (middleware.length === 0) return handler(data as never, job);
  const last: Next = async () => handler(data as never, job);
  return middleware.reduceRight<Next>((next, each) => async () => each(job, next), last)();
}

function parsed(payload: Buffer): unknown {
  if (payload.length === 0) return undefined;
  try {
    return JSON.parse(payload.toString());
  } catch (error) {
    throw new Misfit(
      `payload: expected JSON, found ${payload.length} bytes of something else: ${(error as Error).message}`,
    );
  }
}

/** The handler has returned. */
export function endOfValue(value: unknown): End {
  if (value === undefined) return NOTHING;
  const json = !(value instanceof Uint8Array);
  let body: string | Buffer | undefined;
  try {
    body = json ? JSON.stringify(value) : Buffer.from(value);
  } catch (error) {
    return { word: "dead", error: cut(`result: ${(error as Error).message}`) };
  }
  if (body === undefined)
    return { word: "dead", error: `result: expected a value that JSON can express, found a ${typeof value}` };
  const size = Buffer.byteLength(body);
  if (size > RESULT_MAX) return { word: "dead", error: `result: expected at most ${RESULT_MAX} bytes, found ${size}` };
  return { word: "done", body, json };
}

/** The handler has thrown. */
export function endOfError(type: JobType<never, unknown>, job: Job, error: unknown): End {
  if (error instanceof Verdict) return endOfVerdict(error);
  if (error instanceof Misfit) return { word: "dead", error: cut(error.message) };
  if (job.stopReason !== undefined && isAbort(error)) return interrupted(job.stopReason, error);
  const text = textOf(error);
  const body = stackOf(error);
  const { retryOn, deadOn = [], backoff } = type.options;
  const retried = retryOn === undefined || retryOn.some((kind) => error instanceof kind);
  if (!retried || deadOn.some((kind) => error instanceof kind)) return { word: "dead", error: text, body };
  try {
    const delay = backoff?.(job.attempt, error);
    return { word: "retry", delay: delay == null ? undefined : toMs(delay, "backoff"), error: text, body };
  } catch (fault) {
    return {
      word: "retry",
      error: text,
      body: `${body}\n\nand the backoff of this job failed:\n${textOf(fault)}\n${stackOf(fault)}`,
    };
  }
}

/** The error of a run in a test mode: the text that the record of a real job has. */
export function errorTextOf(error: unknown): string {
  return error instanceof Verdict ? (endOfVerdict(error).error ?? "") : textOf(error);
}

function endOfVerdict(error: Verdict): End {
  const word =
    error instanceof Dead
      ? "dead"
      : error instanceof Cancel
        ? "cancel"
        : error instanceof Release
          ? "release"
          : "retry";
  const needsText = word === "dead" || word === "retry";
  const end: End = { word, delay: error.delay, error: cut(error.message || (needsText ? error.name : "")) };
  return error.cause instanceof Error ? { ...end, body: `${textOf(error.cause)}\n${stackOf(error.cause)}` } : end;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function interrupted(why: StopReason, error: unknown): End {
  if (why === "cancelled") return { word: "cancel", error: "cancelled" };
  if (why === "timeout") return { word: "retry", error: "timed out", body: stackOf(error) };
  return { word: "release" };
}

// ---- texts ----

export function textOf(error: unknown): string {
  try {
    return cut(
      error instanceof Error ? [error.name, error.message].filter((part) => part !== "").join(": ") : String(error),
    );
  } catch {
    return "(the text of the error cannot be made)";
  }
}

/** At most 4 KiB of whole characters. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= ERROR_MAX) return text;
  return bytes.toString("utf8", 0, ERROR_MAX).replace(/\ufffd+$/, "");
}

const OURS = [join(packageFolder, "dist") + sep, "AsyncLocalStorage.run (node:"];

/** The stack without its first line, which the error has, and without the frames of this package; then the causes'. */
export function stackOf(error: unknown): string {
  const lines: string[] = [];
  const seen = new Set<unknown>();
  for (let each = error; each instanceof Error && !seen.has(each); each = each.cause) {
    if (seen.size > 0) lines.push(`Caused by ${textOf(each)}`);
    seen.add(each);
    const frames = String(each.stack ?? "")
      .split("\n")
      .filter((line) => /^\s+at /.test(line));
    lines.push(...frames.filter((line) => !OURS.some((part) => line.includes(part))));
  }
  const bytes = Buffer.from(lines.join("\n"));
  return bytes.length <= TRACE_MAX
    ? bytes.toString()
    : bytes.toString("utf8", bytes.length - TRACE_MAX).replace(/^\ufffd+/, "");
}
