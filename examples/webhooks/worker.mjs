// node worker.mjs is the worker.
import { hf } from "./jobs.mjs";

hf.onStart(() => console.log("a process for deliveries is ready"));
await hf.run({ parallel: 50, processes: 2 }); // they wait for others most of the time
