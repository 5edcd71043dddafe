/** The runs of one handler process: many at a time, in its event loop. */
import type { Holdfast } from "../holdfast.js";
import { Job, type Channel } from "../job.js";
import { VERSION } from "../package.js";
import type { Body, JobFrame, WorkerFrame } from "../pipe/frames.js";
import type { Pipe } from "../pipe/pipe.js";
import * as write from "../pipe/written.js";
import { run, type End } from "../run.js";

const UNKNOWN_TYPE_WAIT = 10000; // a worker that knows the type may come
const LOST_WAIT = 1000;

export class Runs {
  /** Resolves when the worker wants the process to end, its runs have ended, and their verdicts are in the socket. */
  readonly ended: Promise<void>;
  private readonly running = new Map<number, Job>();
  private readonly channel: Channel;
  private stopping = false;
  private finish!: () => void;

  constructor(
    private readonly hf: Holdfast,
    private readonly pipe: Pipe,
    parallel: number,
    private readonly joined: boolean,
  ) {
    this.ended = new Promise((resolve) => (this.finish = resolve));
    pipe.read({ frame: (frame, body) => this.take(frame, body), end: (error) => this.lost(error) });
    this.channel = {
      progress: (id, percent, note) => pipe.send(write.progress(id, percent, note)),
      checkpoint: (id, data) => pipe.send(write.checkpoint(id, data)),
      log: (id, text) => {
        for (const frame of write.log(id, text)) pipe.send(frame);
      },
    };
    const types = [...hf.jobs.values()].map((job) => job.ready());
    const schedules = [...hf.schedules.values()].map((schedule) => schedule.frame);
    pipe.send(write.ready(`node ${VERSION}`, parallel, types, schedules));
  }

  private take(frame: WorkerFrame, body: Body): void {
    if (frame.t === "job") this.start(frame, body);
    else if (frame.t === "cancel") this.running.get(frame.run)?.interrupt(frame.why);
    else if (frame.t === "ping") this.pipe.send(write.PONG);
    else if (frame.t === "stop") this.stop();
  }

  private start(frame: JobFrame, { payload, checkpoint }: Body): void {
    const type = this.hf.jobs.get(frame.type);
    if (type === undefined) {
      const error = `this process has no handler for the type '${frame.type}'`;
      this.pipe.send(write.verdict(frame.run, { word: "release", delay: UNKNOWN_TYPE_WAIT, error }));
      return;
    }
    const job = new Job(
      frame,
      Buffer.from(payload),
      checkpoint.length > 0 ? Buffer.from(checkpoint) : undefined,
      this.channel,
    );
    this.running.set(frame.run, job);
    void run(type, job, this.hf.around).then((end) => this.answer(frame.run, end));
  }

  /** Standard output needs no flush: to a pipe, Node writes at once. */
  private answer(id: number, end: End): void {
    this.running.delete(id);
    this.pipe.send(write.verdict(id, end));
    if (this.stopping && this.running.size === 0) this.stop();
  }

  private stop(): void {
    this.stopping = true;
    if (this.running.size === 0) void this.pipe.drained().then(this.finish);
  }

  /** The worker has gone: its jobs run elsewhere when their leases are over. */
  private lost(error?: Error): void {
    if (error !== undefined) {
      process.stderr.write(`holdfast: ${error.message}\n`);
      process.exit(1);
    }
    for (const job of this.running.values()) job.interrupt("lost");
    this.stop();
    if (!this.joined) setTimeout(() => process.exit(1), LOST_WAIT);
  }
}
