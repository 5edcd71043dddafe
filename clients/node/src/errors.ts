/** What can go wrong, and what a handler throws to choose a verdict. */
import { toMs, type Duration } from "./durations.js";
import type { JobRef } from "./ref.js";

/** The parent of all errors of this package that are not mistakes of the caller. */
export class HoldfastError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** Redis or a script has refused a request. Nothing was changed. */
export class Refused extends HoldfastError {}

/** Redis has not answered in time. The request may have been executed all the same. */
export class NoAnswer extends HoldfastError {}

/** A job has no result. `text` says why; the message has only its first line. */
export class JobError extends HoldfastError {
  constructor(
    readonly ref: JobRef<unknown>,
    readonly text: string,
  ) {
    super(`${ref.id}: ${text.split("\n", 1)[0]}`);
  }
}

/** The job is not kept when it is done, so it has no result: give it `keep`. */
export class NotKept extends JobError {}

/** The job is dead; `text` is its last error with its stack. */
export class JobDead extends JobError {}

/** The job was cancelled or deleted. */
export class JobCancelled extends JobError {}

/** The job did not start in time. */
export class JobExpired extends JobError {}

/** Redis knows no such job: it is done and is kept no longer, or it never was. */
export class JobUnknown extends JobError {}

/** The job has not ended within the `timeout` of `result()`. It goes on. */
export class ResultTimeout extends JobError {}

export interface VerdictOptions {
  /** The wait before the job runs again. */
  delay?: Duration;
  cause?: unknown;
}

/** A handler throws one of its children to say how its run ends. */
export class Verdict extends HoldfastError {
  readonly delay: number | undefined;

  /** The text may be left out: `new Retry({ delay: "30s" })`. */
  constructor(text?: string | VerdictOptions, options: VerdictOptions = {}) {
    const { delay, ...others } = typeof text === "object" ? text : options;
    super(typeof text === "string" ? text : "", others);
    this.delay = delay === undefined ? undefined : toMs(delay, "delay");
  }
}

/** A failed attempt. The job runs again after `delay`, or after its back-off. */
export class Retry extends Verdict {}

/** Not a failed attempt. The job runs again after `delay`, or when its turn comes. */
export class Release extends Verdict {}

/** The job will not run again until an operator retries it. */
export class Dead extends Verdict {
  constructor(text?: string, options: { cause?: unknown } = {}) {
    super(text, options);
  }
}

/** The job is not wanted any more: it is removed, and counts as cancelled. */
export class Cancel extends Verdict {
  constructor(text?: string, options: { cause?: unknown } = {}) {
    super(text, options);
  }
}

/** A result, a checkpoint or a note is larger than Holdfast keeps: the job is dead, not retried. */
export class TooLarge extends Dead {
  constructor(what: string, most: number, found: number) {
    super(`${what}: expected at most ${most} bytes, found ${found}`);
  }
}

export type StopReason = "timeout" | "cancelled" | "lost" | "stop";

/** The worker ends this run: the reason of `job.signal`. */
export class Interrupted extends HoldfastError {
  constructor(readonly why: StopReason) {
    super(why);
  }

  /** The name by which libraries know that something was ended by its signal. */
  override get name(): string {
    return "AbortError";
  }
}
