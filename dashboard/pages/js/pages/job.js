// job.js - one job: where it is, why it failed, its runs, its log, its payload.
import { fileOf, getBytes } from "../api.js";
import { bytes, clock, exact, holderText, jobCommands, plain, span } from "../format.js";
import {
  button,
  cell,
  choice,
  facts,
  figure,
  h,
  link,
  mark,
  num,
  queueLink,
  say,
  section,
  state,
  table,
  tag,
  when,
} from "../dom.js";
import { gauge, life } from "../charts.js";
import { changeButton } from "../change.js";
import { missing, room } from "../page.js";
import { whyBox } from "./queue.js";
import { cancelButton } from "./running.js";

const SHOWN_BYTES = 65536;
const ALL_BYTES = 2 ** 31 - 1;
const MARK = {
  crashed: "crashed",
  gone: "crashed",
  failed: "failed",
  lost: "failed",
  running: "running",
  done: "done",
  dead: "dead",
  cancelled: "dead",
};
const KIND = {
  crashed: "killed",
  gone: "killed",
  failed: "failed",
  lost: "failed",
  running: "running",
  dead: "deadrun",
};

// ---- its life ----
// Runs as charts.js draws them: those that are known.
const runsOf = (j) =>
  j.runs.map((r, i) => ({
    n: r.run ?? i + 1,
    name: r.run ? `run ${r.run}` : r.attempt ? `attempt ${r.attempt}` : "a run",
    start: r.start_ms,
    end: r.end_ms,
    lease: r.lease_until_ms ?? null,
    worker: r.worker,
    error: r.error ?? "",
    outcome: r.outcome,
  }));

function lifeOf(j) {
  const runs = runsOf(j).map((r) => ({ ...r, kind: KIND[r.outcome] ?? "ended" }));
  const over = j.state === "dead" || j.state === "done";
  const to = over ? Math.max(j.due_ms ?? 0, ...runs.map((r) => r.end ?? 0)) : clock.now();
  const said = runs.map((r) => `${r.name} ${r.outcome}${r.end ? ` after ${span(r.end - r.start)}` : ""}`).join(", ");
  const picture =
    j.created_ms &&
    to > j.created_ms &&
    h(
      "div",
      { class: "sheet pad" },
      life(
        { created: j.created_ms, runs, leaseMs: j.lease_remaining_ms },
        { to, width: room(), label: `The life of the job: ${said || "it did not run yet"}` },
      ),
    );
  const row = (r) =>
    h(
      "tr",
      { "data-key": `${r.start} ${r.worker}` },
      h("th", { scope: "row" }, r.name),
      cell("outcome", h("span", { class: "state" }, mark(MARK[r.outcome] ?? "note"), r.outcome)),
      cell("worker", holderText(r.worker)),
      cell("began", when(r.start)),
      figure("ran", span((r.end ?? clock.now()) - r.start)),
      h("td", { class: "full" }, r.error ? h("span", { class: "mono" }, r.error) : ""),
    );
  return section(
    "life",
    "Its life",
    { said: j.created_ms && ["accepted ", when(j.created_ms)] },
    picture,
    runs.length > 0 && table("Runs", ["Run", "Outcome", "Worker", "Began", num("Ran"), "Error"], runs.map(row)),
  );
}

// ---- its log ----
// An event goes on from where the one before it ended, an answer from where it was asked to.
const isNext = (old, fresh) => !fresh.after || (fresh.after.fence === old.fence && fresh.after.from === old.from);
const missedLog = (old, fresh) =>
  !isNext(old, fresh) && (fresh.fence > old.fence || (fresh.fence === old.fence && fresh.from > old.from));

function mergeLog(old, fresh) {
  if (!isNext(old, fresh)) return old;
  const kept = old.items.filter((p) => !fresh.items.some((q) => q.fence === p.fence && q.from <= p.from));
  return { ...fresh, items: [...kept, ...fresh.items].sort((a, b) => a.fence - b.fence || a.from - b.from) };
}

