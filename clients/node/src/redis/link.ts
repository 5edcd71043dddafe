/** Requests to the scripts. Each rule of sending again stands here, once. */
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError, NoAnswer, Refused } from "../errors.js";
import { script, type ScriptName } from "../scripts.js";
import type { Client, Word } from "./client.js";
import { inTime, Late } from "./in_time.js";
import type { Route } from "./routes.js";

export type Answer = [code: number, now: number, ...others: unknown[]];

/** The queue is divided: its jobs belong to the queues with these tags. */
export class Sharded extends Error {
  constructor(readonly tags: string[]) {
    super(tags.join(" "));
  }
}

/** What an error of Redis asks of the client, as in tests/vectors/redirects.json. */
export type Reaction = "load" | "follow" | "wait" | "shards" | "fail";

// A cluster that moves a slot answers ASK or TRYAGAIN: the request waits, and never follows ASK,
// because the other node has only some of the keys yet.
const LATER = /^(ASK|TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY|NOREPLICAS)\b/;

export function reactionTo(error: Error): Reaction {
  const text = error.message;
  if (error instanceof HoldfastError) return "fail";
  if (text.startsWith("NOSCRIPT")) return "load";
  if (text.startsWith("MOVED ")) return "follow";
  if (text.includes("SHARDED holdfast: ")) return "shards";
  return LATER.test(text) || !isOfRedis(error) ? "wait" : "fail";
}

/** Errors of Redis begin with a code in capitals. Others are those of a connection. */
function isOfRedis(error: Error): boolean {
  return /^[A-Z]{2,} /.test(error.message);
}

export function translated(error: Error): Error {
  if (error instanceof HoldfastError) return error;
  const text = error.message;
  const sharded = text.indexOf("SHARDED holdfast: ");
  if (sharded >= 0) return new Sharded(text.slice(sharded).split(" ").slice(3));
  const ours = text.indexOf("holdfast: "); // Redis adds the script and its line
  return new Refused(ours < 0 ? text : text.slice(ours + "holdfast: ".length).split(" script: ")[0]);
}

const FIRST_PAUSE = 20;
const LONGEST_PAUSE = 500;

export class Link {
  private loaded = false;
  private closed = false;

  constructor(
    private readonly route: Route,
    readonly deadline: number,
  ) {}

  /**
   * One execution of a script. It is sent again until it is answered, for as long as the deadline:
   * the arguments must make that harmless. knownUntil: Redis remembers a numbered request until this time
   * of its clock; one that is sent again must not come later, also if that clock was set forward.
   */
  async send(name: ScriptName, key: string, args: Word[], knownUntil?: number): Promise<Answer> {
    this.checkOpen();
    const { sha1, text } = script(name);
    let request = ["EVALSHA", sha1, "1", key, ...args];
    if (!this.loaded) await this.route.load();
    this.loaded = true;
    const end = performance.now() + this.deadline;
    let words = request;
    let reason: Error | undefined;
    for (let pause = FIRST_PAUSE, followed = false; ;) {
      try {
        const answer = await this.execute(key, words, end);
        if (words === request) return answer as Answer;
        words = request; // the script is there now
      } catch (caught) {
        const error = caught as Error;
        const reaction = reactionTo(error);
        if (reaction === "shards" || reaction === "fail") throw translated(error);
        if (reason === undefined || !(error instanceof Late)) reason = error;
        if (performance.now() >= end)
          throw new NoAnswer(`no answer from Redis in ${this.deadline} ms: ${reasonOf(reason)}`, { cause: reason });
        if (reaction === "wait" && knownUntil !== undefined)
          request = [...request.slice(0, 6), String(knownUntil), ...request.slice(7)];
        words = reaction === "load" ? ["SCRIPT", "LOAD", text] : request;
        if (reaction === "follow") this.follow(error.message);
        if (reaction === "load" || (reaction === "follow" && !followed)) {
          followed ||= reaction === "follow"; // the second time in a row, nodes disagree
          continue;
        }
        await sleep(Math.min(pause, Math.max(1, end - performance.now())));
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
    }
  }

  /** A connection of the caller's own, for a command that waits. */
  async open(key: string): Promise<Client> {
    this.checkOpen();
    return this.route.open(key);
  }

  close(): void {
    this.closed = true;
    this.route.close();
  }

  /** A closed one opens no connection: that would keep the program alive. */
  private checkOpen(): void {
    if (!this.closed) return;
    this.route.close(); // what was opened meanwhile
    throw new HoldfastError("this Holdfast is closed");
  }

  private async execute(key: string, words: Word[], end: number): Promise<unknown> {
    this.checkOpen();
    const left = Math.max(1, end - performance.now());
    const client = this.route.current(key) ?? (await inTime(this.route.connect(key), left));
    this.checkOpen();
    try {
      return await inTime(client.execute(words), left);
    } catch (error) {
      if (!isOfRedis(error as Error) || /^(READONLY|MASTERDOWN)\b/.test((error as Error).message))
        this.route.broken(client);
      throw error;
    }
  }

  private follow(text: string): void {
    const [, slot, node] = text.split(" ");
    if (slot !== undefined && node !== undefined) this.route.moved(Number(slot), node);
  }
}

/** The reason of a connection that could not be made may be one of several addresses. */
function reasonOf(error: Error): string {
  const inner = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return inner.message;
}
