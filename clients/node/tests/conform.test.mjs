// `holdfast conform`, which plays the worker with any program, finds nothing wrong with this package.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("app_conform.mjs", import.meta.url));

function conform(parallel, ...cases) {
  const words = ["conform", "--timeout", "2m", ...cases.flatMap((name) => ["--case", name])];
  const { status, stdout, stderr } = spawnSync(
    process.env.HOLDFAST,
    [...words, "--", process.execPath, program, parallel],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, stdout + stderr);
  return stdout;
}

test("conform", () => {
  assert.doesNotMatch(conform("4"), /skipped: case/);
});

// What a program says of `parallel` changes nothing else in it.
test("conform, one at a time", () => {
  const said = conform("1", "ready is the first frame", "two runs at a time");
  assert.match(said, /its `parallel` is 1\n2 cases: 1 passed, 0 failed, 1 skipped\n$/);
});