function logOf(at) {
  const log = at.data.log;
  if (!log?.items.length)
    return section(
      "log",
      "Log",
      {},
      h("p", { class: "sheet empty" }, "It has logged nothing, or its log is no longer kept."),
    );
  const fences = [...new Set(log.items.map((p) => p.fence))];
  const fence = fences.includes(at.own.fence) ? at.own.fence : fences.at(-1);
  const pieces = log.items.filter((p) => p.fence === fence);
  const text = pieces.map((p) => p.text ?? "(not text) ").join("");
  const follow = h("input", {
    type: "checkbox",
    checked: at.own.follow !== false,
    onchange: (e) => {
      at.own.follow = e.target.checked;
    },
  });
  const pre = h("pre", { id: "log-text", tabindex: 0, role: "group", "aria-label": "log" }, text);
  if (at.own.follow !== false)
    requestAnimationFrame(() => {
      const shown = document.getElementById("log-text");
      if (shown) shown.scrollTop = shown.scrollHeight;
    });
  return section(
    "log",
    `Log of attempt ${pieces[0].attempt}`,
    {
      right: [
        fences.length > 1 &&
          choice(
            "Run of the log",
            String(fence),
            fences.map((f) => [String(f), `fence ${f}`]),
            (f) => {
              at.own.fence = Number(f);
              at.redraw();
            },
          ),
        h("label", {}, follow, " follow"),
      ],
    },
    pieces[0].from > 0 && h("p", { class: "soft" }, `The first ${bytes(pieces[0].from)} are no longer kept.`),
    h("div", { class: "sheet" }, pre),
  );
}

