/** A job that was enqueued: its outcome, its result, its end. */
import { inspect, type InspectOptions } from "node:util";
import { toMs, type Duration } from "./durations.js";
import { JobCancelled, JobDead, JobExpired, JobUnknown, NotKept, ResultTimeout } from "./errors.js";
import type { Holdfast } from "./holdfast.js";
import { randomName, shardOf } from "./ids.js";
import { checkObject } from "./options.js";
import { Sharded, type Answer } from "./redis/link.js";
import type { ScriptName } from "./scripts.js";
import type { Word } from "./redis/client.js";

export type Outcome = "new" | "exists" | "skipped" | "replaced" | "parked";
export type State =
  "waiting" | "running" | "dead" | "parked" | "done" | "cancelled" | "deleted" | "expired" | "unknown";

const STATES: Record<string, State> = {
  schedule: "waiting",
  "schedule:h": "waiting",
  "schedule:l": "waiting",
  running: "running",
  dead: "dead",
  parked: "parked",
  done: "done",
};
const WORDS: Record<string, State> = {
  cancelled: "cancelled",
  deleted: "deleted",
  expired: "expired",
  replaced: "cancelled",
  done: "done",
  dead: "dead",
};
const OK = 0;
const GONE = -3;
const RUNS = -6;
const LOOK = 2000; // Redis tells the end; a message that is lost costs this

export interface ResultOptions {
  /** How long to wait; without it for ever, also if no worker handles the type of the job. */
  timeout?: Duration;
  /** Ends the wait. The job goes on. */
  signal?: AbortSignal;
}

/** `id` and `queue` of a job, and the outcome of its enqueueing, as docs/node.md lists them. */
export class JobRef<Result = unknown> {
  // An error that no code catches is shown with all of its own, and of its `ref`: not with these.
  readonly #hf: Holdfast;
  #kept: boolean; // false: it is known to have no `keep`
  #tag: string | undefined;
  #accepted = "0"; // which life of the id is meant: when it was accepted; 0: the present one

  constructor(
    hf: Holdfast,
    public id: string,
    readonly queue: string,
    public outcome: Outcome = "new",
    tag?: string,
    kept = true,
  ) {
    this.#hf = hf;
    this.#kept = kept;
    this.#tag = tag;
  }

