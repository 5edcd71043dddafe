// data.mjs - what the API of a dashboard would answer, invented: the shapes are those of the server, the numbers are
// the same in each run. A case is: well, wrong, away, none (no queue yet), one (one of each), many.

const MINUTE = 60000;
const HOUR = 60 * MINUTE;

// Letters of the kind that attack a page. They stand in ids, types, errors, notes, logs and payloads.
export const NASTY = '<script>document.title="broken"</script><img src=x onerror=alert(1)>\u202eevil\u0007';

function randomly(seed) {
  let state = seed;
  const next = () => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return state / 4294967296;
  };
  return { next, between: (a, b) => a + next() * (b - a), pick: (list) => list[Math.floor(next() * list.length)] };
}

const workerId = (host, pid) => `${host}-${pid}-5f1c9a3e`;
const HOSTS = [
  ["web1", 4711, 32],
  ["web2", 880, 32],
  ["web3", 1290, 32],
  ["batch1", 77, 10],
  ["batch2", 3052, 4],
];
const TYPES = ["mail.send", "image.resize", "report.render", "invoice.pdf", "video.thumb"];

export class World {
  constructor(name, now) {
    this.name = name;
    this.now = now;
    this.began = now;
    this.random = randomly(20261127);
    this.size = { none: 0, one: 1, many: 64 }[name] ?? 6;
    this.queues = this.makeQueues();
    this.workers = this.makeWorkers();
    this.paused = new Set();
    this.runs = this.makeRuns();
    this.tasks = new Map();
    this.retried = new Set();
  }

  get wrong() {
    return this.name === "wrong" || this.name === "away" || this.name === "many";
  }

  makeQueues() {
    const { random, wrong } = this;
    const names = ["mail", "reports", "images", "default", "crm-sync", "search.index"];
    return Array.from({ length: this.size }, (_, i) => {
      const grows = wrong && i === 0;
      const fails = wrong && i === 1;
      return {
        queue: names[i] ?? `queue-${String(i).padStart(3, "0")}`,
        paused: wrong && i === 4,
        ready: grows ? 12480 : i * 3,
        delayed: i * 310,
        running: grows ? 20 : Math.min(10, i + 1),
        dead: fails ? 214 : 0,
        died_1h: fails ? 212 : 0,
        enqueued: 48201992,
        done: 48120406,
        failed: 61118,
        lost: 4,
        unsure: 11,
        crashed: 312,
        cancelled: 1204,
        deleted: 68004,
        expired: 0,
        replaced: 0,
        healed: 0,
        oldest_ready_ms: grows ? this.now - 432000 : i > 0 ? this.now - 180 : null,
        next_due_ms: i > 0 ? this.now + 4000 : null,
        max_running: i === 0 ? 20 : 0,
        rate_limit: i === 5 ? 500 : 0,
        rate_per_ms: i === 5 ? 1000 : 0,
        workers: 3,
        kept: i === 2 ? 12 : 0,
        kept_bytes: 0,
        parked: 0,
        ...(i === 5 && { shards: [{}, {}, {}, {}] }),
        in_per_min: grows ? 1512 : 96 * i,
        out_per_min: grows ? 1204 : 96 * i,
        failed_pct: fails ? 38 : i === 2 ? 0.4 : 0,
        spark: Array.from({ length: 60 }, (_, m) =>
          m === 7 && i === 2 ? null : Math.round(grows ? Math.max(40, (m - 20) * 312) : random.between(0, 9)),
        ),
      };
    });
  }

  makeWorkers() {
    const n = { none: 0, one: 1 }[this.name] ?? HOSTS.length;
    return HOSTS.slice(0, n).map(([host, pid, slots], i) => ({
      id: workerId(host, pid),
      host,
      pid,
      state: this.wrong && i === 1 ? "silent" : this.wrong && i === 4 ? "quiet" : "serving",
      running: this.wrong && i === 1 ? 0 : Math.round(slots * 0.6),
      concurrency: slots,
      queues: this.queues.slice(0, 3).map((q) => q.queue),
      types: TYPES.slice(0, 2 + (i % 4)),
      all_types: i === 3,
      heard_ms: this.now - (this.wrong && i === 1 ? 41000 : 2300),
      started_ms: this.now - 9 * 24 * HOUR,
      version: this.wrong && i === 4 ? "0.1.0" : "0.2.0",
      pools: i === 0 ? [{ name: "./handler", state: "up", processes: 2, slots: 8, running: 3, memory: 31e6 }] : [],
    }));
  }

