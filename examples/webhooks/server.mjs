// The service: POST /deliveries accepts one, GET /deliveries/ID says how it is.
import { createServer } from "node:http";
import { JobCancelled, JobDead, JobUnknown, NoAnswer, ResultTimeout } from "holdfast-queue";
import { deliver, hf } from "./jobs.mjs";

const BODY_MAX = 64 * 1024;
const WAITS = ["waiting", "running", "parked"];

/** A request that cannot be served, with the sentence for its sender. */
class Wrong extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function jsonOf(request) {
  const pieces = [];
  let size = 0;
  for await (const piece of request) {
    size += piece.length;
    if (size > BODY_MAX) throw new Wrong(413, `expected at most ${BODY_MAX} bytes`);
    pieces.push(piece);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    throw new Wrong(400, "expected JSON");
  }
}

function checked(value) {
  const { id, url, event } = Object(value);
  if (typeof id !== "string" || !/^[\w.:-]{1,128}$/.test(id))
    throw new Wrong(400, "id: expected 1 to 128 characters of A-Z a-z 0-9 . _ : -");
  if (typeof url !== "string" || !URL.canParse(url) || !/^https?:/.test(url))
    throw new Wrong(400, "url: expected an address with http:// or https://");
  if (event === undefined) throw new Wrong(400, "event: expected any JSON, found nothing");
  return { id, url, event };
}

/** The sender chooses the id, so one that had no answer may send again: a job that is done still has its unique key. */
async function accept(request) {
  const { id, url, event } = checked(await jsonOf(request));
  const { outcome } = await deliver.enqueue({ url, event }, { id, unique: id, uniqueFor: "1d" });
  return outcome === "new" ? [202, { id, outcome }] : [200, { id, outcome: "exists" }];
}

async function look(id) {
  const ref = hf.ref(id);
  const state = await ref.state();
  if (WAITS.includes(state)) return [200, { id, state }];
  try {
    const result = await ref.result({ timeout: "1s" });
    return [200, { id, state: "done", ...result }];
  } catch (error) {
    if (error instanceof JobUnknown) throw new Wrong(404, "there is no such delivery");
    if (error instanceof JobDead) return [200, { id, state: "dead", error: error.text.split("\n")[0] }];
    if (error instanceof JobCancelled) return [200, { id, state: "cancelled" }];
    if (error instanceof ResultTimeout) return [200, { id, state: "waiting" }]; // retried in this moment
    throw error;
  }
}

async function answer(request) {
  const { pathname } = new URL(request.url, "http://localhost");
  if (request.method === "POST" && pathname === "/deliveries") return accept(request);
  const [, id] = /^\/deliveries\/([\w.:-]{1,128})$/.exec(pathname) ?? [];
  if (request.method === "GET" && id !== undefined) return look(id);
  throw new Wrong(404, "expected POST /deliveries or GET /deliveries/ID");
}

const server = createServer(async (request, response) => {
  let status, body;
  try {
    [status, body] = await answer(request);
  } catch (error) {
    // Without an answer from Redis it is not known whether the job was accepted: the same id will tell.
    status = error.status ?? (error instanceof NoAnswer ? 503 : 500);
    body = { error: status === 500 ? "this service has failed" : status === 503 ? "send it again" : error.message };
    if (status >= 500) console.error(error);
  }
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body) + "\n");
});

process.once("SIGTERM", () => {
  server.close(() => hf.close());
  server.closeIdleConnections();
});
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => console.log("serving"));
