// The two forms of the package, and what is in it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import * as esm from "holdfast-queue";

const folder = fileURLToPath(new URL("..", import.meta.url));
const described = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const cjs = createRequire(import.meta.url)("holdfast-queue");

test("both forms have the same names, and are one implementation", () => {
  for (const [name, value] of Object.entries(cjs)) assert.equal(esm[name], value, name);
  assert.deepEqual(
    Object.keys(esm).filter((name) => !(name in cjs) && !["default", "module.exports"].includes(name)),
    [],
  );
});

test("the version stands in two places", () => {
  const { VERSION } = createRequire(import.meta.url)("../dist/package.js");
  assert.equal(VERSION, described.version);
});

test("it needs nothing else at run time", () => {
  assert.equal(described.dependencies, undefined);
});

function nodeWith(modules, script) {
  const place = mkdtempSync(join(tmpdir(), "hf-package-"));
  try {
    for (const [name, from] of Object.entries({ "holdfast-queue": folder, ...modules }))
      cpSync(from, join(place, "node_modules", name), {
        recursive: true,
        filter: (path) => !path.slice(from.length).includes("node_modules"),
      });
    return spawnSync(process.execPath, ["--input-type=commonjs", "-e", script], { cwd: place, encoding: "utf8" });
  } finally {
    rmSync(place, { recursive: true });
  }
}

test("without a client of Redis it says what is missing", () => {
  const { stdout, stderr } = nodeWith(
    {},
    `
    const { Holdfast } = require("holdfast-queue");
    new Holdfast().send("t").catch((error) => console.log(error.name + ": " + error.message));`,
  );
  assert.equal(
    stdout,
    "HoldfastError: expected the package redis or ioredis beside holdfast-queue: npm install redis\n",
    stderr,
  );
});

test("a program that becomes the worker needs the command, and jobs", () => {
  const start = (jobs, env = {}) =>
    spawnSync(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `
      import { Holdfast } from "holdfast-queue";
      const hf = new Holdfast();
      ${jobs}
      await hf.run();`,
      ],
      { cwd: folder, encoding: "utf8", env: { PATH: "/nowhere", ...env } },
    );
  const none = start("");
  assert.deepEqual(
    [none.status, none.stderr],
    [78, "holdfast: expected jobs, hf.job(...), before hf.run(), found none: import the modules that have them\n"],
  );
  const missing = start('hf.job("t", () => {});');
  assert.deepEqual(
    [missing.status, missing.stderr],
    [
      69,
      `holdfast: expected the command holdfast in the package @holdfast-queue/linux-${process.arch} or PATH, ` +
        "or its file in HOLDFAST_BIN, found none: install both .tgz files\n",
    ],
  );
  const wrong = start('hf.job("t", () => {});', { HOLDFAST_BIN: "/nowhere/holdfast" });
  assert.equal(wrong.status, 69);
  assert.match(wrong.stderr, /^holdfast: cannot execute \/nowhere\/holdfast: /m);
});

test("the status of the worker is that of the program", () => {
  const { status } = spawnSync(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `
    import { Holdfast } from "holdfast-queue";
    const hf = new Holdfast();
    hf.job("t", () => {});
    await hf.run();`,
    ],
    { cwd: folder, env: { ...process.env, HOLDFAST_BIN: "/bin/false" } },
  );
  assert.equal(status, 1);
});

test("the declarations need the types of Node, and ask for them", () => {
  const place = mkdtempSync(join(tmpdir(), "hf-types-"));
  try {
    const modules = join(place, "node_modules");
    for (const [name, from] of [
      ["holdfast-queue/package.json", "package.json"],
      ["holdfast-queue/dist", "dist"],
      ["@types/node", "node_modules/@types/node"],
      ["undici-types", "node_modules/undici-types"],
    ])
      cpSync(join(folder, from), join(modules, name), { recursive: true });
    writeFileSync(
      join(place, "user.mts"),
      `import { Holdfast } from "holdfast-queue";
      const hf = new Holdfast();
      hf.job("image", { bytes: true }, (data) => {
        // @ts-expect-error: a Buffer has no such member
        data.nothing;
      });`,
    );
    const words = "--noEmit --strict --target es2022 --lib es2022,esnext.disposable --module nodenext".split(" ");
    const tsc = join(folder, "node_modules/.bin/tsc");
    const { status, stdout } = spawnSync(tsc, [...words, "user.mts"], { cwd: place, encoding: "utf8" });
    assert.deepEqual([status, stdout], [0, ""]);
    assert.equal(described.peerDependenciesMeta["@types/node"].optional, true);
  } finally {
    rmSync(place, { recursive: true });
  }
});
