// What users write: tsc --strict must accept it, but for the lines below an @ts-expect-error.
import { currentJob, Dead, Holdfast, Job, JobDead, Retry, type JobRef, type StandardSchema } from "holdfast-queue";
import { Redis } from "ioredis";
import { createClient } from "redis";

const hf = new Holdfast({ url: "redis://localhost", deadline: "5s", remember: 60000, namespace: "hf" });
new Holdfast({ redis: createClient({ url: "redis://localhost" }) });
new Holdfast({ redis: new Redis({ lazyConnect: true }) });
// @ts-expect-error: no client of Redis
new Holdfast({ redis: {} });
// @ts-expect-error: no such option
new Holdfast({ uri: "redis://localhost" });

// The data and the result are those of the handler.
const add = hf.job(
  "add",
  { timeout: "30s", maxAttempts: 5, keep: "1h" },
  async (data: { a: number; b?: number }, job) => {
    job.progress(50, "half");
    const saved: Buffer | undefined = job.checkpoint();
    job.checkpoint("17");
    await fetch("https://example.com", { signal: job.signal });
    return data.a + (data.b ?? saved?.length ?? 1);
  },
);
const ref: JobRef<number> = await add.enqueue({ a: 1 });
const sum: number = await ref.result({ timeout: "10s" });
await add.enqueue(
  { a: 1, b: sum },
  { delay: "10m", unique: "ada", headers: { tenant: "7" }, at: new Date(), priority: "high" },
);
const refs: JobRef<number>[] = await hf.enqueueMany([add.call({ a: 1 }), add.call({ a: 2 }, { id: "x" })]);
const upper = hf.job("upper", async (data: string) => data.toUpperCase());
const both: JobRef<number | string>[] = await hf.enqueueMany([add.call({ a: 1 }), upper.call("x")]);
// @ts-expect-error: the result is a number
const words: JobRef<string>[] = await hf.enqueueMany([add.call({ a: 1 })]);
console.log(refs, both, words);
{
  using one = new Holdfast();
  await using other = new Holdfast();
  console.log(one, other);
}
// @ts-expect-error: a is missing
await add.enqueue({});
// @ts-expect-error: the data are missing
await add.enqueue();
// @ts-expect-error: a is a number
add.call({ a: "1" });
// @ts-expect-error: the options of the records in Redis have other names
await add.enqueue({ a: 1 }, { max_attempts: 3 });
// @ts-expect-error: no such priority
await add.enqueue({ a: 1 }, { priority: "urgent" });
// @ts-expect-error: the result is a number
const text: string = await ref.result();

// A type argument in the place of one in the handler.
const mail = hf.job<{ to: string }>("mail", async (data, job) => {
  if (data.to === "") throw new Dead("no address");
  throw new Retry("busy", { delay: "30s", cause: job.id });
});
await mail.enqueue({ to: "ada@example.com" });
// @ts-expect-error: an address is a text
await mail.enqueue({ to: 1 });

// No data.
const sweep = hf.job("sweep", async () => {});
await sweep.enqueue();
await sweep.enqueue(undefined, { queue: "slow" });
hf.every(sweep, "5m");
hf.cron(add, "0 3 * * *", { tz: "Europe/Berlin", data: { a: 1 } });
// @ts-expect-error: this job needs data
hf.every(add, "5m");
// @ts-expect-error: a is a number
hf.every(add, "5m", { data: { a: "1" } });

// Bytes.
const image = hf.job("image", { bytes: true }, (data) => data.subarray(1));
await image.enqueue(new Uint8Array(3));
// @ts-expect-error: bytes
await image.enqueue("abc");

// A schema: callers give its input, the handler gets its output.
declare const schema: StandardSchema<{ when: string }, { when: Date }>;
const checked = hf.job("checked", { schema }, async (data) => data.when.getTime());
await checked.enqueue({ when: "2030-01-31T08:00:00Z" });
// @ts-expect-error: its input is a text
await checked.enqueue({ when: new Date() });

hf.middleware(async (job, next) => {
  const value = await next();
  console.log(job.type, job.headers.tenant, job.fence > 1n, value);
  return value;
});
hf.onEnqueue((call) => {
  call.headers.tenant = call.type + call.queue;
});
hf.onStart(async () => {});
hf.onStop(() => {});

using q = hf.testing("fake");
const first: unknown = q.jobs[0]?.data;
await add.handler({ a: 1 }, Job.fake({ attempt: 2 }));
const id: string | undefined = currentJob()?.id;
try {
  await hf.ref<number>("x", "mail").result();
} catch (error) {
  if (error instanceof JobDead) console.log(error.text, error.ref.id, first, id, text);
}
await hf.run({ parallel: 16, processes: 2, queues: ["mail"], logs: true, config: "worker.yaml" });
// @ts-expect-error: no such option
await hf.run({ concurrency: 16 });