  // A worker of an older version tells nothing of its runs.
  get untold() {
    return this.workers.find((w) => w.version === "0.1.0")?.id;
  }

  makeRuns() {
    const { random } = this;
    const list = [];
    for (const w of this.workers) {
      const gone = w.state === "silent" ? w.heard_ms : null;
      for (let slot = 0; slot < (this.name === "many" ? w.concurrency : 5); slot++) {
        let t = this.now - 150000 + random.between(0, 9000);
        while (t < (gone ?? this.now)) {
          const end = t + random.between(2000, this.name === "many" ? 9000 : 40000);
          const id = `P6w${list.length.toString(36).padStart(11, "0")}`;
          const run = {
            id,
            queue: this.queues[0]?.queue,
            type: random.pick(TYPES),
            run: 1,
            worker: w.id,
            slot,
            start_ms: Math.round(t),
            end_ms: null,
            again: 0,
            attempt: 1,
            outcome: "runs",
            lease_until_ms: this.now + 8000,
            progress: null,
          };
          if (gone && end > gone)
            list.push({ ...run, end_ms: gone + 9000, outcome: "gone", lease_until_ms: gone + 9000 });
          else if (end > this.now) list.push({ ...run, progress: slot % 2 ? 62 : null });
          else list.push({ ...run, end_ms: Math.round(end), outcome: random.next() < 0.07 ? "failed" : "done" });
          if (gone && end > gone) {
            const other = this.workers[0];
            list.push({
              ...run,
              run: 2,
              attempt: 1,
              worker: other.id,
              slot: 5 + slot,
              start_ms: gone + 9200,
              lease_until_ms: this.now + 8000,
            });
          }
          t = end + random.between(20, 2000);
        }
      }
    }
    return list;
  }

  short() {
    return this.workers.flatMap((w) =>
      Array.from({ length: 120 }, (_, i) => ({
        worker: w.id,
        t_ms: Math.floor(this.now / 1000) * 1000 - i * 1000,
        ok: (i * 7) % 19,
        failed: i % 31 === 0 ? 1 : 0,
      })).filter((s) => w.state !== "silent" || s.t_ms < w.heard_ms),
    );
  }

  // ---- the verdict ----
  wrongs() {
    const item = (level, rule, since, what, why, command, page) => ({
      level,
      rule,
      since_ms: since && this.now - since,
      what,
      why,
      command,
      page,
    });
    const hint = item(
      "hint",
      "no_aof",
      null,
      "Redis keeps nothing on disk.",
      "It has no append-only file, and has saved no snapshot yet.",
      "redis-cli config set appendonly yes",
      "redis",
    );
    if (!this.wrong) return this.name === "well" ? [hint] : [];
    return [
      item(
        "bad",
        "worker_silent",
        41000,
        "Worker web2 pid 880 has been silent for 41 s.",
        "It sends no heartbeat and renews no lease.",
        "holdfast worker list",
        "workers",
      ),
      item(
        "bad",
        "deaths",
        54 * MINUTE,
        "214 jobs of report.render died in the last hour.",
        "201 with one error: connection refused.",
        "holdfast dead list -q reports",
        "dead",
      ),
      item(
        "warn",
        "grows",
        40 * MINUTE,
        `Queue mail grows by 308 a minute. ${NASTY}`,
        "20 of at most 20 run, while its workers have 19 free slots.",
        "holdfast queue limit mail --max-running 39",
        "queue/mail",
      ),
      item(
        "note",
        "paused",
        58 * MINUTE,
        "Queue crm-sync has been paused for 58 min; 217 jobs wait.",
        "",
        "holdfast queue resume crm-sync",
        "queue/crm-sync",
      ),
      hint,
    ];
  }

  about() {
    return {
      redis: "redis.prod:6379/0",
      namespace: "hf",
      version: "0.2.0",
      changes: this.changes ?? false,
      payloads: true,
      tasks: true,
    };
  }