// ---- its payload and its result ----
const TOKEN = /("(?:[^"\\]|\\.)*"(?=:)|"(?:[^"\\]|\\.)*"|\b(?:true|false|null|-?\d+(?:\.\d+)?)\b)/g;
const coloured = (text) =>
  text
    .split(TOKEN)
    .map((part) =>
      /^"/.test(part)
        ? h("span", { class: "s" }, part)
        : /^(true|false|null|-?\d)/.test(part)
          ? h("span", { class: "k" }, part)
          : part,
    );

function hex(data) {
  const lines = [];
  for (let i = 0; i < data.length; i += 16) {
    const row = [...data.slice(i, i + 16)];
    const digits = row.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${i.toString(16).padStart(8, "0")}  ${digits.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}
function asJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

async function load(at, kind, path) {
  at.own[kind] = { loading: true };
  try {
    at.own[kind] = { data: await getBytes(path) };
  } catch (error) {
    at.own[kind] = { error: error.message };
  }
  at.redraw();
}

// kind: payload or result.
function bytesOf(at, j, kind, size) {
  const title = kind === "payload" ? "Payload" : "Result";
  if (size === null || size === undefined) return null;
  if (at.about.payloads === false)
    return section(kind, title, { said: `${bytes(size)}, hidden by the options of the dashboard` });
  if (size === 0) return section(kind, title, { said: "none" });
  const path = (max = ALL_BYTES) =>
    at.api(["jobs", j.id, kind], { queue: j.queue, ...(kind === "payload" && { max }) });
  const own = at.own[kind];
  if (!own) void load(at, kind, path(SHOWN_BYTES));
  if (!own || own.loading || own.error)
    return section(
      kind,
      title,
      { said: bytes(size) },
      h("p", { class: "sheet empty", role: "status" }, own?.error ?? "Loading…"),
    );
  const text = new TextDecoder().decode(own.data);
  const pretty = own.data.length >= size ? asJson(text) : null;
  const forms = [pretty !== null && "JSON", "text", "hex"].filter(Boolean);
  const form = forms.includes(own.form) ? own.form : forms[0];
  const shown = { JSON: () => coloured(pretty), text: () => text, hex: () => hex(own.data) }[form]();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(new TextDecoder().decode(await getBytes(path())));
      say("Copied, all of it.");
    } catch {
      say("This browser does not let the page copy. Use Download instead.");
    }
  };
  const choose = (f) => () => {
    own.form = f;
    at.redraw();
  };
  return section(
    kind,
    title,
    {
      said: bytes(size) + (own.data.length < size ? `, of which the first ${bytes(own.data.length)} are shown` : ""),
      right: [
        h(
          "span",
          { class: "chips" },
          forms.map((f) => button(f, choose(f), { "aria-pressed": String(f === form) })),
        ),
        button("Copy", copy, { class: "small", "aria-label": `Copy the ${kind}` }),
        h(
          "a",
          {
            class: "button small",
            href: fileOf(path()),
            download: `${j.id}.${kind}`,
            "aria-label": `Download the ${kind}`,
          },
          "Download",
        ),
      ],
    },
    h("div", { class: "sheet" }, h("pre", { tabindex: 0, role: "group", "aria-label": `${kind} as ${form}` }, shown)),
  );
}

// ---- the page ----
const DUE = [
  ["", "as it is"],
  ["0", "now"],
  ["600000", "in 10 minutes"],
  ["3600000", "in an hour"],
  ["86400000", "in a day"],
];
const PRIORITY = [["", "as it is"], ...["high", "normal", "low"].map((p) => [p, p])];

// The whole payload as a text that can be written back as it is; null: it is none.
function payloadText(at, j) {
  const data = at.own.payload?.data;
  if (!data || data.length < j.payload_bytes) return null;
  const text = new TextDecoder().decode(data);
  return plain(text) === text && !text.includes("\ufffd") ? text : null;
}

function editButton(at, j) {
  const edit = { priority: "", delay: "" };
  const text = payloadText(at, j);
  const area =
    text !== null && h("textarea", { class: "field mono", rows: 8, spellcheck: "false", "aria-label": "Payload" });
  if (area) area.value = text;
  const label = (name, node) => h("label", {}, name, " ", node);
  return changeButton(at, {
    label: "Edit…",
    title: `Change job ${j.id}?`,
    text: "Only a job that waits can be changed. The time in which it must start counts from its new time.",
    fields: [
      label(
        "due",
        choice("Due", "", DUE, (ms) => {
          edit.delay = ms;
        }),
      ),
      label(
        "priority",
        choice("Priority", "", PRIORITY, (p) => {
          edit.priority = p;
        }),
      ),
      area,
    ].filter(Boolean),
    verb: "Change it",
    path: at.api(["jobs", j.id, "edit"]),
    body: () => ({
      queue: j.queue,
      ...(edit.delay !== "" && { delay_ms: Number(edit.delay) }),
      ...(edit.priority && { priority: edit.priority }),
      ...(area && area.value !== text && { payload: area.value }),
    }),
    after: () => {
      delete at.own.payload; // it is read again
    },
    done: `Job ${j.id} is changed.`,
  });
}

function acts(at, j) {
  const path = (verb) => at.api(["jobs", j.id, verb]);
  const waits = ["dead", "delayed", "retry"].includes(j.state);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("Copied.");
    } catch {
      say("This browser does not let the page copy.");
    }
  };
  return [
    button("Copy the link", copy),
    waits &&
      changeButton(at, {
        label: j.state === "dead" ? "Retry" : "Run now",
        main: true,
        title: j.state === "dead" ? `Run job ${j.id} again?` : `Run job ${j.id} now?`,
        text:
          j.state === "dead"
            ? "It starts like a new one, with all its attempts."
            : "It becomes ready, and takes its place in the line.",
        verb: "Run it",
        path: path("retry"),
        body: () => ({ queue: j.queue }),
        done: `Job ${j.id} is ready.`,
      }),
    ["ready", "delayed", "retry"].includes(j.state) && editButton(at, j),
    j.state !== "dead" && j.state !== "done" && cancelButton(at, j),
    (waits || j.state === "ready") &&
      changeButton(at, {
        label: "Delete…",
        risk: true,
        title: `Delete job ${j.id}?`,
        text: "It is removed, and cannot be brought back.",
        verb: "Delete it",
        path: path("delete"),
        body: () => ({ queue: j.queue }),
        done: `Job ${j.id} is deleted.`,
      }),
  ];
}

function traceOf(j) {
  const parent = j.headers?.traceparent;
  return parent ? parent.split("-")[1] : null;
}

