/** `Holdfast`: the jobs of a program, and the Redis that has them. */
import type { ConnectionOptions } from "node:tls";
import { inspect, type InspectOptions } from "node:util";
import { Call, Plan, type ResultOf } from "./call.js";
import { toMs, type Duration } from "./durations.js";
import { HoldfastError } from "./errors.js";
import { checkName } from "./ids.js";
import { JobType, type Handler, type JobOptions } from "./job_type.js";
import type { EnqueueOptions } from "./options.js";
import { inheritedSocket } from "./pipe/inherited.js";
import { Producer } from "./producer.js";
import { JobRef } from "./ref.js";
import { parseAddress } from "./redis/address.js";
import type { Library, RedisClient, Word } from "./redis/client.js";
import { Link, type Answer } from "./redis/link.js";
import { Listener } from "./redis/listener.js";
import { OwnRoute, routeTo } from "./redis/routes.js";
import type { Middleware } from "./run.js";
import {
  scheduleOf,
  type CronOptions,
  type Schedule,
  type ScheduleArguments,
  type ScheduleOptions,
} from "./schedules.js";
import type { StandardSchema } from "./schema.js";
import type { ScriptName } from "./scripts.js";
import { Testing, type Mode } from "./testing.js";
import { inject } from "./trace.js";
import { runWorker, type RunOptions } from "./worker/run.js";

export interface HoldfastOptions {
  /** Without it REDIS_URL, else redis://localhost:6379/0. */
  url?: string;
  /** The program's own client of node-redis or ioredis. */
  redis?: RedisClient;
  /** Which package makes the connection to `url`; without it redis, else ioredis. */
  library?: Library;
  /** For rediss://: certificates and all else that node:tls takes. */
  tls?: ConnectionOptions;
  namespace?: string;
  /** The queue of jobs that do not name one. */
  queue?: string;
  /** How long a call waits for Redis before it fails with NoAnswer: 5 s. */
  deadline?: Duration;
  /** How long Redis remembers requests, so that one that comes twice is executed once: 60 s, or twice the
   * deadline if that is more. */
  remember?: Duration;
}

type AnyJob = JobType<never, unknown>;

export class Holdfast {
  readonly url: string;
  readonly urlGiven: boolean;
  readonly namespace: string;
  readonly queue: string;
  readonly jobs = new Map<string, AnyJob>();
  readonly schedules = new Map<string, Schedule>();
  readonly around: Middleware[] = [];
  readonly starts: (() => unknown)[] = [];
  readonly stops: (() => unknown)[] = [];
  private readonly hooks: ((call: Call) => unknown)[] = [];
  private readonly link: Link;
  private readonly producer: Producer;
  private readonly listeners = new Map<string, Listener>();
  private mode: Testing | undefined;

  constructor(options: HoldfastOptions = {}) {
    inheritedSocket(); // its variables leave the environment before anything can inherit them
    this.urlGiven = options.url !== undefined;
    this.url = options.url ?? process.env.REDIS_URL ?? "redis://localhost:6379/0";
    this.namespace = checkName(options.namespace ?? "hf", "namespace");
    this.queue = checkName(options.queue ?? "default", "queue");
    const timeout = toMs(options.deadline ?? "5s", "deadline", 1);
    const { redis, library, tls } = options;
    const route =
      redis === undefined ? routeTo(parseAddress(this.url), { library, tls, timeout }) : new OwnRoute(redis);
    this.link = new Link(route, timeout);
    this.producer = new Producer(this, Math.max(toMs(options.remember ?? "60s", "remember", 1), 2 * timeout));
  }