  overview() {
    const wrong = this.wrongs();
    const sum = (name) => this.queues.reduce((n, q) => n + q[name], 0);
    const count = (...levels) => wrong.filter((w) => levels.includes(w.level)).length;
    const things = count("bad", "warn");
    const oldest = this.queues.map((q) => q.oldest_ready_ms).filter(Boolean);
    return {
      verdict: {
        level: things ? "bad" : "good",
        things,
        notes: count("note"),
        hints: count("hint"),
        text: things ? `${things} things are wrong` : "All is well",
      },
      wrong,
      totals: {
        ready: sum("ready"),
        oldest_ready_ms: oldest.length ? Math.min(...oldest) : null,
        running: sum("running"),
        slots: this.workers.reduce((n, w) => n + w.concurrency, 0),
        done_per_min: sum("out_per_min"),
        failed_per_min: things ? 64 : 0,
        failed_pct: things ? 1.3 : 0,
        dead: sum("dead") - this.retried.size * 201,
        died_1h: sum("died_1h"),
        spark: this.size === 0 ? null : this.sparkOfAll(),
      },
      queues: this.queues.slice(0, 50).map((q) => this.queueOf(q)),
      n_queues: this.queues.length,
      workers: this.workers,
      n_schedules: this.schedules().length,
      n_locks: this.locks().length,
    };
  }

  sparkOfAll() {
    const of = (f) => Array.from({ length: 60 }, (_, m) => (m === 7 ? null : f(m)));
    return {
      ready: of((m) => 300 + 40 * (m % 9)),
      oldest_ms: of((m) => 7000 * m),
      running: of((m) => 50 + (m % 7)),
      done: of((m) => 4800 + 13 * (m % 11)),
      failed: of((m) => 60 + (m % 5)),
      dead: of((m) => (m % 17 === 0 ? 3 : 0)),
    };
  }

  queueOf(q) {
    return this.paused.has(q.queue) ? { ...q, paused: true } : q;
  }
  // As the page of a queue has it.
  queueWhole(name) {
    const q = this.queue(name);
    const held = {
      word: "max_running",
      text: "20 of at most 20 run (web1 pid 4711: 9, web3 pid 1290: 11)",
      command: "holdfast queue limit mail --max-running 39",
    };
    return (
      q && {
        ...q,
        shards: q.shards ?? [],
        oldest_id: null,
        free_slots: 19,
        backlog_ms: q.ready > 1000 ? 622000 : null,
        reasons: q.ready > 1000 ? [held] : [],
      }
    );
  }
  queue(name) {
    const q = this.queues.find((x) => x.queue === name);
    return q && this.queueOf(q);
  }
  history() {
    const t = Array.from({ length: 60 }, (_, i) => Math.floor(this.now / MINUTE - 59 + i) * MINUTE);
    const wave = (f) => t.map((_, i) => (i === 30 ? null : Math.round(f(i))));
    return {
      t,
      ready: wave((i) => Math.max(40, (i - 20) * 312)),
      oldest_ms: wave((i) => i * 7000),
      in: wave((i) => 1180 + 60 * Math.sin(i)),
      done: wave(() => 1195),
      failed: wave((i) => 5 + 3 * Math.sin(i)),
      dead: wave(() => 0),
    };
  }

  // ---- jobs ----
  jobs(q, state, after) {
    const all = { ready: q.ready, delayed: q.delayed, running: q.running, dead: q.dead, done: q.kept }[state] ?? 0;
    const from = Number(after ?? 0);
    const n = Math.max(0, Math.min(50, all - from));
    return {
      items: Array.from({ length: n }, (_, i) => ({
        ...this.job(`P6w0s${state}${from + i}`, q.queue),
        state,
        runs: undefined,
        started_ms: this.now - 60000,
      })),
      next: from + n < all ? String(from + n) : null,
      looked_at: n,
    };
  }

