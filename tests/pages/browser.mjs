// browser.mjs - the pages in Chromium: each in each case, width and theme. It prints a line for each finding, and ends
// with 1 if there is one.
//
//   node browser.mjs PICTURES     a directory for the pictures
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import puppeteer from "puppeteer-core";
import { NASTY } from "./data.mjs";
import { Server } from "./server.mjs";

const pictures = process.argv[2] ?? "pictures";
mkdirSync(pictures, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const PAGES = {
  overview: "",
  queue: "queue/mail",
  running: "running",
  job: "job/P6w0t_-KZpmq7F?queue=reports",
  dead: "dead",
  schedules: "schedules",
  workers: "workers",
  locks: "locks",
  latency: "latency",
  redis: "redis",
};
const CASES = ["wrong", "well", "away", "none", "one", "many"];
const WIDTHS = [360, 800, 1600];
const FIRST_VIEW = 150 * 1024;
const PATIENCE = { timeout: 20000 };

const findings = [];
const tell = (where, text) => {
  findings.push(`${where}: ${text}`);
  console.log(`${where}: ${text}`);
};

// ---- one view ----
async function open(browser, address, { width = 1600, theme = "light" } = {}) {
  const page = await browser.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type()) && !/status of (404|503)/.test(message.text()))
      page.problems.push(message.text());
  });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.goto(address, { waitUntil: "load" });
  return page;
}

// All parts of the page are there.
const drawn = (page) =>
  page.waitForFunction(
    () =>
      document.querySelector(".foot div") &&
      document.querySelector("main h1") &&
      !document.querySelector("main").textContent.includes("Loading…"),
    PATIENCE,
  );

// What is wider than the window, or lies outside of it without a way to scroll there.
const overflow = () => {
  const wide = [];
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > room)
    wide.push(`the document is ${document.documentElement.scrollWidth} px wide`);
  const scrolls = (node) => {
    for (let n = node; n && n !== document.body; n = n.parentElement) {
      const { overflowX, position } = getComputedStyle(n);
      if (["auto", "scroll", "hidden"].includes(overflowX) || position === "fixed") return true;
    }
    return false;
  };
  for (const node of document.querySelectorAll("main *")) {
    const box = node.getBoundingClientRect();
    if (box.width > 0 && box.right > room + 1 && !scrolls(node))
      wide.push(`${node.tagName} ${node.className} ends at ${Math.round(box.right)} px`);
  }
  return wide.slice(0, 3);
};

