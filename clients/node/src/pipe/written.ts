/** The frames that a program writes (docs/pipe.md): each a line, some with bytes behind it. */
import type { End } from "../run.js";

export type Written = [line: string, body?: string | Buffer];

const LOG_MAX = 16 * 1024;

export function ready(client: string, parallel: number, types: object[], schedules: object[]): Written {
  return [JSON.stringify({ t: "ready", v: 1, client, parallel, types, schedules }) + "\n"];
}

export const PONG: Written = ['{"t":"pong"}\n'];

export function verdict(run: number, end: End): Written {
  const { word, body } = end;
  const n = body === undefined ? undefined : Buffer.byteLength(body);
  if (word === "done")
    return n === undefined
      ? [`{"t":"done","run":${run}}\n`]
      : [`{"t":"done","run":${run},"json":${end.json === true},"n":${n}}\n`, body];
  const wait = word === "retry" || word === "release" ? end.delay : undefined;
  return [
    JSON.stringify({ t: word, run, in: wait, error: end.error || undefined, n: n || undefined }) + "\n",
    body || undefined,
  ];
}

export function progress(run: number, percent: number, note: string): Written {
  return [JSON.stringify({ t: "progress", run, percent, note: note || undefined }) + "\n"];
}

export function checkpoint(run: number, data: Buffer): Written {
  return [`{"t":"checkpoint","run":${run},"n":${data.length}}\n`, data];
}

/** Whole lines, in frames of at most 16 KiB. Only a longer line is cut. */
export function* log(run: number, text: string): Generator<Written> {
  let data = Buffer.from(text.endsWith("\n") ? text : text + "\n");
  while (data.length > 0) {
    const end = data.length <= LOG_MAX ? data.length : data.lastIndexOf(10, LOG_MAX - 1) + 1 || LOG_MAX;
    yield [`{"t":"log","run":${run},"n":${end}}\n`, data.subarray(0, end)];
    data = data.subarray(end);
  }
}
