// schedules.js - what comes, what was missed.
import { clock, exact, hm, inZone, named, several, span, word } from "../format.js";
import {
  cell,
  choice,
  empty,
  figure,
  h,
  head,
  known,
  num,
  queueLink,
  section,
  table,
  tag,
  when,
  zero,
} from "../dom.js";
import { strip } from "../charts.js";
import { words } from "../cron.js";
import { changeButton } from "../change.js";
import { listPager, missing, room } from "../page.js";

const HOUR = 3600000;
const DENSE = 48; // ticks: more are a band

const saidOf = (x) => (x.cron ? x.cron : `every ${span(x.every_ms)}`);
const city = (zone) => zone.split("/").at(-1).replaceAll("_", " ");

function rowOf(x, zone, now) {
  const off = x.state !== "on";
  const said = (t) =>
    `${inZone(t, zone) ?? hm(t, "UTC")} ${inZone(t, zone) ? zone : "UTC"}${off ? `, ${x.state}: it makes no job` : ""}`;
  const coming = (x.ticks ?? [x.next_ms]).filter(Boolean);
  const dense = coming.length > DENSE || x.ticks_more;
  const past = [
    ...(x.missed_ms ?? []).map((t) => ({ t, kind: "missed", said: said(t) + ", made no job" })),
    ...(x.last_ms ? [{ t: x.last_ms, kind: "ended", said: said(x.last_ms) + ", the last one that made a job" }] : []),
  ];
  return {
    name: x.id,
    off,
    said: saidOf(x),
    dense: dense ? [now, coming.at(-1)] : null,
    ticks: [...past, ...(dense ? [] : coming.map((t) => ({ t, kind: "next", said: said(t) })))],
  };
}

function picture(at, list) {
  const now = clock.now();
  const from = Math.floor(now / HOUR) * HOUR - HOUR;
  const zone = at.params.get("zone") ?? (clock.mode === "local" ? clock.local : "UTC");
  const zones = [...new Set(["UTC", clock.local, ...list.items.map((x) => x.zone).filter(Boolean), zone])].filter((z) =>
    inZone(now, z),
  );
  const marks = (list.changes ?? [])
    .filter((c) => c.tz === zone)
    .map((c) => ({ t: c.at_ms, text: "the clock changes" }));
  return section(
    "day",
    "The next 24 hours",
    {
      said: "a cross is a tick that made no job",
      right: choice(
        "Hours in the time zone",
        zone,
        zones.map((z) => [z, z]),
        (z) => at.put({ zone: z }),
      ),
    },
    h(
      "div",
      { class: "sheet pad" },
      strip(
        list.items.map((x) => rowOf(x, zone, now)),
        {
          from,
          to: from + 25 * HOUR,
          width: room(),
          marks,
          text: (t) => inZone(t, zone) ?? hm(t, "UTC"),
          label: `Ticks of ${several(list.items.length, "schedule")} in the next 24 hours; the table has the next one of each`,
        },
      ),
    ),
  );
}

function acts(at, x) {
  const path = (verb) => at.api(["schedules", x.queue, x.id, verb]);
  return [
    changeButton(
      at,
      {
        label: "Run now",
        small: true,
        title: `Run ${x.id} now?`,
        text: `It makes one job of type ${x.type} in ${x.queue}. Its times stay as they are.`,
        verb: "Run it",
        path: path("run"),
        done: `${x.id} has made a job.`,
      },
      { "aria-label": "Run now: " + x.id },
    ),
    " ",
    x.state === "paused"
      ? changeButton(
          at,
          {
            label: "Resume",
            small: true,
            title: `Resume ${x.id}?`,
            text: "Its next tick makes a job again.",
            verb: "Resume",
            path: path("resume"),
            done: `${x.id} is resumed.`,
          },
          { "aria-label": "Resume " + x.id },
        )
      : changeButton(
          at,
          {
            label: "Pause",
            small: true,
            title: `Pause ${x.id}?`,
            text: "Its ticks make no jobs until it is resumed.",
            verb: "Pause",
            path: path("pause"),
            done: `${x.id} is paused.`,
          },
          { "aria-label": "Pause " + x.id },
        ),
  ];
}