async function accessible(page, where) {
  const world = await page.createCDPSession();
  // The policy of the page refuses scripts of others, so the checker runs beside it, in a world of its own.
  const { frameTree } = await world.send("Page.getFrameTree");
  const { executionContextId } = await world.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const run = async (expression) => {
    const { result, exceptionDetails } = await world.send("Runtime.evaluate", {
      contextId: executionContextId,
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await run(axe + ";0");
  const violations = await run(
    `axe.run({ runOnly: ${JSON.stringify(TAGS)} }).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? "").slice(0, 160)).join(" | ")))`,
  );
  for (const violation of violations) tell(where, violation);
  await world.detach();
}

async function look(browser, address, where, options) {
  const page = await open(browser, address, options);
  try {
    await drawn(page);
    for (const text of await page.evaluate(overflow)) tell(where, text);
    const title = await page.title();
    if (title.includes("broken")) tell(where, "a text of a job ran as a script");
    if (await page.$('main script, main img[src="x"]')) tell(where, "a text of a job became an element");
    await accessible(page, where);
    await page.screenshot({ path: join(pictures, where + ".png"), fullPage: true });
  } catch (error) {
    tell(where, error.message);
  }
  for (const problem of page.problems) tell(where, problem);
  await page.close();
}

async function matrix(browser) {
  let views = 0;
  for (const name of CASES) {
    const server = new Server(name, { changes: name === "wrong" });
    const address = await server.listen();
    const whole = name === "wrong";
    for (const [page, path] of Object.entries(PAGES)) {
      if (name === "none" && page === "queue") continue; // there is none
      for (const width of whole ? WIDTHS : [360, 1600])
        for (const theme of whole ? ["light", "dark"] : [width === 360 ? "light" : "dark"]) {
          await look(browser, address + path, `${page}-${name}-${width}-${theme}`, { width, theme });
          views++;
        }
    }
    server.close();
  }
  return views;
}

// ---- what a reader does ----
async function expect(where, promise, text) {
  try {
    return await promise;
  } catch (error) {
    tell(where, `${text}: ${error.message.split("\n")[0]}`);
    return null;
  }
}
const hasText = (page, text) => page.waitForFunction((t) => document.body.textContent.includes(t), PATIENCE, text);

// The whole way from the overview to a group that is retried, without a pointer.
async function keyboard(browser) {
  const server = new Server("wrong", { changes: true });
  const page = await open(browser, await server.listen());
  await drawn(page);
  const tabTo = async (test, what) => {
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate(test)) return;
    }
    throw new Error(`the focus does not reach ${what}`);
  };
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.textContent);
  if (first !== "Skip to the content") tell("keyboard", `the first stop is ${first}`);
  await page.keyboard.press("Enter");
  if (!(await page.evaluate(() => document.activeElement.id === "main")))
    tell("keyboard", "the skip link does not reach the content");
  await page.keyboard.press("d");
  await expect(
    "keyboard",
    page.waitForFunction(
      () => document.querySelector("main h1")?.textContent === "Dead jobs" && document.querySelector(".bulk"),
      PATIENCE,
    ),
    "the page of dead jobs",
  );
  await expect(
    "keyboard",
    tabTo(() => document.activeElement.type === "checkbox", "the first group"),
    "a group",
  );
  await page.keyboard.press("Space");
  await new Promise((done) => setTimeout(done, 2500)); // two turns of the page: the focus stays
  if (!(await page.evaluate(() => document.activeElement.type === "checkbox" && document.activeElement.checked)))
    tell("keyboard", "the focus or the choice is lost when the page is drawn again");
  await expect(
    "keyboard",
    tabTo(() => document.activeElement.textContent === "Retry…", "the button"),
    "the button",
  );
  await page.keyboard.press("Enter");
  await expect("keyboard", page.waitForSelector("dialog[open]", PATIENCE), "the question");
  await expect(
    "keyboard",
    tabTo(() => document.activeElement.textContent.startsWith("Run "), "the answer"),
    "the answer",
  );
  await page.keyboard.press("Enter");
  await expect("keyboard", hasText(page, "201 jobs retried."), "the end of the task");
  const post = server.posts[0];
  if (
    post?.path !== "dead/retry" ||
    post.body.key !== "a1" ||
    post.body.expect !== 201 ||
    post.body.confirm !== 201 ||
    post.headers["holdfast-change"] !== "1" ||
    post.headers["content-type"] !== "application/json"
  )
    tell("keyboard", `the request is ${JSON.stringify(post)}`);
  await page.keyboard.press("o");
  await expect("keyboard", hasText(page, "3 things are wrong"), "the way back");
  await page.keyboard.press("j");
  if (!(await page.evaluate(() => document.activeElement.closest(".wrongs") !== null)))
    tell("keyboard", "j does not go to the first row");
  await page.keyboard.press("/");
  await page.keyboard.type("mail");
  await page.keyboard.press("Enter");
  await expect(
    "keyboard",
    page.waitForFunction(() => location.pathname === "/queue/mail", PATIENCE),
    "find",
  );
  for (const problem of page.problems) tell("keyboard", problem);
  await page.close();
  server.close();
}

