/** Names, ids that rise with time, and the shard of an id. */
import { randomBytes } from "node:crypto";
import { shown } from "./durations.js";

const ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
const PAIRS = [...ALPHABET].flatMap((a) => [...ALPHABET].map((b) => a + b));
const NAME = /^[A-Za-z0-9._:-]{1,128}$/;
const LOW_END = 2 ** 41; // the highest bit of the lower half marks ids of another kind

export function checkName(value: unknown, what: string): string {
  if (typeof value !== "string" || !NAME.test(value))
    throw new TypeError(`expected as ${what} 1 to 128 characters of A-Z a-z 0-9 . _ : -, found ${shown(value)}`);
  return value;
}

/** The lower 42 bits as 7 characters, whose order is that of the numbers. */
export function half(value: number): string {
  const high = Math.floor(value / 2 ** 24) & 0x3ffff;
  const low = value % 2 ** 24;
  return ALPHABET.charAt(high >> 12) + PAIRS[high & 4095]! + PAIRS[low >> 12]! + PAIRS[low & 4095]!;
}

/** Makes ids of 14 characters: Unix ms, then a number that begins at random in each ms and counts on. */
export class IdMaker {
  private ms = 0;
  private low = 0;
  private upper = "";

  next(): string {
    const now = Date.now();
    if (now > this.ms) this.begin(now);
    else if (this.low + 2 >= LOW_END) this.begin(this.ms + 1); // the clock is behind the last id, or this ms is full
    return this.upper + half(++this.low);
  }

  private begin(ms: number): void {
    this.ms = ms;
    this.low = randomBytes(6).readUIntBE(0, 6) % LOW_END;
    if (this.low + 20000 >= LOW_END) this.low = Math.floor(this.low / 2);
    this.upper = half(ms);
  }
}

/** A name for something of this process that no other process has. */
export function randomName(): string {
  return "js" + randomBytes(10).toString("hex");
}

/** CRC-16 as Redis Cluster reckons it. */
export function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc;
}

export function shardOf(text: string, shards: number): number {
  return crc16(text) % shards;
}

/** The slot of a key in a cluster, which its tag between braces decides. */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = key.indexOf("}", open + 1);
  return crc16(open >= 0 && close > open + 1 ? key.slice(open + 1, close) : key) % 16384;
}
