/** Hears from Redis which awaited jobs have ended: one connection for all waiting calls of a queue. */
import { setTimeout as sleep } from "node:timers/promises";
import { randomName } from "../ids.js";
import type { Client } from "./client.js";
import type { Link } from "./link.js";

const LOOK_S = 2; // how long one BLPOP waits
const PAUSE = 100;

export class Listener {
  /** The name under which Redis knows who waits. */
  readonly client = randomName();
  private readonly key: string;
  private readonly waiting = new Map<string, Set<() => void>>();
  private connection: Client | null = null;
  private listens = false;
  private closed = false;

  constructor(
    private readonly link: Link,
    prefix: string,
  ) {
    this.key = `${prefix}told:${this.client}`;
  }

  /** Calls `wake` each time the end of the job is told, until the returned function is called. */
  listen(id: string, wake: () => void): () => void {
    const wakes = this.waiting.get(id) ?? new Set();
    this.waiting.set(id, wakes.add(wake));
    if (!this.listens) void this.loop();
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0) this.waiting.delete(id);
    };
  }

  close(): void {
    this.closed = true;
    for (const wakes of this.waiting.values()) wakes.forEach((wake) => wake());
    this.connection?.close();
  }

  private async loop(): Promise<void> {
    this.listens = true;
    while (this.waiting.size > 0 && !this.closed) {
      try {
        this.connection ??= await this.link.open(this.key);
        const told = await this.connection.execute(["BLPOP", this.key, String(LOOK_S)]);
        if (Array.isArray(told)) this.waiting.get(String(told[1]))?.forEach((wake) => wake());
      } catch {
        this.connection?.close();
        this.connection = null;
        if (!this.closed) await sleep(PAUSE);
      }
    }
    this.connection?.close();
    this.connection = null;
    this.listens = false;
  }
}
