// server.mjs - a server for the tests of the pages: their files, and an API over data.mjs. It is none for Redis.
//
//   node server.mjs [case]      listens on a free port of 127.0.0.1 and prints its address
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { World } from "./data.mjs";

const PAGES = fileURLToPath(new URL("../../dashboard/pages/", import.meta.url));
const KINDS = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
// The dashboard's own table: what each address reads. Everything else is refused, as there.
const TABLE = readFileSync(new URL("../../dashboard/routes_table.c", import.meta.url), "utf8").replace(/"\s+"/g, "");
const ROUTES = [...TABLE.matchAll(/\{(?:\.post|\.path)[^}]*\}/g)].map(([text]) => {
  const of = (key) => text.match(new RegExp(`\\.${key} = "([^"]*)"`))?.[1] ?? "";
  return {
    post: text.includes(".post = true"),
    path: of("path").split("/"),
    params: of("params").split(" "),
    fields: of("fields").split(" "),
  };
});

// The first thing that is not read there; undefined: all is.
function unread(post, names, query, body = {}) {
  const is = (route) => route.path.length === names.length && route.path.every((w, i) => w === "*" || w === names[i]);
  const route = ROUTES.find((one) => one.post === post && is(one));
  const param = [...query.keys()].find((name) => !route?.params.includes(name));
  return param ?? Object.keys(body).find((name) => !route?.fields.includes(name));
}

export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

export class Server {
  constructor(name, { changes = false, prefix = "/" } = {}) {
    this.prefix = prefix;
    this.world = new World(name, Date.now());
    this.world.changes = changes;
    this.away = name === "away";
    this.looks = 1;
    this.awaySince = Date.now() - 14000;
    this.posts = []; // what was changed: [path, body, headers]
    this.sent = 0; // bytes of bodies
    this.streams = new Set();
    this.http = createServer((request, response) => this.answer(request, response));
  }

  async listen() {
    await new Promise((resolve) => this.http.listen(0, "127.0.0.1", resolve));
    this.timer = setInterval(() => this.tick(), 1000);
    return `http://127.0.0.1:${this.http.address().port}${this.prefix}`;
  }
  close() {
    clearInterval(this.timer);
    this.http.closeAllConnections();
    this.http.close();
  }

  tick() {
    if (!this.away) this.world.now = Date.now();
    this.looks++;
    for (const stream of this.streams) this.push(stream);
  }

  // ---- answers ----
  answer(request, response) {
    const url = new URL(request.url, "http://x");
    if (!url.pathname.startsWith(this.prefix)) return this.give(response, 404, "text/plain", "not here");
    const path = url.pathname.slice(this.prefix.length);
    if (!path.startsWith("api/v1/")) return this.file(request, response, path);
    const names = path.slice("api/v1/".length).split("/").map(decodeURIComponent);
    if (names[0] === "events") return this.stream(request, response, url.searchParams);
    if (request.method === "POST") return this.change(request, response, names, url.searchParams);
    const slip = unread(false, names, url.searchParams);
    if (slip !== undefined) return this.json(response, 400, { error: `${path}: unknown ${slip}`, code: "invalid" });
    const body = this.read(names, url.searchParams);
    if (body instanceof Uint8Array) return this.give(response, 200, "application/octet-stream", body);
    if (body === null) return this.json(response, 404, { error: `There is no ${names.join(" ")}.`, code: "not_found" });
    return this.json(response, 200, this.dated(body));
  }
  dated(body) {
    return { now_ms: Date.now(), age_ms: this.away ? Date.now() - this.awaySince : 0, ...body };
  }
  json(response, status, body) {
    this.give(response, status, "application/json", JSON.stringify(body));
  }
  give(response, status, type, body, packed = false) {
    this.sent += body.length;
    response.writeHead(status, {
      "Content-Type": type + "; charset=utf-8",
      "Content-Security-Policy": POLICY,
      "X-Content-Type-Options": "nosniff",
      "Cache-Control": "no-store",
      ...(packed && { "Content-Encoding": "gzip" }),
    });
    response.end(body);
  }
  // Every address that is no file is the page.
  file(request, response, path) {
    const clean = normalize("/" + path);
    const known = extname(clean) in KINDS;
    let body = readFileSync(join(PAGES, known ? clean : "/index.html"));
    if (!known) body = Buffer.from(body.toString().replace('<base href="./">', `<base href="${this.prefix}">`));
    const packed = request.headers["accept-encoding"]?.includes("gzip") ?? false;
    this.give(
      response,
      200,
      known ? KINDS[extname(clean)] : "text/html",
      packed ? gzipSync(body, { level: 9 }) : body,
      packed,
    );
  }