// The hours of a schedule are those of its zone: one that differs may run at the wrong hour.
function zoneCell({ zone, zone_differs: differs }, usual) {
  if (!zone) return null;
  const said = usual ? `another zone than ${usual}` : "zones differ";
  return h("span", { class: "sub" }, zone, " ", differs && tag(said, "run"));
}

function row(at, x, usual) {
  const { zone } = x;
  const said = x.cron ? words(x.cron) : "";
  const next = zone && x.next_ms && inZone(x.next_ms, zone);
  const lost = x.skipped + x.dropped;
  return h(
    "tr",
    { "data-key": x.queue + " " + x.id },
    h(
      "th",
      { scope: "row" },
      x.id,
      " ",
      x.state !== "on" && tag(x.state, "paused"),
      h("span", { class: "sub" }, x.type, " in ", queueLink(x.queue)),
    ),
    h(
      "td",
      { class: "full" },
      said,
      h(
        "span",
        { class: said ? "sub" : "" },
        x.cron ? h("code", {}, x.cron) : saidOf(x),
        x.jitter_ms > 0 && `, jitter ${span(x.jitter_ms)}`,
      ),
      zoneCell(x, usual),
    ),
    cell("next", x.state === "paused" ? h("span", { class: "soft" }, "paused") : when(x.next_ms)),
    cell(
      "in its zone",
      next
        ? h("span", { class: "nowrap" }, next, " ", h("span", { class: "soft" }, city(zone)))
        : known(x.next_ms, (t) =>
            h("span", { class: "nowrap" }, hm(t, "UTC"), " ", h("span", { class: "soft" }, "UTC")),
          ),
    ),
    cell(
      "last",
      h(
        "span",
        {},
        when(x.last_ms),
        x.job &&
          h(
            "span",
            { class: "sub" },
            h("a", { href: `job/${encodeURIComponent(x.job)}?queue=${encodeURIComponent(x.queue)}` }, "its job"),
          ),
      ),
    ),
    figure("jobs", zero(x.accepted)),
    figure(
      "made no job",
      lost > 0
        ? h(
            "span",
            { class: "warn", title: `${x.skipped} because the last job was not over, ${x.dropped} missed` },
            exact(lost),
          )
        : zero(0),
    ),
    h("td", { class: "num full nowrap" }, acts(at, x)),
  );
}

export const schedules = {
  parts: (at) => ({ schedules: { path: at.api(["schedules"], { hours: 24 }), every: 10000 } }),
  view(at) {
    const list = at.data.schedules;
    // Of the one that is marked, or of any.
    const one = list?.items.find((x) => x.zone_differs) ?? list?.items[0];
    const which = one && named(one.id, ` -q ${word(one.queue)}`);
    const cli = ["holdfast cron list", "holdfast cron next '0 4 * * *' --tz Europe/Berlin"];
    if (which) cli.push(`holdfast cron show ${which}`, `holdfast cron run ${which}`);
    if (!list) return { title: "Schedules", cli, content: [head("Schedules"), missing(at, "schedules")] };
    if (list.items.length === 0)
      return {
        title: "Schedules",
        cli,
        content: [
          head("Schedules"),
          empty("There is no schedule.", "holdfast cron add nightly report --cron '0 4 * * *' -q mail"),
        ],
      };
    const paused = list.items.filter((x) => x.state !== "on").length;
    return {
      title: "Schedules",
      cli,
      content: [
        head(
          "Schedules",
          exact(list.items.length) + (paused ? `, of which ${paused} ${paused === 1 ? "is" : "are"} not on` : ""),
        ),
        picture(at, list),
        section(
          "schedules",
          "List",
          { hidden: true },
          table(
            "Schedules",
            ["Schedule", "When", "Next", "Next, in its zone", "Last", num("Jobs"), num("Made no job"), ""],
            list.items.map((x) => row(at, x, list.usual_zone)),
          ),
          listPager(at, list, ""),
        ),
      ],
    };
  },
};
