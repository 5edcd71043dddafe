/**
 * Tests of code that enqueues, without Redis. Data go through JSON, as they do in Redis.
 *
 *     using q = hf.testing("fake");      // jobs are kept in a list, until the end of the block
 *     await signUp("ada@example.com");
 *     assert.deepEqual(q.jobs[0].data, { to: "ada@example.com" });
 *     await q.runAll();                  // runs them, and those that they enqueue
 */
import type { Call } from "./call.js";
import { Cancel, Dead, HoldfastError, JobCancelled, JobDead, Release, Retry } from "./errors.js";
import type { Holdfast } from "./holdfast.js";
import { Job } from "./job.js";
import type { JobFrame } from "./pipe/frames.js";
import type { Headers } from "./record.js";
import { JobRef, type Outcome, type State } from "./ref.js";
import { call as callHandler, endOfValue, errorTextOf } from "./run.js";

const MAX_ATTEMPTS = 20; // of a worker without other settings

export type Mode = "fake" | "inline";

/** A job of a test mode. */
export class FakeJob extends JobRef {
  readonly type: string;
  readonly payload: Buffer;
  readonly headers: Headers;
  /** The fields of its record, as in docs/jobs.md. */
  readonly options: Readonly<Record<string, unknown>>;
  /** When it is to start; undefined: at once. */
  due: Date | undefined;
  ended: State = "waiting";
  error: unknown;
  value: unknown;
  attempts = 0;

  readonly #hf: Holdfast;

  constructor(
    hf: Holdfast,
    call: Call,
    private readonly test: Testing,
  ) {
    super(hf, call.plan.id ?? hf.newId(), call.queue, "new", undefined, call.plan.kept);
    this.#hf = hf;
    const record = Buffer.from(call.record(null) as string);
    const end = record.indexOf(10);
    const { type, headers = {}, ...options } = JSON.parse(record.toString("utf8", 0, end)) as Record<string, unknown>;
    this.type = String(type);
    this.payload = record.subarray(end + 1);
    this.headers = headers as Headers;
    this.options = options;
    const { due } = call.plan; // a delay is negative
    this.due = due === 0 ? undefined : new Date(due > 0 ? due : Date.now() - due);
  }

  /** The payload as JSON, or as it is. */
  get data(): unknown {
    if (this.payload.length === 0) return undefined;
    try {
      return JSON.parse(this.payload.toString());
    } catch {
      return this.payload;
    }
  }

  override async state(): Promise<State> {
    return this.ended;
  }

  override async cancel(): Promise<boolean> {
    if (this.ended !== "waiting") return false;
    this.test.remove(this, "cancelled");
    return true;
  }

  override async result(): Promise<unknown> {
    this.mustBeKept();
    if (this.ended === "waiting")
      throw new HoldfastError(`${this.type}: the test mode has not run this job yet: call runAll() first`);
    if (this.ended === "cancelled") throw new JobCancelled(this, "it was cancelled");
    if (this.error !== undefined) throw new JobDead(this, errorTextOf(this.error));
    return this.value;
  }

  /** Runs it. What its handler throws is thrown here, unless it is a verdict. */
  async run(): Promise<void> {
    this.test.remove(this, "running");
    const type = this.#hf.jobs.get(this.type);
    if (type === undefined) throw new HoldfastError(`expected a handler for the type '${this.type}', found none`);
    try {
      const end = endOfValue(await callHandler(type, this.job(), this.#hf.around));
      if (end.word !== "done") throw new Dead(end.error);
      this.value = end.json ? JSON.parse(end.body as string) : end.body;
      this.ended = "done";
    } catch (error) {
      this.fail(error);
    }
  }

  private get maxAttempts(): number {
    return Number(this.options.max_attempts ?? this.#hf.jobs.get(this.type)?.options.maxAttempts ?? MAX_ATTEMPTS);
  }

  private job(): Job {
    const frame: JobFrame = {
      t: "job",
      run: 0,
      id: this.id,
      type: this.type,
      queue: this.queue,
      attempt: this.attempts + 1,
      max_attempts: this.maxAttempts,
      fence: "1",
      created: Date.now(),
      headers: { ...this.headers },
    };
    const ignore = (): void => {};
    return new Job(frame, this.payload, undefined, { progress: ignore, checkpoint: ignore, log: ignore });
  }

  private fail(error: unknown): void {
    this.ended = error instanceof Cancel ? "cancelled" : "dead";
    if (error instanceof Cancel) return;
    this.error = error;
    if (!(error instanceof Release || error instanceof Dead)) this.attempts++;
    if (error instanceof Release || (error instanceof Retry && this.attempts < this.maxAttempts)) {
      this.due = error.delay === undefined ? undefined : new Date(Date.now() + error.delay);
      this.test.putBack(this);
    } else if (!(error instanceof Dead || error instanceof Retry)) throw error;
  }
}

/** The jobs of a test mode. `jobs` wait, `done` have run. */
export class Testing {
  readonly jobs: FakeJob[] = [];
  readonly done: FakeJob[] = [];

  constructor(
    readonly mode: Mode,
    private readonly stop: () => void,
  ) {
    if (mode !== "fake" && mode !== "inline")
      throw new TypeError(`expected the mode 'fake' or 'inline', found '${String(mode)}'`);
  }

  /** Ends the test mode. `using` does it at the end of the block. */
  end(): void {
    this.stop();
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  /** The waiting jobs of a type. */
  of(type: string): FakeJob[] {
    return this.jobs.filter((job) => job.type === type);
  }

  clear(): void {
    this.jobs.length = this.done.length = 0;
  }

  /**
   * Runs the waiting jobs, in their order and whatever their time, and those that they enqueue: each one once.
   * A job that throws Retry or Release is in `jobs` again, for the next call, until its attempts are used up.
   * Returns how many ran.
   */
  async runAll(): Promise<number> {
    const ran = new Set<FakeJob>();
    for (;;) {
      const job = this.jobs.find((each) => !ran.has(each));
      if (job === undefined) return ran.size;
      ran.add(job);
      await job.run();
    }
  }

  async take(hf: Holdfast, calls: readonly Call[]): Promise<JobRef[]> {
    const refs: JobRef[] = [];
    for (const job of calls.map((call) => new FakeJob(hf, call, this))) {
      const [holder, outcome] = this.holderOf(job);
      if (holder === undefined) this.jobs.push(job);
      refs.push(holder === undefined ? job : new JobRef(hf, holder.id, holder.queue, outcome));
      if (holder === undefined && this.mode === "inline") await job.run();
    }
    return refs;
  }

  remove(job: FakeJob, ended: State): void {
    this.jobs.splice(this.jobs.indexOf(job), 1);
    this.done.push(job);
    job.ended = ended;
  }

  putBack(job: FakeJob): void {
    this.done.splice(this.done.indexOf(job), 1);
    this.jobs.push(job);
    job.ended = "waiting";
  }

  private holderOf(job: FakeJob): [FakeJob | undefined, Outcome] {
    const others = this.jobs.filter((other) => other.queue === job.queue);
    const same = others.find((other) => other.id === job.id);
    if (same !== undefined) return [same, "exists"];
    const { unique, on_conflict: conflict = "skip", debounce } = job.options;
    if (unique === undefined || conflict !== "skip" || debounce !== undefined) return [undefined, "new"];
    return [others.find((other) => other.options.unique === unique), "skipped"];
  }
}
