/** `hf.run()`: this program becomes the worker, or runs jobs for one. */
import type { Holdfast } from "../holdfast.js";
import { count } from "../options.js";
import { inheritedSocket, refuse } from "../pipe/inherited.js";
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
  if (fd === null) return becomeWorker(hf, options);
  for (const start of hf.starts) await start();
  await new Runs(hf, fd, parallel).ended;
  for (const stop of [...hf.stops].reverse()) await stop();
  hf.close();
  // What else the program has open must not hold up the worker's stop.
  setTimeout(() => process.exit(), LINGER).unref();
}

const LINGER = 1000;