  // ---- reading ----
  read(names, query) {
    const { world } = this;
    const list = (items, looked = items.length) => ({ items, next: null, looked_at: looked });
    const [first, second, third] = names;
    if (first === "queues" && second) return this.readQueue(second, third, query);
    if (first === "jobs") return this.readJob(second, third, query.get("queue") ?? "reports");
    if (first === "queues") {
      const found = world.queues.filter((q) => q.queue.includes(query.get("match") ?? ""));
      return list(found.slice(Number(query.get("after") ?? 0)));
    }
    if (first === "tasks" && second) return world.tasks.get(second) ?? null;
    if (first === "tasks") return list([...world.tasks.values()]);
    if (first === "dead")
      return {
        groups: world.groups().filter((g) => !query.get("queue") || g.queue === query.get("queue")),
        rest: 0,
        looked_at: 216,
      };
    if (first === "lock") return world.locks().find((l) => l.name === query.get("name")) ?? null;
    if (first === "find") return this.find(query.get("q"));
    const simple = {
      about: () => world.about(),
      overview: () => world.overview(),
      runs: () => ({ ...this.runs(), from_ms: world.now - Number(query.get("since_ms")) }),
      running: () => list(world.running()),
      workers: () => list(world.workers),
      schedules: () => list(world.schedules()),
      locks: () => list(world.locks()),
      stats: () => world.stats(),
      redis: () => world.redis(),
      doctor: () => world.doctor(),
    };
    return simple[first]?.() ?? null;
  }
  runs() {
    const { world } = this;
    const workers = world.workers.map((w) => ({
      id: w.id,
      host: w.host,
      pid: w.pid,
      slots: w.concurrency,
      started_ms: w.started_ms,
      gone_ms: w.state === "silent" ? w.heard_ms : null,
      ended_ms: null,
    }));
    const runs = world.runs.filter((run) => run.worker !== world.untold);
    return { workers, runs, short: world.short(), cut: 0, look: this.looks, from_look: 0, watched: true };
  }
  readQueue(name, what, query) {
    const q = this.world.queue(name);
    if (!q) return null;
    if (what === "history") return this.world.history();
    if (what === "jobs") return this.world.jobs(q, query.get("state"), query.get("after"));
    return this.world.queueWhole(name);
  }
  readJob(id, what, queue) {
    if (id === "absent") return null;
    const texts = [{ word: "running", text: "batch1 pid 77 has run it for 1 min 2 s; its lease is renewed" }];
    if (what === "why") return { ...this.world.job(id, queue), reasons: ["running"], texts };
    if (what === "logs") return this.world.logs();
    if (what === "payload") return new TextEncoder().encode(this.world.payload());
    if (what === "result") return null;
    return { ...this.world.job(id, queue), payload_bytes: Buffer.byteLength(this.world.payload()) };
  }
  find(text) {
    if (this.world.queue(text)) return { queue: text };
    if (text.startsWith("P6w")) return { job: text, queue: "reports" };
    return null;
  }

  // ---- changes ----
  change(request, response, names, query) {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString() || "{}");
      this.posts.push({ path: names.join("/"), body, headers: request.headers });
      if (!this.world.changes || request.headers["holdfast-change"] !== "1")
        return this.json(response, 403, { error: "Changes are not allowed.", code: "read_only" });
      const slip = unread(true, names, query, body);
      if (slip !== undefined)
        return this.json(response, 400, { error: `${names.join("/")}: unknown ${slip}`, code: "invalid" });
      return this.json(response, 200, this.dated(this.apply(names, body)));
    });
  }
  apply([first, second, third], body) {
    const { world } = this;
    if (first === "queues" && third === "pause") world.paused.add(second);
    if (first === "queues" && third === "resume") world.paused.delete(second);
    if (first !== "dead") return {};
    const task = "t" + this.posts.length;
    world.retried.add(body.key);
    world.tasks.set(task, {
      ...{ task, verb: second, queue: body.queue, type: body.type, key: body.key, began_ms: Date.now() },
      ...{ state: "done", done: body.expect, total: body.expect, unsure: 0, stopping: false, error: null },
    });
    return { task };
  }

  // ---- events ----
  stream(request, response, query) {
    response.writeHead(200, {
      "Content-Type": "text/event-stream",
      "Content-Security-Policy": POLICY,
      "Cache-Control": "no-store",
    });
    response.write("retry: 2000\n\n");
    const stream = { response, topics: query.get("topics").split(",").map(decodeURIComponent) };
    this.streams.add(stream);
    request.on("close", () => this.streams.delete(stream));
    this.push(stream);
  }
  push({ response, topics }) {
    const send = (event, body) => response.write(`event: ${event}\ndata: ${JSON.stringify(this.dated(body))}\n\n`);
    if (this.away) return send("away", { error: "Connection refused (redis.prod:6379)." });
    for (const topic of topics) {
      const [kind, ...name] = topic.split(":");
      if (kind === "overview") send("overview", this.world.overview());
      if (kind === "runs") send("runs", { ...this.runs(), from_look: this.looks - 5, runs: [], short: [] });
      if (kind === "queue") send("queue", this.world.queueWhole(name.join(":")) ?? {});
      if (kind === "job" && name[0] !== "absent") {
        send("job", this.readJob(name.join(":"), null, "reports"));
        const { fence, from } = this.world.logs();
        send("log", { items: [], fence, from, ended: false, after: { fence, from } });
      }
    }
    return true;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = new Server(process.argv[2] ?? "wrong", { changes: process.argv[3] === "changes" });
  console.log(await server.listen());
}
