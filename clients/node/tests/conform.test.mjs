// `holdfast conform`, which plays the worker with any program, finds nothing wrong with this package.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("app_conform.mjs", import.meta.url));

for (const parallel of ["1", "4"])
  test(`conform, ${parallel} at a time`, () => {
    const words = ["conform", "--timeout", "2m", "--", process.execPath, program, parallel];
    const { status, stdout, stderr } = spawnSync(process.env.HOLDFAST, words, { encoding: "utf8" });
    assert.equal(status, 0, stdout + stderr);
    assert.doesNotMatch(parallel === "1" ? stdout.replaceAll(/.*its `parallel` is 1\n/g, "") : stdout, /skipped: case/);
  });
