// locks.js - who holds each lock, and who waits for whom.
import { clock, exact, holder, holderText, named, several, span } from "../format.js";
import { button, command, empty, h, head, when } from "../dom.js";
import { gauge } from "../charts.js";
import { changeButton } from "../change.js";
import { listPager, missing } from "../page.js";

// One who holds or waits: an entry as `lock show --json` has it, with the length of its lease where that is known.
function seat(e, mode) {
  const now = clock.now();
  const { host, pid } = holder(e.client);
  const left = e.ends_ms ? e.ends_ms - now : null;
  const over = e.held && left !== null && left < 0;
  const since = e.since_ms ? ` for ${span(now - e.since_ms)}` : "";
  const said = [
    e.held ? (over ? "its lease is over" : (e.revoked ? "asked back" : "holds") + since) : "waits" + since,
    e.permits > 0 && mode === "permits" && several(e.permits, "permit"),
    e.mode !== mode && e.mode,
    e.holds > 1 && `${e.holds} times`,
  ].filter(Boolean);
  return h(
    "div",
    { class: `seat ${e.held ? (over ? "gone" : "holds") : ""} ${e.mode === "shared" && e.held ? "shared" : ""}` },
    h("span", { class: "who" }, host, " ", h("span", { class: "soft" }, pid)),
    h("span", { class: "soft" }, said.join(", ")),
    e.held && left !== null && h("span", { class: "soft" }, over ? "" : `; ${span(left)} left`),
    e.held &&
      e.lease_ms > 0 &&
      gauge(Math.max(0, left), e.lease_ms, {
        label: `lease: ${span(Math.max(0, left))} left`,
        kind: over ? "killed" : "running",
        w: 100,
        height: 4,
      }),
  );
}

function acts(at, l, held) {
  if (held.length === 0) return null;
  return h(
    "div",
    { class: "chips" },
    changeButton(
      at,
      {
        label: "Ask to release",
        small: true,
        title: `Ask for ${l.name}?`,
        text: "Its holder is told that others want it. It decides itself.",
        verb: "Ask",
        path: "lock/revoke",
        body: () => ({ name: l.name }),
        done: "The holder is asked.",
      },
      { "aria-label": "Ask to release " + l.name },
    ),
    changeButton(
      at,
      {
        label: "Take away…",
        small: true,
        risk: true,
        title: `Take ${l.name} away?`,
        text: [
          `${holderText(held[0].client)} holds it with the fence ${held[0].fence}. The next one gets it at once.`,
          "What the holder still writes is refused only where fences are checked.",
        ],
        verb: "Take it away",
        typed: l.name,
        path: "lock/release",
        body: () => ({ name: l.name, fence: held[0].fence, confirm: l.name }),
        done: "It is taken away.",
      },
      { "aria-label": "Take away " + l.name },
    ),
  );
}

function article(at, l) {
  const { entries } = l;
  const held = (entries ?? []).filter((e) => e.held);
  const line = (entries ?? []).filter((e) => !e.held);
  const more = l.holders + l.waiting - (entries?.length ?? 0);
  const over = held.some((e) => e.ends_ms && e.ends_ms < clock.now());
  const arrow = () => h("span", { class: "arrow", "aria-hidden": "true" }, "←");
  return h(
    "article",
    { class: "lock", "aria-label": "lock " + l.name, "data-key": l.name },
    h(
      "div",
      {},
      h("h2", { class: "mono", tabindex: -1 }, l.name),
      h("p", { class: "soft" }, l.limit ? `${exact(l.taken)} of ${exact(l.limit)} permits are taken` : l.mode),
      held.length > 0 && h("p", { class: "soft" }, "fence ", h("span", { class: "mono" }, held.at(-1).fence)),
      over && h("p", { class: "bad" }, "its lease is over"),
      l.waiting > 0 && h("p", {}, command(`holdfast lock revoke ${named(l.name)}`)),
    ),
    h(
      "div",
      { class: "line" },
      held.map((e) => seat(e, l.mode)),
      line.length > 0 && arrow(),
      line.map((e, i) => [i > 0 && arrow(), seat(e, l.mode)]),
      more > 0 &&
        h(
          "div",
          { class: "seat" },
          h(
            "span",
            { class: "who" },
            entries ? `and ${exact(more)} more` : `${several(l.holders, "holder")}, ${exact(l.waiting)} wait`,
          ),
          !entries && ["until ", when(l.ends_ms)],
        ),
    ),
    acts(at, l, held) ?? h("div"),
  );
}

export const locks = {
  parts(at) {
    const name = at.params.get("name");
    return name
      ? { lock: { path: at.api(["lock"], { name }), every: 2000 } }
      : { locks: { path: "locks", every: 2000 } };
  },
  view(at) {
    const name = at.params.get("name");
    const list = name ? at.data.lock && { items: [{ name, ...at.data.lock }], next: null } : at.data.locks;
    // Of the one that is waited for, or of any.
    const one = name ?? (list?.items.find((l) => l.waiting > 0) ?? list?.items[0])?.name;
    const cli = [
      ...(name ? [] : ["holdfast lock list"]),
      ...(one ? [`holdfast lock show ${named(one)}`, `holdfast lock revoke ${named(one)}`] : []),
    ];
    if (!list) return { title: "Locks", cli, content: [head("Locks"), missing(at, name ? "lock" : "locks")] };
    const sum = (field) => list.items.reduce((n, l) => n + l[field], 0);
    return {
      title: "Locks",
      cli,
      content: [
        head(
          "Locks",
          list.items.length > 0 && `${several(list.items.length, "lock")}, ${exact(sum("waiting"))} wait`,
          name && button("All locks", () => at.put({ name: null })),
        ),
        list.items.length === 0
          ? empty("No lock is held.", "holdfast lock run nightly -- sh -c 'echo held'")
          : h(
              "section",
              { class: "sheet", "aria-label": "Locks" },
              list.items.map((l) => article(at, l)),
              listPager(at, list, ""),
            ),
        h(
          "p",
          { class: "soft" },
          "A coloured box holds the lock; its holder renews the lease. The others stand in line, the next one first. A red box has a lease that is over.",
        ),
      ],
    };
  },
};