// Each button that changes something: it sends what the API asks for, and is not there without leave.
const CHANGES = [
  ["queue/mail", "Pause", null, "queues/mail/pause", {}],
  ["queue/mail", "Limits…", null, "queues/mail/limit", { max_running: 20, rate: "0" }],
  ["queue/mail", "Purge…", "mail", "queues/mail/purge", { confirm: "mail" }],
  ["job/P6w0x?queue=reports", "Cancel", null, "jobs/P6w0x/cancel", { queue: "reports" }],
  ["job/P6w0deada1?queue=reports", "Retry", null, "jobs/P6w0deada1/retry", { queue: "reports" }],
  ["job/P6w0waits?queue=reports", "Edit…", null, "jobs/P6w0waits/edit", { queue: "reports" }],
  ["job/P6w0deada1?queue=reports", "Delete…", null, "jobs/P6w0deada1/delete", { queue: "reports" }],
  ["schedules", "Run now", null, "schedules/default/nightly-backup/run", {}],
  ["schedules", "Pause", null, "schedules/default/nightly-backup/pause", {}],
  ["schedules", "Resume", null, "schedules/default/old-cleanup/resume", {}],
  ["locks", "Ask to release", null, "lock/revoke", { name: "deploy/production" }],
  [
    "locks",
    "Take away…",
    "deploy/production",
    "lock/release",
    { name: "deploy/production", fence: 1795748950047997, confirm: "deploy/production" },
  ],
  ["redis", "Check the data now", null, "doctor", {}],
];
const press = (page, text, within = "main") =>
  page.evaluate(
    (t, w) => {
      const found = [...document.querySelectorAll(w + " button")].find((b) => b.textContent === t && !b.disabled);
      found?.click();
      return Boolean(found);
    },
    text,
    within,
  );

async function changes(browser) {
  const server = new Server("wrong", { changes: true });
  const address = await server.listen();
  for (const [path, label, typed, wanted, body] of CHANGES) {
    const where = `changes ${path} ${label}`;
    const page = await open(browser, address + path);
    await drawn(page);
    server.posts = [];
    if (!(await press(page, label))) tell(where, "there is no such button");
    await expect(where, page.waitForSelector("dialog[open]", PATIENCE), "the question");
    if (typed) await page.type("dialog input", typed);
    await page.evaluate(() => document.querySelector("dialog button[type=submit]").click());
    await expect(
      where,
      page.waitForFunction(() => !document.querySelector("dialog"), PATIENCE),
      "the answer",
    );
    const post = server.posts[0];
    if (post?.path !== wanted || JSON.stringify(post.body) !== JSON.stringify(body))
      tell(where, `it sent ${post?.path} ${JSON.stringify(post?.body)}`);
    for (const problem of page.problems) tell(where, problem);
    await page.close();
  }
  server.world.changes = false;
  for (const path of Object.values(PAGES)) {
    const page = await open(browser, address + path);
    await drawn(page);
    const there = await page.evaluate(
      (labels) =>
        [...document.querySelectorAll("main button")].map((b) => b.textContent).filter((t) => labels.includes(t)),
      [...CHANGES.map((c) => c[1]), "Retry…"],
    );
    if (there.length) tell(`read only ${path}`, `there are the buttons ${there}`);
    await page.close();
  }
  server.close();
}

// Redis goes away and comes back, and the dashboard itself.
async function away(browser) {
  const server = new Server("well", { changes: true });
  const page = await open(browser, await server.listen());
  await drawn(page);
  await expect("away", hasText(page, "All is well"), "the verdict before");
  server.awaySince = Date.now();
  server.away = true;
  await expect("away", hasText(page, "Redis does not answer"), "the verdict while Redis is away");
  server.away = false;
  await expect("away", hasText(page, "All is well"), "the verdict after");
  server.close();
  await expect("away", hasText(page, "The dashboard does not answer"), "the verdict while the dashboard is away");
  await page.close();
}

// A worker that tells nothing of its runs: the timeline has what it runs now, and says so.
async function untold(browser) {
  const server = new Server("wrong");
  const page = await open(browser, (await server.listen()) + "running");
  await expect("untold", hasText(page, "or is of an older version."), "the sentence");
  for (const problem of page.problems) tell("untold", problem);
  await page.close();
  server.close();
}