  /** What a log or an answer shows of it: not the connection, whose URL may have a password. */
  toJSON(): { id: string; queue: string; outcome: Outcome } {
    return { id: this.id, queue: this.queue, outcome: this.outcome };
  }

  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `JobRef ${inspect(this.toJSON(), options)}`;
  }

  /** What `enqueue` did with it. Of a job that was there before, `keep` is not known. */
  met(outcome: Outcome): void {
    this.outcome = outcome;
    if (outcome === "skipped" || outcome === "exists") this.#kept = true;
  }

  protected mustBeKept(): void {
    if (!this.#kept) throw new NotKept(this, "it has no `keep`, so nothing is left of it when it is done");
  }

  /** The moment at which Redis accepted a job that is awaited. */
  acceptedAt(ms: string): void {
    this.#accepted = ms;
  }

  /**
   * Waits for the end of the job, and returns what its handler returned. It rejects with NotKept at
   * once if the job is not kept; else with JobDead, JobCancelled, JobExpired, JobUnknown or ResultTimeout.
   */
  async result(options: ResultOptions = {}): Promise<Result> {
    checkObject(options);
    const until = options.timeout === undefined ? Infinity : performance.now() + toMs(options.timeout, "timeout");
    this.mustBeKept();
    options.signal?.throwIfAborted();
    let listener = this.#hf.listenerOf(this.#tag ?? this.queue);
    let wake = (): void => {};
    let stop = listener.listen(this.id, () => wake());
    const abort = (): void => wake();
    options.signal?.addEventListener("abort", abort);
    try {
      for (;;) {
        const told = new Promise<void>((resolve) => (wake = resolve));
        const answer = await this.look("await", "1", [listener.client, "1"]);
        const ended = this.endOf(answer);
        if (ended !== null) return ended.value as Result;
        if (answer[12]) this.#accepted = String(answer[12] as Buffer | number);
        const own = this.#hf.listenerOf(this.#tag ?? this.queue);
        if (own !== listener) {
          // Only now its shard is known, and that tells the end there.
          await this.onItsShard("await", [this.id, "0", this.#accepted, "0", listener.client, "0"]);
          stop();
          listener = own;
          stop = listener.listen(this.id, () => wake());
          continue;
        }
        const left = until - performance.now();
        if (left > 0 && !options.signal?.aborted) await firstOf(told, Math.min(left, LOOK));
        else break;
      }
    } finally {
      stop();
      options.signal?.removeEventListener("abort", abort);
    }
    await this.onItsShard("await", [this.id, "0", this.#accepted, "0", listener.client, "0"]);
    options.signal?.throwIfAborted();
    throw new ResultTimeout(this, "it has not ended in time");
  }

  /**
   * Removes a waiting job; asks the worker of a running one to end it, which hears it when it next renews
   * the lock, within about a third of the lease. False: it has ended already.
   */
  async cancel(): Promise<boolean> {
    const [code] = await this.onItsShard("cancel", [`0 ${randomName()}`, this.id]);
    return code === OK || code === RUNS;
  }

  /** Runs a waiting job now, and a dead one again like a new one. False: there is none, or it runs or is held up. */
  async requeue(): Promise<boolean> {
    const [code, , codes] = await this.onItsShard("requeue", [`0 ${randomName()}`, "0", "0", "0", "0", this.id]);
    if (code !== OK || (codes as number[])[0] !== OK) return false;
    if (this.#accepted !== "0") await this.look("job", "0"); // if it was dead, this life is over
    return true;
  }

  /** What is known of the job now. `unknown`: it is done and not kept, or it never was. */
  async state(): Promise<State> {
    const answer = await this.look("job", "0");
    const found = answer[0] === OK ? STATES[String(answer[2])] : WORDS[String(answer[4])];
    return found ?? "unknown";
  }

  /**
   * Asks for the job. A life that has ended as dead is not asked for again: a retry begins another one,
   * which is the answer if there is one already.
   */
  private async look(name: ScriptName, whole: Word, more: Word[] = []): Promise<Answer> {
    const accepted = this.#accepted;
    const answer = await this.onItsShard(name, [this.id, whole, accepted, "0", ...more]);
    if (accepted === "0") return answer;
    const there = answer[0] === OK;
    if (there && String(answer[2]) === "dead") this.#accepted = "0";
    if (there || String(answer[4]) !== "dead") return answer;
    this.#accepted = "0";
    const now = await this.onItsShard(name, [this.id, whole, "0", "0", ...more]);
    return now[0] === OK ? now : answer;
  }

  /** The answer of the shard that has the job; of a queue without shards, that of the queue. */
  private async onItsShard(name: ScriptName, args: Word[]): Promise<Answer> {
    let tags = [this.#tag ?? this.queue];
    if (this.#tag === undefined) {
      try {
        return await this.#hf.script(name, this.queue, args);
      } catch (error) {
        if (!(error instanceof Sharded)) throw error;
        tags = error.tags;
      }
    }
    const first = shardOf(this.id, tags.length);
    let answer: Answer = [GONE, 0];
    for (const tag of [...tags.slice(first), ...tags.slice(0, first)]) {
      answer = await this.#hf.script(name, tag, args);
      const code = name === "requeue" && answer[0] === OK ? (answer[2] as number[])[0] : answer[0];
      if (code !== GONE || (answer[4] !== undefined && String(answer[4]) !== "")) {
        this.#tag = tag;
        break;
      }
    }
    return answer;
  }

  /** Null while the job has not ended. */
  private endOf(answer: Answer): { value: unknown } | null {
    if (answer[0] !== OK) throw this.gone(String(answer[4]));
    const where = String(answer[2]);
    if (where !== "done" && where !== "dead") return null;
    const record = answer[4] as Buffer;
    const end = record.indexOf(10);
    const head = JSON.parse(record.toString("utf8", 0, end < 0 ? record.length : end) || "{}") as Record<
      string,
      unknown
    >;
    if (where === "dead") throw new JobDead(this, String(head.error || head.reason || "it is dead"));
    const body = record.subarray(end + 1);
    return { value: head.result === "json" ? JSON.parse(body.toString()) : head.result === "bytes" ? body : undefined };
  }

  private gone(word: string): Error {
    if (word === "cancelled" || word === "deleted" || word === "replaced")
      return new JobCancelled(this, `it was ${word}`);
    if (word === "expired") return new JobExpired(this, "it did not start in time");
    if (word === "done") return new NotKept(this, "it is done, and was not kept");
    if (word === "dead") return new JobDead(this, "it died, and was removed since then");
    return new JobUnknown(this, "Redis does not know it: it is done and is kept no longer, or it never was");
  }
}

function firstOf(told: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void told.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
