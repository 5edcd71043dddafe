// The types of `holdfast conform` (docs/pipe.md). The word behind it is `parallel`.
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { Dead, Holdfast } from "holdfast-queue";

const hf = new Holdfast({ url: "unix:///nowhere" });
const bytes = { bytes: true };

hf.job("echo", bytes, (data) => data);
hf.job("fail", bytes, (data) => {
  throw new Error(data.toString());
});
hf.job("dead", bytes, (data) => {
  throw new Dead(data.toString());
});
hf.job("sleep", bytes, async (data, job) => {
  await sleep(Number(data.toString()), undefined, { signal: job.signal });
});
hf.job("print", bytes, (data) => console.log(data.toString()));
hf.job("exit", bytes, (data) => process.exit(Number(data.toString())));
hf.job("fork", bytes, () => {
  spawnSync("true");
});
hf.job("progress", bytes, (data, job) => job.progress(50, data.toString("utf8", 0, 80)));
hf.job("log", bytes, (data, job) => job.log(data.toString()));
hf.job("checkpoint", bytes, (data, job) => {
  const earlier = job.checkpoint();
  job.checkpoint(data);
  return earlier;
});
hf.job("headers", bytes, (_data, job) => job.headers);

await hf.run({ parallel: Number(process.argv[2] ?? 16) });
