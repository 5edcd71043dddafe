/** Enqueueing: jobs become one request that Redis executes once, however often it comes. */
import type { Call } from "./call.js";
import { NoAnswer, Refused } from "./errors.js";
import type { Holdfast } from "./holdfast.js";
import { IdMaker, randomName, shardOf } from "./ids.js";
import { JobRef, type Outcome } from "./ref.js";
import type { Word } from "./redis/client.js";
import { Sharded, type Answer } from "./redis/link.js";

const JOBS_MAX = 10000; // of one call
const BYTES_MAX = 64 * 2 ** 20; // of its records
const OK = 0;
const EXISTS = -1;
const LATE = -4;
const PLAIN_EXISTS = [-1, -6, -7];

/** A name under which one request at a time is numbered, so that Redis executes it once. */
interface Lane {
  producer: string;
  number: number;
}

export class Producer {
  private readonly lanes: Lane[] = [];
  private readonly ids = new IdMaker();
  private readonly registered = new Set<string>();
  private readonly shards = new Map<string, string[]>();
  private turn = 0;
  private clock = { redis: 0, here: 0 }; // at the last answer of Redis: its time, and that of this machine

  constructor(
    private readonly hf: Holdfast,
    private readonly remember: number,
  ) {}

  newId(): string {
    return this.ids.next();
  }

  /** All jobs, or none. */
  async accept(calls: readonly Call[]): Promise<JobRef[]> {
    const queue = checked(calls);
    const started = performance.now();
    if (!this.registered.has(queue)) {
      this.noteTime(await this.hf.script("register", "/", [queue]));
      this.registered.add(queue);
    }
    const name = calls.some((call) => call.plan.optional) ? "enqueue_with" : "enqueue";
    const lane = this.lanes.pop() ?? { producer: randomName(), number: 0 };
    try {
      for (let tries = 0; tries < 8; tries++) {
        const tag = this.tagOf(queue, calls);
        const ids = calls.map((call) => call.plan.id ?? this.ids.next());
        const waited = String(Math.floor(performance.now() - started));
        const args = [lane.producer, String(++lane.number), "0", String(this.remember), waited, ...wordsOf(calls, ids)];
        try {
          const answer = await this.hf.script(name, tag, args, this.knownUntil());
          this.noteTime(answer);
          if (answer[0] === OK) return this.refs(calls, ids, tag, answer);
          if (answer[0] === LATE)
            throw new NoAnswer("Redis has not answered at first, and its clock was set forward since then");
          if (answer[0] !== EXISTS) throw new Refused(`Redis answered ${answer[0]}`);
          // Another job has one of the ids that were made: others, then.
        } catch (error) {
          if (!(error instanceof Sharded)) throw error;
          this.shards.set(queue, error.tags);
        }
      }
    } finally {
      this.lanes.push(lane);
    }
    throw new Refused("all ids that were made are in use: is the clock of this machine set far back?");
  }

  private noteTime(answer: Answer): void {
    this.clock = { redis: answer[1], here: performance.now() };
  }

  /** Until when Redis will remember a request that is sent now; earlier if this machine was suspended. */
  private knownUntil(): number {
    return this.clock.redis + Math.floor(performance.now() - this.clock.here) + this.remember;
  }

  private tagOf(queue: string, calls: readonly Call[]): string {
    const tags = this.shards.get(queue);
    if (tags === undefined) return queue;
    const wanted = new Set<number>();
    for (const { plan } of calls) {
      const text = plan.fields.unique ?? plan.id;
      if (text !== undefined) wanted.add(shardOf(String(text), tags.length));
    }
    if (wanted.size > 1)
      throw new TypeError(
        `expected jobs of one shard of queue '${queue}', which are accepted all or none: their ids and unique keys belong to several`,
      );
    const [shard = this.turn++ % tags.length] = wanted;
    return tags[shard]!;
  }

  private refs(calls: readonly Call[], ids: readonly string[], tag: string, answer: Answer): JobRef[] {
    const codes = (answer[3] ?? []) as number[];
    const refs = calls.map(({ plan }, k) => {
      const outcome = PLAIN_EXISTS.includes(codes[k] ?? 0) ? "exists" : "new";
      const ref = new JobRef(this.hf, ids[k]!, plan.queue, outcome, tag, plan.kept);
      ref.met(outcome);
      return ref;
    });
    for (const [place, how, id] of groups((answer[4] ?? []) as unknown[], 4)) {
      const ref = refs[Number(place) - 1]!;
      ref.met(String(how) as Outcome);
      if (ref.outcome !== "parked") ref.id = String(id);
    }
    for (const [place, ms] of groups((answer[5] ?? []) as unknown[], 2))
      refs[Number(place) - 1]!.acceptedAt(String(ms));
    return refs;
  }
}

function* groups(list: unknown[], size: number): Generator<unknown[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size);
}

/** The queue of the jobs. */
function checked(calls: readonly Call[]): string {
  const queue = calls[0]!.plan.queue;
  if (calls.length > JOBS_MAX)
    throw new RangeError(`expected at most ${JOBS_MAX} jobs in one call, found ${calls.length}`);
  const other = calls.find((call) => call.plan.queue !== queue);
  if (other !== undefined)
    throw new TypeError(
      `expected jobs of one queue, which are accepted all or none, found '${queue}' and '${other.plan.queue}'`,
    );
  return queue;
}

/** The id, time and record of each job, then which ids were made. */
function wordsOf(calls: readonly Call[], ids: readonly string[]): Word[] {
  const chosen = calls.some((call) => call.plan.id !== undefined);
  const now = Date.now();
  const words: Word[] = [];
  let marks = "";
  let size = 0;
  calls.forEach((call, k) => {
    const own = call.plan.id !== undefined;
    const record = call.record(own ? now : null);
    size += Buffer.byteLength(record);
    if (chosen) marks += own ? "c" : "n";
    words.push(ids[k]!, String(call.plan.due), record);
  });
  if (size > BYTES_MAX) throw new RangeError(`expected at most ${BYTES_MAX} bytes of jobs in one call, found ${size}`);
  words.push(chosen ? marks[0]!.toUpperCase() + marks.slice(1) : "N"); // checked here: the script need not look at each character
  return words;
}