  /** What a log shows of it: not its URL, which may have a password. */
  toJSON(): { namespace: string; queue: string } {
    return { namespace: this.namespace, queue: this.queue };
  }

  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `Holdfast ${inspect(this.toJSON(), options)}`;
  }

  // ---- jobs ----

  /** Declares a type of job. With a schema its data are checked, at `enqueue` and before the handler. */
  job<Input, Output, Result>(
    type: string,
    options: JobOptions & { schema: StandardSchema<Input, Output> },
    handler: Handler<Output, Result>,
  ): JobType<Input, Result, Output>;
  /** With `bytes` the payload is no JSON, and the handler gets it as it is. */
  job<Result>(
    type: string,
    options: JobOptions & { bytes: true },
    handler: Handler<Buffer, Result>,
  ): JobType<Uint8Array, Result, Buffer>;
  job<Data = unknown, Result = unknown>(
    type: string,
    options: JobOptions,
    handler: Handler<Data, Result>,
  ): JobType<Data, Result>;
  job<Data = unknown, Result = unknown>(type: string, handler: Handler<Data, Result>): JobType<Data, Result>;
  job(type: string, given: JobDeclaration | Handler<never, unknown>, last?: Handler<never, unknown>): AnyJob {
    const [options, handler] = typeof given === "function" ? [{}, given] : [given, last];
    if (typeof handler !== "function") throw new TypeError(`${type}: expected a handler, a function`);
    if (this.jobs.has(type)) throw new TypeError(`expected one handler for the type '${type}', found two`);
    const job: AnyJob = new JobType(this, type, options, handler, options.schema, options.bytes === true);
    job.ready(); // a wrong option is an error here, and not in the worker
    this.jobs.set(type, job);
    return job;
  }

  /** Enqueues the job again and again. */
  every<Input>(
    job: JobType<Input, unknown>,
    period: Duration,
    ...[options = {}]: ScheduleArguments<Input, ScheduleOptions<Input>>
  ): void {
    this.schedule(job as AnyJob, { every: toMs(period, "every", 1000) }, options);
  }

  /** Enqueues the job at the times of a cron expression. */
  cron<Input>(
    job: JobType<Input, unknown>,
    expression: string,
    ...[options = {}]: ScheduleArguments<Input, CronOptions<Input>>
  ): void {
    const { tz, ...others } = options as CronOptions;
    this.schedule(job as AnyJob, { cron: expression, tz }, others);
  }

  private schedule(job: AnyJob, when: object, options: ScheduleOptions): void {
    const schedule = scheduleOf(job, when, options);
    if (this.schedules.has(schedule.id))
      throw new TypeError(`expected one schedule with the id '${schedule.id}', found two: give one of them an id`);
    this.schedules.set(schedule.id, schedule);
  }

  // ---- hooks ----

  /** Calls `hook(call)` for each job before it is enqueued, for example to set `call.headers.tenant`. */
  onEnqueue(hook: (call: Call) => unknown): void {
    this.hooks.push(hook);
  }

  /** Calls `fn()` once in each handler process, before its first job. */
  onStart(fn: () => unknown): void {
    this.starts.push(fn);
  }

  /** Calls `fn()` when a handler process ends. */
  onStop(fn: () => unknown): void {
    this.stops.push(fn);
  }

  /** Puts `fn(job, next)` around each run; `next()` runs the rest, and its value is the result. The first one is the outermost. */
  middleware(fn: Middleware): void {
    this.around.push(fn);
  }

  // ---- enqueueing ----

  /** Enqueues up to 10,000 jobs of one queue with one request: all of them, or none. */
  enqueueMany<Each extends Call>(calls: Iterable<Each>): Promise<JobRef<ResultOf<Each>>[]> {
    return this.accept([...calls]) as Promise<JobRef<ResultOf<Each>>[]>;
  }

  /** Enqueues a job whose handler is not known here. Bytes go as they are, anything else as JSON. */
  async send(type: string, data?: unknown, options: EnqueueOptions = {}): Promise<JobRef> {
    const plan = new Plan(checkName(type, "type"), this.queue, options, true); // kept, perhaps: its handler knows
    const [ref] = await this.accept([new Call(type, plan, data)]);
    return ref!;
  }

  /** A job that was enqueued elsewhere. */
  ref<Result = unknown>(id: string, queue: string = this.queue): JobRef<Result> {
    return new JobRef<Result>(this, checkName(id, "id"), checkName(queue, "queue"), "exists");
  }

  /** Enqueues all calls, or none: what `enqueue`, `enqueueMany` and `send` share. */
  async accept(calls: Call[]): Promise<JobRef[]> {
    if (calls.length === 0) return [];
    for (const call of calls) {
      inject(call);
      for (const hook of this.hooks) await hook(call);
      const checked = call.prepare();
      if (checked !== undefined) await checked;
    }
    return this.mode === undefined ? this.producer.accept(calls) : this.mode.take(this, calls);
  }

  newId(): string {
    return this.producer.newId();
  }

  // ---- Redis ----

  /** One execution of a script for the queue with this tag. */
  script(name: ScriptName, tag: string, args: Word[], knownUntil?: number): Promise<Answer> {
    if (this.mode !== undefined)
      throw new HoldfastError("expected a job in Redis: in a test mode look at its list of jobs");
    return this.link.send(name, `${this.namespace}:{${tag}}:`, args, knownUntil);
  }

  listenerOf(tag: string): Listener {
    let listener = this.listeners.get(tag);
    if (listener === undefined) {
      listener = new Listener(this.link, `${this.namespace}:{${tag}}:`);
      this.listeners.set(tag, listener);
    }
    return listener;
  }

  /**
   * Closes the connections of this package, so that the program can end. Later calls are refused.
   * A client that the program has passed stays open.
   */
  close(): void {
    for (const listener of this.listeners.values()) listener.close();
    this.listeners.clear();
    this.link.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  // ---- the rest ----

  /** For tests: "fake" keeps jobs in a list, "inline" runs each at once. Neither needs Redis. `end()` ends it. */
  testing(mode: Mode): Testing {
    const before = this.mode;
    this.mode = new Testing(mode, () => (this.mode = before));
    return this.mode;
  }

  /**
   * Makes this program the worker: `holdfast worker`, which starts copies of this program as handlers.
   * In such a copy it runs jobs, and resolves when the worker wants it to end.
   */
  run(options: RunOptions = {}): Promise<void> {
    return runWorker(this, options);
  }
}

type JobDeclaration = JobOptions & { schema?: StandardSchema; bytes?: boolean };
