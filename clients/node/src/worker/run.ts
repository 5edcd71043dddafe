/** `hf.run()`: this program becomes the worker, or runs jobs for one. */
import type { Holdfast } from "../holdfast.js";
import { count } from "../options.js";
import { inheritedSocket, refuse } from "../pipe/inherited.js";
import { Pipe } from "../pipe/pipe.js";
import { becomeWorker } from "./become.js";
import { Runs } from "./runs.js";

export interface RunOptions {
  /** How many jobs one handler process runs at a time: 16. */
  parallel?: number;
  /** How many handler processes; without it the worker's cores. */
  processes?: number;
  /** Only these queues; without it those that the jobs name. */
  queues?: readonly string[];
  /** Keeps the last 64 KiB of what they print in Redis, for `holdfast job logs`. */
  logs?: boolean;
  /** A configuration file of the worker for everything else. */
  config?: string;
}

export async function runWorker(hf: Holdfast, options: RunOptions): Promise<void> {
  const parallel = count(options.parallel ?? 16, "parallel", 1024);
  if (hf.jobs.size === 0)
    refuse("expected jobs, hf.job(...), before hf.run(), found none: import the modules that have them");
  const fd = inheritedSocket();
  const path = process.env.HOLDFAST_SOCKET;
  if (fd !== null) {
    await serve(hf, Pipe.inherited(fd), parallel, false);
    // What else the program has open must not hold up the worker's stop.
    setTimeout(() => process.exit(), LINGER).unref();
  } else if (path) await join(hf, path, parallel);
  else await becomeWorker(hf, options);
}

const LINGER = 1000;

async function serve(hf: Holdfast, pipe: Pipe, parallel: number, joined: boolean): Promise<void> {
  for (const start of hf.starts) await start();
  await new Runs(hf, pipe, parallel, joined).ended;
  for (const stop of [...hf.stops].reverse()) await stop();
  hf.close();
}

/** This program was started by hand, and ^C may end it. The variable stays: a debugger may run it again. */
async function join(hf: Holdfast, path: string, parallel: number): Promise<void> {
  const pipe = await Pipe.join(path).catch((error: Error) =>
    refuse(`expected a worker with --listen at the path in HOLDFAST_SOCKET, '${path}', found none: ${error.message}`),
  );
  const reads = () => {}; // TERM only says "read the socket"
  process.on("SIGTERM", reads);
  try {
    await serve(hf, pipe, parallel, true);
  } finally {
    process.off("SIGTERM", reads);
    pipe.close();
  }
}
