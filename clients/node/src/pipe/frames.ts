/**
 * Frames of the protocol that docs/pipe.md defines: a line of JSON, then `n` and `c` bytes.
 */

/** What follows the line of a frame. Valid until the next read: whoever keeps it makes a copy. */
export interface Body {
  payload: Buffer;
  checkpoint: Buffer;
}

export interface JobFrame {
  t: "job";
  run: number;
  id: string;
  type: string;
  queue: string;
  attempt: number;
  max_attempts: number;
  fence: string;
  timeout?: number | null;
  created?: number | null;
  scheduled?: number | null;
  trace?: string | null;
  headers?: Record<string, string> | null;
}

export interface CancelFrame {
  t: "cancel";
  run: number;
  why: string;
  kill_in?: number | null;
}

/** The frames of a worker that this version knows. Others are skipped. */
export type WorkerFrame = JobFrame | CancelFrame | { t: "stop" } | { t: "ping" } | { t: "" };

type Line = WorkerFrame & { n?: number | null; c?: number | null };

const LF = 10;
const LONGEST_LINE = 8192;
const NOTHING = Buffer.alloc(0);

/**
 * Cuts a stream into frames. The pieces may end anywhere. An unreadable line is an error that no
 * reader can recover from, because nothing says where the next frame begins.
 */
export class FrameReader {
  /** Bytes of a frame that is not complete, in the order in which they came. */
  private held: Buffer[] = [];
  private size = 0;
  private needed = 1;
  private line: Line | null = null;

  constructor(private readonly take: (frame: WorkerFrame, body: Body) => void) {}

  push(piece: Buffer): void {
    if (this.size + piece.length < this.needed) {
      this.hold(piece);
      return;
    }
    const data = this.size === 0 ? piece : Buffer.concat([...this.held, piece]);
    this.held = [];
    this.size = 0;
    this.hold(data.subarray(this.cut(data)));
  }

  /** Takes all complete frames, and returns where the first incomplete one begins. */
  private cut(data: Buffer): number {
    let at = 0;
    for (;;) {
      if (this.line === null) {
        const end = data.indexOf(LF, at);
        if (end < 0) {
          if (data.length - at >= LONGEST_LINE)
            throw new Error(`expected a line of at most ${LONGEST_LINE} bytes from the worker`);
          this.needed = 1;
          return at;
        }
        this.line = readLine(data, at, end);
        at = end + 1;
      }
      const n = this.line.n ?? 0;
      const c = this.line.c ?? 0;
      if (data.length - at < n + c) {
        this.needed = n + c;
        return at;
      }
      const frame = this.line;
      this.line = null;
      const payload = n === 0 ? NOTHING : data.subarray(at, at + n);
      const checkpoint = c === 0 ? NOTHING : data.subarray(at + n, at + n + c);
      at += n + c;
      this.take(frame, { payload, checkpoint });
    }
  }

  /** The buffer of the read is used again, so what is left of it is copied. */
  private hold(piece: Buffer): void {
    if (piece.length === 0) return;
    this.held.push(Buffer.from(piece));
    this.size += piece.length;
  }
}

function readLine(data: Buffer, from: number, to: number): Line {
  let line: unknown;
  try {
    line = JSON.parse(data.toString("utf8", from, to));
  } catch {
    throw new Error("expected a line of JSON from the worker");
  }
  if (typeof line !== "object" || line === null || Array.isArray(line))
    throw new Error("expected a JSON object from the worker");
  return line as Line;
}
