/** A type of job: its handler, its options, and what enqueues it. */
import type { Duration } from "./durations.js";
import type { Holdfast } from "./holdfast.js";
import { checkName } from "./ids.js";
import type { Job } from "./job.js";
import { checkObject, count, TIMEOUT_MAX, type EnqueueOptions } from "./options.js";
import { Call, Plan } from "./call.js";
import { toMs } from "./durations.js";
import type { JobRef } from "./ref.js";
import type { StandardSchema } from "./schema.js";

export type Handler<Data, Result> = (data: Data, job: Job) => Result | Promise<Result>;

type ErrorClass = abstract new (...args: never[]) => unknown;

/** Options of a type of job. The worker applies those that docs/pipe.md names; an operator's file comes before them. */
export interface JobOptions {
  queue?: string;
  timeout?: Duration;
  maxAttempts?: number;
  keep?: Duration;
  onDead?: string;
  /** These travel with each job. */
  priority?: EnqueueOptions["priority"];
  startWithin?: Duration;
  expired?: EnqueueOptions["expired"];
  /** Errors after which the job is tried again; without it all are. */
  retryOn?: readonly ErrorClass[];
  /** Errors after which the job is dead at once. They are looked at first. */
  deadOn?: readonly ErrorClass[];
  /** The wait before the next attempt; undefined leaves it to the worker. */
  backoff?: (attempt: number, error: unknown) => Duration | undefined;
}

const NAMES = [
  "queue",
  "timeout",
  "maxAttempts",
  "keep",
  "onDead",
  "priority",
  "startWithin",
  "expired",
  "retryOn",
  "deadOn",
  "backoff",
  "schema",
  "bytes",
];

/** The data may be left out where `undefined` is one of them. */
export type Arguments<Input> = undefined extends Input
  ? [data?: Input, options?: EnqueueOptions]
  : [data: Input, options?: EnqueueOptions];

export class JobType<Input, Result, Data = Input> {
  readonly queue: string;
  private readonly plan: Plan;
  private readonly carried: EnqueueOptions;

  constructor(
    readonly hf: Holdfast,
    readonly type: string,
    readonly options: JobOptions,
    /** The plain function, for example for a test: `await sendEmail.handler(data, Job.fake())`. */
    readonly handler: Handler<Data, Result>,
    readonly schema: StandardSchema | undefined,
    readonly bytes: boolean,
  ) {
    checkObject(options);
    for (const name of Object.keys(options))
      if (!NAMES.includes(name))
        throw new TypeError(`${type}: expected one of the options ${NAMES.join(", ")}, found '${name}'`);
    checkName(type, "type");
    const { priority, startWithin, expired } = options;
    this.queue = checkName(options.queue ?? hf.queue, "queue");
    this.carried = { priority, startWithin, expired } as EnqueueOptions;
    this.plan = this.planOf({});
  }

  /** Enqueues a job. */
  async enqueue(...[data, options]: Arguments<Input>): Promise<JobRef<Result>> {
    const [ref] = await this.hf.accept([this.made(data, options)]);
    return ref as JobRef<Result>;
  }

  /** A job for `enqueueMany`. */
  call(...[data, options]: Arguments<Input>): Call<Result> {
    return this.made(data, options);
  }

  /** Its entry in the frame `ready`. */
  ready(): object {
    const { timeout, maxAttempts, keep, onDead } = this.options;
    return {
      type: this.type,
      queue: this.queue,
      timeout: timeout === undefined ? undefined : toMs(timeout, "timeout", 1, TIMEOUT_MAX),
      max_attempts: maxAttempts === undefined ? undefined : count(maxAttempts, "maxAttempts"),
      keep: keep === undefined ? undefined : toMs(keep, "keep", 1),
      on_dead: onDead === undefined ? undefined : checkName(onDead, "onDead"),
    };
  }

  planOf(options: EnqueueOptions): Plan {
    return new Plan(this.type, this.queue, { ...this.carried, ...options }, this.options.keep !== undefined);
  }

  private made(data: unknown, options: EnqueueOptions | undefined): Call<Result> {
    if (options !== undefined) checkObject(options);
    if (this.bytes && !(data instanceof Uint8Array)) throw new TypeError(`${this.type}: expected bytes as its data`);
    return new Call(this.type, options === undefined ? this.plan : this.planOf(options), data, this.schema);
  }
}
