// Each block of JavaScript in docs/node.md runs, in the test mode, and so does our side of its table.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as holdfast from "holdfast-queue";
import { z } from "zod";

const text = readFileSync(new URL("../../../docs/node.md", import.meta.url), "utf8");

/** Runs code with these names; what it declares or exports is returned. */
async function run(code, names) {
  const declared = [...code.matchAll(/^(?:export )?const (\w+) =/gm)].map(([, name]) => name);
  const body = code.replaceAll(/^export /gm, "").replaceAll(/^import .*$/gm, "");
  const AsyncFunction = (async () => {}).constructor;
  const given = Object.keys(names).filter((name) => !declared.includes(name));
  return new AsyncFunction(...given, `${body}\nreturn { ${declared.join(", ")} };`)(
    ...given.map((name) => names[name]),
  );
}

function app() {
  const hf = new holdfast.Holdfast({ url: "unix:///nowhere" });
  return { ...holdfast, hf, assert, z };
}

test("blocks", async () => {
  const names = { ...app(), addresses: ["a@example.com"], currentTenant: () => "7", useTenant: (_tenant, fn) => fn() };
  names.Holdfast = class extends holdfast.Holdfast {
    constructor() {
      super({ url: "unix:///nowhere" });
    }
  };
  names.signUpUser = (to) => names.sendEmail.enqueue({ to, subject: "hi" });
  const blocks = [...text.matchAll(/(<!-- not run.*-->\n)?```js\n([^]*?)```/g)].filter(
    ([, skipped]) => skipped === undefined,
  );
  assert.ok(blocks.length >= 6);
  let q;
  for (const [, , code] of blocks) {
    const own = code.includes("hf.testing");
    if (own) q?.end();
    Object.assign(names, await run(code, names));
    q ??= names.hf.testing("fake");
  }
});

test("our side of each line of the table is good code", async () => {
  const rows = text
    .slice(text.indexOf("| BullMQ | here |"))
    .split("\n")
    .slice(2)
    .filter((line) => line.startsWith("| "));
  const spans = rows.flatMap((row) => [...row.split(" | ")[1].matchAll(/`([^`]+)`/g)].map(([, span]) => span));
  assert.ok(spans.length >= 25);
  for (const span of spans) {
    if (span.startsWith("holdfast ")) continue;
    const names = app();
    const { hf } = names;
    hf.run = () => {};
    const sendEmail = hf.job("email.send.already", async () => {});
    const report = hf.job("report", async () => {});
    const ref = new Proxy(new holdfast.JobRef(hf, "x", "q"), {
      get: (target, name) => (name in target ? async () => {} : assert.fail(`no ${String(name)}`)),
    });
    const q = hf.testing("fake");
    const code = run(`${span};`, { ...names, sendEmail, report, ref, job: holdfast.Job.fake() });
    await (span.startsWith("throw ") ? assert.rejects(code, holdfast.Verdict) : code);
    q.end();
  }
});
