// A program as users write it, for whole.test.mjs.
import { setTimeout as sleep } from "node:timers/promises";
import { currentJob, Holdfast, Retry } from "holdfast-queue";

export const hf = new Holdfast();

export const add = hf.job("add", { keep: "1h" }, async ({ a, b = 1 }) => a + b);

export const hangs = hf.job(
  "hangs",
  { keep: "1h", queue: "second", timeout: "300ms", maxAttempts: 1 },
  async ({ ms }) => {
    await sleep(ms);
  },
);

export const spins = hf.job("spins", { keep: "1h", queue: "second", timeout: "500ms", maxAttempts: 1 }, () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000); // the event loop stands; the processor is free
  for (;;);
});

export const thirdTime = hf.job("thirdTime", { keep: "1h", maxAttempts: 3 }, (_data, job) => {
  if (job.attempt < 3) throw new Retry(`attempt ${job.attempt}`, { delay: "10ms" });
  return job.attempt;
});

export const broken = hf.job("broken", { keep: "1h", maxAttempts: 1 }, function brokenHandler() {
  throw new RangeError("the reason", { cause: new Error("and its cause") });
});

export const waits = hf.job("waits", { keep: "1h" }, async (_data, job) => {
  job.progress(10, "waiting");
  await sleep(600000, undefined, { signal: job.signal });
});

export const tenant = hf.job("tenant", { keep: "1h" }, async ({ name }) => {
  await sleep(1);
  const third = await add.enqueue({ a: 1, b: 2 }, { headers: { tenant: "8" } });
  return `${name} ${currentJob()?.headers.tenant} ${third.outcome} ${process.env.HOLDFAST_FD}`;
});

export const bytes = hf.job("bytes", { keep: "1h", bytes: true }, (data) => data);

hf.onStop(() => console.log("a handler process has stopped"));

if (process.argv[1].endsWith("app_whole.mjs")) await hf.run({ parallel: 16, processes: 2 });