  job(id, queue) {
    const now = this.now;
    const dead = id.includes("dead");
    const waits = id.includes("waits");
    return {
      id,
      queue,
      type: "report.render",
      state: dead ? "dead" : waits ? "delayed" : "running",
      attempts: 2,
      crashes: 1,
      max_attempts: 5,
      timeout_ms: 300000,
      priority: "normal",
      created_ms: now - 214000,
      due_ms: now - (dead ? 5000 : 214000),
      start_by_ms: null,
      keep_ms: 0,
      on_dead: null,
      holder: dead ? null : workerId("batch1", 77),
      fence: dead ? null : 1795749118204411,
      lease_remaining_ms: dead ? null : 8400,
      payload_bytes: 196,
      error: `connect 10.0.4.17:5432: connection refused ${NASTY}`,
      progress: 62,
      note: "page 31 of 50 " + NASTY,
      checkpoint_bytes: 38,
      logs: 1,
      unique: "report:2026-11:acme",
      headers: { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" },
      runs: [
        {
          run: 1,
          worker: workerId("web2", 880),
          start_ms: now - 213600,
          end_ms: now - 168000,
          lease_until_ms: now - 159400,
          outcome: "crashed",
          error: "its worker died",
        },
        {
          run: 2,
          worker: workerId("batch1", 77),
          start_ms: now - 159100,
          end_ms: now - 131000,
          outcome: "failed",
          error: "connect 10.0.4.17:5432: connection refused",
        },
        {
          run: 3,
          worker: workerId("batch2", 3052),
          start_ms: now - 126700,
          end_ms: now - 98200,
          outcome: "failed",
          error: NASTY,
        },
        { run: 4, worker: workerId("batch1", 77), start_ms: now - 62000, end_ms: null, outcome: "running", error: "" },
      ],
    };
  }
  payload() {
    return JSON.stringify({ tenant: "acme", month: "2026-11", pages: 50, charts: true, none: null, note: NASTY });
  }
  logs() {
    const text =
      ["resuming at page 24", "connected to 10.0.4.18:5432", "warn: font is missing " + NASTY, "page 30 rendered"].join(
        "\n",
      ) + "\n";
    return {
      items: [{ attempt: 3, fence: 1795749118204411, from: 0, text }],
      fence: 1795749118204411,
      from: text.length,
      ended: false,
    };
  }
  running() {
    return this.runs
      .filter((r) => !r.end_ms && !(this.wrong && r.worker === workerId("web2", 880)))
      .slice(0, 50)
      .map((r) => ({
        ...this.job(r.id, r.queue),
        type: r.type,
        holder: r.worker,
        started_ms: r.start_ms,
        progress: r.progress,
        attempts: r.run - 1,
      }));
  }

  // ---- the rest ----
  groups() {
    if (!this.wrong) return [];
    const spark = (f) => Array.from({ length: 60 }, (_, i) => f(i));
    const group = (key, type, queue, jobs, error, reason, f) => ({
      key,
      queue,
      type,
      error,
      reason,
      jobs,
      first_ms: this.now - 54 * MINUTE,
      last_ms: this.now - 4000,
      spark: spark(f),
      sample_id: "P6w0dead" + key,
    });
    const list = [
      group("a1", "report.render", "reports", 201, "connect #.#.#.#:#: connection refused", "attempts", (i) =>
        i < 6 ? 0 : 4,
      ),
      group("b2", "report.render", "reports", 11, "exit status #", "attempts", (i) => (i % 13 === 0 ? 2 : 0)),
      group("c3", "report.render", "reports", 2, "its workers died with it", "poison", () => 0),
      group("d4", "image.resize", "images", 2, NASTY, "handler", () => 0),
    ];
    return list.filter((g) => !this.retried.has(g.key));
  }

  schedules() {
    if (this.size === 0) return [];
    const soon = (n, step, first = 0) => Array.from({ length: n }, (_, i) => this.began + first + (i + 1) * step);
    const schedule = (id, rest) => ({
      id,
      queue: "default",
      type: "db.backup",
      cron: null,
      every_ms: 0,
      tz: null,
      zone: rest.cron ? (rest.tz ?? "UTC") : null,
      zone_differs: rest.tz === "UTC",
      state: "on",
      jitter_ms: 0,
      next_ms: rest.ticks[0] ?? null,
      last_ms: this.now - HOUR,
      job: "P6w0s1",
      accepted: 312,
      skipped: 0,
      dropped: 0,
      ...rest,
    });
    return [
      schedule("nightly-backup", { cron: "0 4 * * *", tz: "Europe/Berlin", ticks: soon(1, 23 * HOUR) }),
      schedule("crm-pull", {
        every_ms: 900000,
        ticks: soon(96, 900000),
        skipped: 3,
        missed_ms: [this.now - 20 * MINUTE],
      }),
      schedule("old-cleanup", { cron: "15 */6 * * *", tz: "UTC", state: "paused", ticks: soon(4, 6 * HOUR) }),
    ].slice(0, this.name === "one" ? 1 : 3);
  }

  locks() {
    if (this.size === 0) return [];
    const entry = (host, pid, held, rest) => ({
      owner: "o",
      client: workerId(host, pid),
      mode: "exclusive",
      held,
      permits: 0,
      holds: 1,
      fence: 1795748950047997,
      ends_ms: held ? this.now + 8000 : null,
      revoked: false,
      lease_ms: 10000,
      since_ms: this.now - 60000,
      ...rest,
    });
    const lock = (name, mode, entries, rest) => ({
      name,
      mode,
      holders: entries.filter((e) => e.held).length,
      waiting: entries.filter((e) => !e.held).length,
      ends_ms: this.now + 8000,
      taken: null,
      limit: null,
      entries,
      ...rest,
    });
    return [
      lock("deploy/production", "exclusive", [
        entry("ci-4", 22107, true),
        entry("ci-2", 881, false),
        entry("anna-laptop", 60122, false),
      ]),
      lock(
        "gpu",
        "permits",
        [
          entry("batch1", 90, true, { mode: "permits", permits: 2 }),
          entry("batch2", 412, true, { mode: "permits", permits: 3 }),
          entry("batch1", 97, false, { mode: "permits", permits: 2 }),
        ],
        { taken: 5, limit: 5 },
      ),
      lock("report/2026-11", "shared", [
        entry("web1", 4711, true, { mode: "shared" }),
        entry("web3", 1290, true, { mode: "shared" }),
        entry("batch2", 3052, false),
      ]),
      lock(NASTY, "exclusive", [entry("db1", 1207, true, { ends_ms: this.now - 2400 }), entry("db2", 55, false)], {
        waiting: 41,
      }),
    ].slice(0, this.name === "one" ? 1 : 4);
  }

  stats() {
    if (this.size === 0) return { items: [], step_ms: MINUTE, columns: [] };
    const bounds = Array.from({ length: 45 }, (_, i) => Math.SQRT2 ** i);
    const spread = (center) =>
      bounds.map((b, i) => [b, Math.round(400 * Math.exp(-((i - center) ** 2) / 18))]).filter(([, n]) => n > 0);
    const item = (type, i) => ({
      queue: "mail",
      type,
      done: 7200 * (i + 1),
      failed: i === 2 ? 4400 : i,
      dead: 0,
      run_p50_ms: 190 * (i + 1),
      run_p99_ms: 1100 * (i + 1),
      wait_p50_ms: i === 0 ? 301000 : 4,
      wait_p99_ms: i === 0 ? 431000 : 88,
      spark: Array.from({ length: 60 }, (_, m) => 20 + ((m * 7) % 11)),
    });
    return {
      items: TYPES.slice(0, this.name === "one" ? 1 : 5).map(item),
      step_ms: MINUTE,
      columns: Array.from({ length: 60 }, (_, m) => ({
        t_ms: Math.floor(this.now / MINUTE - 59 + m) * MINUTE,
        runs: m === 12 ? [] : spread(17),
        waits: m === 12 ? [] : spread(m < 20 ? 5 : Math.min(36, m)),
      })),
    };
  }

  redis() {
    return {
      servers: [
        {
          place: "redis.prod:6379",
          version: "7.0.15",
          role: "master",
          policy: "noeviction",
          aof: true,
          rdb: false,
          loading: false,
          aof_failed: false,
          used_memory: 1.31e9,
          maxmemory: 4.29e9,
          replicas: 1,
          good_replicas: -1,
          state: "up",
          detail: "",
          uptime_ms: 61 * 24 * HOUR,
          clients: 41,
          blocked_clients: 4,
          ops_per_s: 18240,
          cpu: 0.31,
          clock_steps: 0,
        },
      ],
      round_trip_us: 240,
      ahead_us: 1200,
      unsure_us: 120,
      tasks: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, null].map((ms, i) => [ms, i < 4 ? 4000 >> i : 0]),
      queues: this.queues.map((q, i) => ({ queue: q.queue, jobs: q.ready + q.delayed, bytes: 40000 * (i + 1) })),
      changes: this.wrong
        ? [
            {
              at_ms: this.now - HOUR,
              by: "anna",
              role: "change",
              what: "pause",
              of: "reports",
              status: 200,
              result: "done",
            },
            { at_ms: this.now - HOUR, by: "-", role: "change", what: "purge", of: NASTY, status: 409, result: NASTY },
          ]
        : [],
    };
  }
  doctor() {
    const finding = {
      queue: "mail",
      check: "record",
      id: "P6w0",
      text: "job P6w0 is in no list",
      repair: "It is put back into the line.",
      by_hand: false,
    };
    return {
      items: this.wrong ? [finding] : [],
      found: this.wrong ? 1 : 0,
      looked_ms: this.now - 4 * MINUTE,
      whole: true,
    };
  }
}
