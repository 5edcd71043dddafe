// What a reader types, as printed: the worker of README.md, and the service examples/webhooks.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePort, Server } from "./server.mjs";

const client = fileURLToPath(new URL("..", import.meta.url));
const root = join(client, "../..");

/** The blocks below a heading, or of a whole page. */
function blocksOf(file, heading = "") {
  const text = readFileSync(join(root, file), "utf8");
  const part = heading === "" ? text : text.slice(text.indexOf(`\n${heading}\n`)).split("\n## ", 2)[1];
  return [...part.matchAll(/^```\w+\n([^]*?)^```$/gm)].map(([, block]) => block);
}

/** A folder with the package, as after an installation, and with the command in PATH. */
class Place {
  constructor(server) {
    this.folder = join(server.folder, "app");
    mkdirSync(join(this.folder, "node_modules"), { recursive: true });
    mkdirSync(join(this.folder, "bin"));
    symlinkSync(client, join(this.folder, "node_modules", "holdfast-queue"));
    writeFileSync(join(this.folder, "bin", "holdfast"), `#!/bin/sh\nexec ${process.env.HOLDFAST} "$@"\n`);
    chmodSync(join(this.folder, "bin", "holdfast"), 0o755);
    const { PATH, HOLDFAST_LUA } = process.env;
    this.env = { PATH: `${this.folder}/bin:${PATH}`, REDIS_URL: server.url, HOLDFAST_LUA };
  }

  /** Runs a session of bash, which must end with 0, and returns what it prints. */
  async run(session, more = {}) {
    const bash = spawn("bash", ["-euc", session], { cwd: this.folder, env: { ...this.env, ...more }, timeout: 600000 });
    let out = "";
    let errors = "";
    bash.stdout.on("data", (data) => (out += data));
    bash.stderr.on("data", (data) => (errors += data));
    const code = await new Promise((resolve) => bash.on("close", resolve));
    const logs = readdirSync(this.folder).filter((name) => name.endsWith(".log"));
    const told = logs.map((name) => `${name}:\n${readFileSync(join(this.folder, name), "utf8")}`);
    assert.equal(code, 0, out + errors + told.join("\n"));
    return out;
  }
}

test("the README", async (t) => {
  const server = await new Server().start();
  t.after(() => server.end());
  const place = new Place(server);
  const [worker, , session] = blocksOf("README.md", "## Use it from Node or Go");
  writeFileSync(join(place.folder, "worker.mjs"), worker);
  const installed = session.split("\n").filter((line) => !/^(\(cd|npm|go) /.test(line));
  assert.equal(await place.run(installed.join("\n"), { HOLDFAST: root }), 'ada\n"hello, Ada"\n');
});

// Asks without a pause until each delivery is done, and prints an answer that says so without its result.
const POLL = `
const url = \`http://127.0.0.1:\${process.env.PORT}/deliveries\`;
for (let i = 0; i < 50; i++) {
  const body = JSON.stringify({ id: "polled-" + i, url: process.env.RECEIVER, event: {} });
  await fetch(url, { method: "POST", body });
  let seen;
  do seen = await (await fetch(url + "/polled-" + i)).json();
  while (seen.state !== "done");
  if (seen.status !== 200) console.log(seen);
}
`;

test("the service of webhooks", async (t) => {
  const server = await new Server().start();
  const seen = [];
  const receiver = createServer(async (request, response) => {
    const body = (await request.toArray()).join("");
    seen.push({ body, ...request.headers });
    if (seen.length === 1) response.writeHead(503, { "retry-after": "0" });
    response.end();
  }).listen(0, "127.0.0.1");
  t.after(() => Promise.all([server.end(), receiver.close()]));
  await new Promise((resolve) => receiver.on("listening", resolve));
  const place = new Place(server);
  cpSync(join(root, "examples/webhooks"), place.folder, { recursive: true });
  const [start, deliver, shown, stop] = blocksOf("examples/webhooks/README.md");
  const PORT = String(await freePort());
  const wrong = `curl -s http://127.0.0.1:$PORT/deliveries --json '{"id":"a b"}'; curl -s http://127.0.0.1:$PORT/deliveries/x\n`;
  const said =
    '{"error":"id: expected 1 to 128 characters of A-Z a-z 0-9 . _ : -"}\n{"error":"there is no such delivery"}\n';
  const more = { PORT, RECEIVER: `http://127.0.0.1:${receiver.address().port}/` };
  const again = `curl -s http://127.0.0.1:$PORT/deliveries --json '{"id":"order-7","url":"'$RECEIVER'","event":1}'\n`;
  const known = '{"id":"order-7","outcome":"exists"}\n';
  writeFileSync(join(place.folder, "poll.mjs"), POLL);
  const typed = start + deliver + again + wrong + "node poll.mjs\n" + stop;
  assert.equal(await place.run(typed, more), shown + known + said);
  assert.equal(seen.length, 52);
  for (const { body, ...headers } of seen.slice(0, 2)) {
    assert.equal(body, '{"paid":true}');
    assert.equal(headers["webhook-id"], "order-7");
    const expected = createHmac("sha256", "only-for-trying").update(`order-7.${body}`).digest("hex");
    assert.equal(headers["webhook-signature"], expected);
  }
});
