// api.js - what the page asks of the server: addresses, errors, changes, and the stream of events.

const ROOT = "api/v1/"; // below the base of the document
const PATIENCE_MS = 15000;

// `code` is a word of the server, or "unreachable" where no answer came.
export class ApiError extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

// names are parts of a path; params that are null or "" are left out.
export function address(names, params = {}) {
  const query = new URLSearchParams(
    Object.entries(params).filter(([, v]) => v !== null && v !== undefined && v !== ""),
  ).toString();
  return names.map(encodeURIComponent).join("/") + (query && "?" + query);
}

// An answer that is cut off is none.
async function ask(path, read, options) {
  let answer;
  try {
    answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), credentials: "same-origin", ...options });
    if (answer.ok) return await read(answer);
  } catch {
    throw new ApiError(0, "unreachable", "The dashboard does not answer.");
  }
  let body = {};
  try {
    body = await answer.json();
  } catch {
    // not of the dashboard: a proxy, for example
  }
  throw new ApiError(answer.status, body.code ?? "http", body.error ?? `The server answered with ${answer.status}.`);
}

export const get = (path) => ask(ROOT + path, (answer) => answer.json());
// The bytes of a payload or a result, or the first `max` of them.
export const getBytes = (path) => ask(ROOT + path, async (answer) => new Uint8Array(await answer.arrayBuffer()));
export const fileOf = (path) => ROOT + path;

export const change = (path, body) =>
  ask(ROOT + path, (answer) => (answer.status === 204 ? {} : answer.json()), {
    method: "POST",
    headers: { "Content-Type": "application/json", "Holdfast-Change": "1" },
    body: JSON.stringify(body),
  });

// topics: "overview", "queue:mail". on(event, data) for each event of these names. Closed by its close().
export function events(topics, names, on) {
  const source = new EventSource(ROOT + "events?topics=" + topics.map(encodeURIComponent).join(","));
  for (const name of names) source.addEventListener(name, (e) => on(name, JSON.parse(e.data)));
  return source;
}
