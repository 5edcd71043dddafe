/** The job that a handler runs. */
import { AsyncLocalStorage } from "node:async_hooks";
import { Interrupted, TooLarge, type StopReason } from "./errors.js";
import type { JobFrame } from "./pipe/frames.js";
import type { Headers } from "./record.js";
import { shown } from "./durations.js";

const CHECKPOINT_MAX = 4096;
const NOTE_MAX = 256;
const NO_HEADERS: Headers = Object.freeze({});
const REASONS = ["timeout", "cancelled", "lost", "stop"];

/** Where a run says how far it is. */
export interface Channel {
  progress(run: number, percent: number, note: string): void;
  checkpoint(run: number, data: Buffer): void;
  log(run: number, text: string): void;
}

/** One run of a job. A handler gets it as its second argument. */
export class Job {
  private why: StopReason | undefined;
  private controller: AbortController | undefined;
  /** A limit that the run has broken, whether its handler has caught the error or not. */
  broken: TooLarge | undefined;

  constructor(
    private readonly frame: JobFrame,
    readonly payload: Buffer,
    private saved: Buffer | undefined,
    private readonly channel: Channel,
  ) {}

  /** A job for a test of a handler. It keeps what it is told in `told`. */
  static fake(fields: FakeFields = {}): Job & { readonly told: Told } {
    const { payload = "", checkpoint, maxAttempts, created, ...others } = fields;
    const frame = {
      t: "job",
      run: 0,
      id: "fake",
      type: "fake",
      queue: "default",
      attempt: 1,
      max_attempts: maxAttempts ?? 20,
      fence: "1",
      created: created?.getTime(),
      ...others,
    } as JobFrame;
    const told: Told = { progress: [], log: [] };
    const job = new Job(frame, Buffer.from(payload), checkpoint === undefined ? undefined : Buffer.from(checkpoint), {
      progress: (_run, percent, note) => void told.progress.push([percent, note]),
      checkpoint: () => {},
      log: (_run, text) => void told.log.push(text),
    });
    return Object.assign(job, { told });
  }

  get id(): string {
    return this.frame.id;
  }

  get type(): string {
    return this.frame.type;
  }

  get queue(): string {
    return this.frame.queue;
  }

  get attempt(): number {
    return this.frame.attempt;
  }

  get maxAttempts(): number {
    return this.frame.max_attempts;
  }

  /** A number that rises with every later run of the same job. */
  get fence(): bigint {
    return BigInt(this.frame.fence);
  }

  /** The run is cancelled after this many ms. */
  get timeout(): number | undefined {
    return this.frame.timeout ?? undefined;
  }

  /** When the job was enqueued, if that is known. */
  get created(): Date | undefined {
    return timeOf(this.frame.created);
  }

  /** The tick of the schedule that made the job. */
  get scheduled(): Date | undefined {
    return timeOf(this.frame.scheduled);
  }

  /** A W3C traceparent. */
  get trace(): string | undefined {
    return this.frame.trace ?? undefined;
  }

  get headers(): Headers {
    return this.frame.headers ?? NO_HEADERS;
  }

  /** Aborts at the time-out, a cancel, a lost lock, and when the worker's patience at its stop is over. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.why !== undefined) this.controller.abort(new Interrupted(this.why));
    }
    return this.controller.signal;
  }

  /** The run should end soon. */
  get stopping(): boolean {
    return this.why !== undefined;
  }

  get stopReason(): StopReason | undefined {
    return this.why;
  }

  /** Ends the run: for the library, and for tests. */
  interrupt(why: string): void {
    this.why ??= REASONS.includes(why) ? (why as StopReason) : "cancelled";
    this.controller?.abort(new Interrupted(this.why));
  }

  /** Tells how far the run is: 0 to 100, and a note of at most 256 bytes. */
  progress(percent: number, note = ""): void {
    if (!(percent >= 0 && percent <= 100))
      throw new RangeError(`expected a percent from 0 to 100, found ${shown(percent)}`);
    this.limit("note", NOTE_MAX, Buffer.byteLength(note));
    this.channel.progress(this.frame.run, Math.floor(percent), note);
  }

  /** What an earlier run has kept. With data: keeps up to 4 KiB for the next run; an empty text removes it. */
  checkpoint(data?: string | Uint8Array): Buffer | undefined {
    if (data !== undefined) {
      const bytes = Buffer.from(data as string);
      this.limit("checkpoint", CHECKPOINT_MAX, bytes.length);
      this.channel.checkpoint(this.frame.run, bytes);
      this.saved = bytes.length > 0 ? bytes : undefined;
    }
    return this.saved;
  }

  /** Adds lines to the log of this run (`holdfast job logs`). */
  log(text: string): void {
    if (text !== "") this.channel.log(this.frame.run, text);
  }

  /** The payload as JSON. */
  json(): unknown {
    return JSON.parse(this.payload.toString());
  }

  private limit(what: string, most: number, found: number): void {
    if (found <= most) return;
    this.broken = new TooLarge(what, most, found);
    throw this.broken;
  }
}

export interface FakeFields {
  id?: string;
  type?: string;
  queue?: string;
  attempt?: number;
  maxAttempts?: number;
  headers?: Headers;
  timeout?: number;
  created?: Date;
  payload?: string | Uint8Array;
  checkpoint?: string | Uint8Array;
}

/** What a fake job was told. */
export interface Told {
  progress: [percent: number, note: string][];
  log: string[];
}

function timeOf(ms: number | null | undefined): Date | undefined {
  return ms ? new Date(ms) : undefined;
}

const running = new AsyncLocalStorage<Job>();

/** The job of the present run, in everything that its handler calls and awaits. */
export function currentJob(): Job | undefined {
  return running.getStore();
}

export function runAs<T>(job: Job, fn: () => T): T {
  return running.run(job, fn);
}
