/** The socket to the worker: reads frames, and writes those of one turn of the event loop at once. */
import { once } from "node:events";
import { Socket, type SocketConstructorOpts } from "node:net";
import { FrameReader, type Body, type WorkerFrame } from "./frames.js";
import type { Written } from "./written.js";

const READ_SIZE = 64 * 1024;

export interface PipeEvents {
  frame(frame: WorkerFrame, body: Body): void;
  /** The worker has gone, or what it sends cannot be read. */
  end(error?: Error): void;
}

export class Pipe {
  private readonly socket: Socket;
  private readonly reader: FrameReader;
  private out: (string | Buffer)[] = [];
  private binary = false;
  private events: PipeEvents | undefined;
  private ended = false;

  private constructor(fd?: number) {
    this.reader = new FrameReader((frame, body) => this.events?.frame(frame, body));
    const options: SocketConstructorOpts & { onread: object } = {
      ...(fd === undefined ? {} : { fd, readable: true, writable: true }),
      allowHalfOpen: true, // a program never closes one direction
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_SIZE),
        callback: (size: number, buffer: Buffer) => this.take(buffer.subarray(0, size)),
      },
    };
    this.socket = new Socket(options);
    this.socket.on("end", () => this.end());
    this.socket.on("error", () => this.end());
  }

  /** By the descriptor that the worker left to this process. */
  static inherited(fd: number): Pipe {
    return new Pipe(fd);
  }

  /** To a worker with --listen. It rejects if there is none. */
  static async join(path: string): Promise<Pipe> {
    const pipe = new Pipe();
    pipe.socket.connect(path);
    await once(pipe.socket, "connect");
    return pipe;
  }

  /** Reads frames from now on. */
  read(events: PipeEvents): void {
    this.events = events;
    if (this.ended) events.end();
    else this.socket.resume();
  }

  /** It leaves together with what else this turn sends. */
  send([line, body]: Written): void {
    if (this.out.length === 0) setImmediate(this.flush);
    this.out.push(line);
    if (body === undefined) return;
    this.out.push(body);
    if (typeof body !== "string") this.binary = true;
  }

  /** Resolves when everything that was sent is in the socket. From then on it does not keep the process alive. */
  async drained(): Promise<void> {
    this.flush();
    if (!this.ended) await new Promise<void>((resolve) => this.socket.write("", () => resolve()));
    this.socket.unref();
  }

  /** This process may live on. */
  close(): void {
    this.socket.destroy();
  }

  private readonly flush = (): void => {
    const { out, binary } = this;
    if (out.length === 0) return;
    this.out = [];
    this.binary = false;
    if (!this.ended)
      this.socket.write(binary ? Buffer.concat(out.map((part) => Buffer.from(part as string))) : out.join(""));
  };

  private take(piece: Buffer): boolean {
    try {
      this.reader.push(piece);
    } catch (error) {
      this.end(error as Error);
    }
    return !this.ended;
  }

  private end(error?: Error): void {
    if (this.ended) return;
    this.ended = true;
    this.events?.end(error);
  }
}
