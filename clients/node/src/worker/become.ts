/** The command `holdfast worker` takes the place of this program, and starts copies of it. */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import type { Holdfast } from "../holdfast.js";
import type { RunOptions } from "./run.js";

const EXIT_UNAVAILABLE = 69;
// TSTP and CONT: the worker claims no more jobs, and goes on.
const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGTSTP", "SIGCONT"] as const;

type Execve = (file: string, words: readonly string[], environment: NodeJS.ProcessEnv) => never;

export function becomeWorker(hf: Holdfast, options: RunOptions): Promise<never> {
  const path = command();
  const words = [
    path,
    "worker",
    ...wordsOf(hf, options),
    "--",
    process.execPath,
    ...process.execArgv,
    ...process.argv.slice(1),
  ];
  if (hf.urlGiven || (options.config === undefined && process.env.REDIS_URL === undefined))
    process.env.REDIS_URL = hf.url;
  const { execve } = process as { execve?: Execve }; // Node 22.15 and newer
  if (execve === undefined) return stayParent(path, words.slice(1));
  try {
    return execve.call(process, path, words, process.env);
  } catch (error) {
    return cannot(path, error as Error);
  }
}

function wordsOf(hf: Holdfast, { config, queues = [], processes, logs }: RunOptions): string[] {
  return [
    ...(config === undefined ? [] : ["-c", config]),
    ...queues.flatMap((queue) => ["--queue", queue]),
    ...(processes === undefined ? [] : ["--processes", String(processes)]),
    ...(logs === true ? ["--logs"] : []),
    ...(hf.namespace === "hf" ? [] : ["--namespace", hf.namespace]),
  ];
}

// ---- the command ----

const PLATFORM = `@holdfast-queue/${process.platform}-${process.arch}`;

/** HOLDFAST_BIN, that of the package for this platform, or the one in PATH. */
export function command(): string {
  const found = process.env.HOLDFAST_BIN ?? bundled() ?? inPath();
  if (found !== undefined) return found;
  process.stderr.write(
    `holdfast: expected the command holdfast in the package ${PLATFORM} or PATH, or its file in HOLDFAST_BIN, ` +
      `found none: install both .tgz files\n`,
  );
  process.exit(EXIT_UNAVAILABLE);
}

function bundled(): string | undefined {
  try {
    return join(dirname(require.resolve(`${PLATFORM}/package.json`)), "bin", "holdfast");
  } catch {
    return undefined;
  }
}

function inPath(): string | undefined {
  const files = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "holdfast"));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function cannot(path: string, error: Error): never {
  process.stderr.write(`holdfast: cannot execute ${path}: ${error.message}\n`);
  process.exit(EXIT_UNAVAILABLE);
}

// ---- without execve ----

/**
 * The worker is a child. It gets the signals of this process, which ends as it ends, and stops if
 * this process is killed. It has a session of its own: ^C would reach it twice otherwise, and the
 * second one is urgent.
 */
function stayParent(path: string, words: string[]): Promise<never> {
  const [subcommand = "", ...others] = words;
  const worker = spawn(path, [subcommand, "--parent", String(process.pid), ...others], {
    stdio: "inherit",
    detached: true,
  });
  worker.on("error", (error) => cannot(path, error));
  for (const signal of FORWARDED) process.on(signal, () => worker.kill(signal));
  worker.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
  return new Promise(() => {}); // it goes on until the worker has ended
}