const factsOf = (j) => {
  const runs = j.state === "running";
  return facts([
    j.progress !== null &&
      j.progress !== undefined && [
        "progress",
        h(
          "span",
          { class: "progress" },
          gauge(j.progress, 100, { w: 200, label: j.progress + " percent" }),
          j.progress + " %",
        ),
      ],
    j.note && ["note", j.note],
    runs && ["holder", holderText(j.holder)],
    runs && [
      "lease",
      j.lease_remaining_ms > 0 ? `ends in ${span(j.lease_remaining_ms)} unless it is renewed` : "is over",
    ],
    runs && ["fence", h("span", { class: "mono" }, j.fence)],
    ["queue", queueLink(j.queue)],
    ["type", j.type],
    ["priority", j.priority],
    ["accepted", when(j.created_ms)],
    !runs && [{ dead: "died", done: "ended" }[j.state] ?? "due", when(j.due_ms)],
    j.start_by_ms && ["expires unless it starts", when(j.start_by_ms)],
    ["attempts", `${exact(j.attempts)} failed${j.max_attempts ? `, at most ${exact(j.max_attempts)}` : ""}`],
    ["crashes", exact(j.crashes)],
    j.timeout_ms > 0 && ["timeout", span(j.timeout_ms)],
    j.keep_ms > 0 && ["kept when done", span(j.keep_ms)],
    j.kept_until_ms && ["kept until", when(j.kept_until_ms)],
    j.unique && ["unique key", h("span", { class: "mono" }, j.unique)],
    j.follows && ["follows", link("job/" + encodeURIComponent(j.follows), j.follows)],
    j.on_dead && ["on death", j.on_dead],
    j.checkpoint_bytes > 0 && ["checkpoint", bytes(j.checkpoint_bytes)],
    traceOf(j) && ["trace", h("span", { class: "mono" }, traceOf(j))],
  ]);
};

export const job = {
  parts(at) {
    const id = at.rest[0] ?? "";
    const queue = at.params.get("queue");
    return {
      job: { path: at.api(["jobs", id], { queue }), topic: "job:" + id },
      why: { path: at.api(["jobs", id, "why"], { queue }), every: 3000 },
      log: {
        path: at.api(["jobs", id, "logs"], { queue }),
        next: (log) => at.api(["jobs", id, "logs"], { queue, fence: log.fence, from: log.from }),
        topic: "job:" + id,
        event: "log",
        merge: mergeLog,
        missed: missedLog,
      },
    };
  },
  view(at) {
    const id = at.rest[0] ?? "";
    const j = at.data.job;
    const cli = jobCommands(id, j?.queue ?? at.params.get("queue"));
    const crumb = j && h("p", { class: "crumb" }, queueLink(j.queue), " / ", j.type);
    const heading = h("div", {}, crumb, h("h1", { class: "mono" }, id));
    if (!j) return { title: id, cli, content: [h("div", { class: "head" }, heading), missing(at, "job")] };
    const run = j.state === "running" ? j.attempts + j.crashes + 1 : j.runs.length;
    const counts =
      run > 0 &&
      `run ${run}, ${j.state === "running" ? "attempt" : "failed attempts"} ${j.attempts + (j.state === "running" ? 1 : 0)}${j.max_attempts ? ` of ${j.max_attempts}` : ""}`;
    const reasons = at.data.why?.texts;
    return {
      title: plain(id),
      cli,
      content: [
        h(
          "div",
          { class: "head" },
          heading,
          h(
            "span",
            { class: "tag" + (j.state === "running" ? " run" : j.state === "dead" ? " bad" : "") },
            state(j.state),
          ),
          counts && tag(counts),
          h("div", { class: "acts" }, acts(at, j)),
        ),
        reasons
          ? whyBox("Why", reasons, j.error && ["Last error: ", h("code", {}, j.error)], j.state === "dead")
          : missing(at, "why"),
        lifeOf(j),
        h(
          "div",
          { class: "two wide-left" },
          h(
            "div",
            { class: "stack" },
            logOf(at),
            j.state !== "done" && bytesOf(at, j, "payload", j.payload_bytes),
            bytesOf(at, j, "result", j.result_bytes),
          ),
          section("facts", "Facts", {}, h("div", { class: "sheet pad" }, factsOf(j))),
        ),
      ],
    };
  },
};