// Only the window that can be seen holds a stream.
async function windows(browser) {
  const server = new Server("well");
  const address = await server.listen();
  const pages = [];
  for (let i = 0; i < 8; i++) {
    const page = await browser.newPage();
    await page.bringToFront();
    await page.goto(address + "queue/mail");
    await expect("windows", drawn(page), `window ${i + 1}`);
    pages.push(page);
  }
  const until = Date.now() + 5000;
  while (server.streams.size > 1 && Date.now() < until) await new Promise((done) => setTimeout(done, 100));
  if (server.streams.size > 1) tell("windows", `${server.streams.size} streams are open, expected 1`);
  for (const page of pages) await page.close();
  server.close();
}

// What the first view costs, and how long script runs while 2,000 bars move.
async function cost(browser) {
  const server = new Server("wrong");
  const address = await server.listen();
  const page = await browser.newPage();
  await page.goto(address);
  await drawn(page);
  const { bytes, ms } = await page.evaluate(() => {
    const list = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter(
      (e) => !e.name.includes("/api/"),
    );
    return {
      bytes: list.reduce((sum, e) => sum + e.transferSize, 0),
      ms: Math.round(performance.getEntriesByType("paint").at(-1)?.startTime ?? 0),
    };
  });
  console.log(`first view: ${bytes} bytes, first paint after ${ms} ms`);
  if (bytes > FIRST_VIEW) tell("cost", `the first view takes ${bytes} bytes, at most ${FIRST_VIEW}`);
  await page.close();
  server.close();
  const busy = new Server("many");
  const live = await open(browser, (await busy.listen()) + "running");
  await drawn(live);
  // The least of some: it is time on the clock, and others use the machine as well.
  let script = Infinity;
  for (let i = 0; i < 4; i++) {
    const before = await live.metrics();
    await new Promise((done) => setTimeout(done, 5000));
    const after = await live.metrics();
    const seconds = after.Timestamp - before.Timestamp;
    script = Math.min(script, ((after.ScriptDuration - before.ScriptDuration) * 1000) / seconds);
  }
  console.log(`${busy.world.runs.length} runs: ${script.toFixed(0)} ms of script each second`);
  if (script > 100) tell("cost", `script takes ${script.toFixed(0)} ms of each second, at most 100`);
  await live.close();
  busy.close();
}

// Below a prefix, as behind a proxy.
async function prefix(browser) {
  const server = new Server("wrong", { prefix: "/tools/holdfast/" });
  const address = await server.listen();
  const page = await open(browser, address + "queue/mail");
  await drawn(page);
  await page.evaluate(() =>
    [...document.querySelectorAll("nav a")].find((a) => a.textContent.startsWith("Locks")).click(),
  );
  await expect(
    "prefix",
    page.waitForFunction(
      () => location.pathname === "/tools/holdfast/locks" && document.querySelector(".lock"),
      PATIENCE,
    ),
    "a page below it",
  );
  const shown = await page.evaluate(() => [...document.querySelectorAll(".lock h2")].at(-1).textContent);
  if (shown !== NASTY.replace("\u202e", "U+202E").replace("\u0007", "U+0007"))
    tell("prefix", `a name with controls is shown as ${shown}`);
  await page.goBack();
  await expect(
    "prefix",
    page.waitForFunction(
      () =>
        location.pathname === "/tools/holdfast/queue/mail" && document.querySelector("main h1")?.textContent === "mail",
      PATIENCE,
    ),
    "the way back",
  );
  for (const problem of page.problems) tell("prefix", problem);
  await page.close();
  server.close();
}

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const STEPS = { matrix, keyboard, changes, away, untold, windows, cost, prefix };
const wanted = process.argv.slice(3);
try {
  for (const [name, step] of Object.entries(STEPS)) {
    if (wanted.length && !wanted.includes(name)) continue;
    const before = findings.length;
    const views = await step(browser);
    console.log(`${name}: ${views ? views + " views, " : ""}${findings.length - before} findings`);
  }
} finally {
  await browser.close();
}
process.exit(findings.length ? 1 : 0);
