/** The end of the worker's socket that this process has inherited, if a worker started it. */
import { fstatSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/** The version of docs/pipe.md that this library speaks. */
export const PIPE_VERSION = 1;

/** The worker then does not start this program again before its configuration changes. */
export const EXIT_CONFIG = 78;

let taken: number | null | undefined;

/** The number of the descriptor, or null if no worker has started this process. */
export function inheritedSocket(): number | null {
  return (taken ??= take());
}

/**
 * Both variables leave the environment, so no program that a handler starts takes itself for one
 * of the worker's. Node has set all inherited descriptors to close on exec.
 */
function take(): number | null {
  const { HOLDFAST_FD: fd, HOLDFAST_PIPE: versions = "" } = process.env;
  if (!isMainThread || fd === undefined) return null;
  delete process.env.HOLDFAST_FD;
  delete process.env.HOLDFAST_PIPE;
  process.on("SIGTERM", () => {}); // it only says "read the socket", which the event loop does anyway
  process.on("SIGINT", () => {});
  if (!versions.split(" ").includes(String(PIPE_VERSION)))
    refuse(
      `expected the protocol pipe ${PIPE_VERSION} among those of the worker, found '${versions}': the package and the worker are of different ages`,
    );
  if (!/^\d{1,9}$/.test(fd) || !isSocket(Number(fd)))
    refuse(`expected in HOLDFAST_FD the number of a socket, found '${fd}'`);
  return Number(fd);
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket();
  } catch {
    return false;
  }
}

/** The worker started this process in a way that it cannot work with. */
export function refuse(why: string): never {
  process.stderr.write(`holdfast: ${why}\n`);
  process.exit(EXIT_CONFIG);
}
