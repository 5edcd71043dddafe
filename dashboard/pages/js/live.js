// live.js - keeps the data of the page that is shown up to date: by events while its window can be seen, else by
// asking, and not at all while it is hidden. A browser allows six connections to a server: a hidden window has none.
import { ApiError, events, get } from "./api.js";
import { clock } from "./format.js";

const TURN_MS = 1000;
const QUIET_MS = 5000; // without an event the page asks, each:
const ASK_MS = 2000;
const REOPEN_MS = 5000;
const REFUSED_MS = 10000; // what is not there is asked for again after so long
const OLD_MS = 5000; // data that Redis has not confirmed for so long are not live

// A part is what one address gives:
//   path     below api/v1, or null: not now
//   next     data => the address of what came since, where it is another one
//   topic    of events that bring the same,
//   event    and their name, if it is not the first word of the topic
//   every    ms between two requests where no event brings it; 0: once
//   merge    (old, new) => data; without it, the new replaces the old
//   missed   (old, new) => whether an event has too little to go on with: then it is asked for
const topicsOf = (parts) => [...new Set(Object.values(parts).map((part) => part.topic))].filter(Boolean);
const eventOf = (part) => part.event ?? part.topic?.split(":")[0];

export class Live {
  constructor(tell) {
    this.tell = tell; // called after each change; true: what was missing came
    this.parts = {};
    this.data = {};
    this.errors = {};
    this.asked = {};
    this.came = {}; // when, and how old it was then
    this.away = null; // the words of why Redis does not answer
    this.lost = false; // the dashboard itself does not answer
    this.source = null;
    this.sourceAt = -Infinity;
    this.deafSince = null; // since when there is no stream
    document.addEventListener("visibilitychange", () => this.turn());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", () => this.turn());
    setInterval(() => this.turn(), TURN_MS);
  }

  // Parts whose name and path stay keep their data.
  show(parts) {
    if (topicsOf(parts).join() !== topicsOf(this.parts).join()) this.close();
    for (const name of Object.keys(this.parts)) {
      if (parts[name]?.path === this.parts[name].path) continue;
      for (const kept of [this.data, this.errors, this.asked, this.came]) delete kept[name];
    }
    this.parts = parts;
    this.turn();
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  reload(...names) {
    for (const name of names.length ? names : Object.keys(this.parts)) this.asked[name] = -Infinity;
    this.turn();
  }

  get streaming() {
    return this.source?.readyState === EventSource.OPEN;
  }

  // How old the data of the overview are, in ms; null: there are none.
  get age() {
    const came = this.came.overview;
    return came ? performance.now() - came.at + came.age : null;
  }

  get state() {
    if (this.lost) return "lost";
    if (this.away !== null || this.age > OLD_MS + ASK_MS) return "away";
    return this.deafSince !== null && performance.now() - this.deafSince > QUIET_MS ? "asking" : "live";
  }

  turn() {
    if (document.hidden) {
      this.close();
      return;
    }
    this.open();
    const now = performance.now();
    this.deafSince = this.streaming ? null : (this.deafSince ?? now);
    for (const [name, part] of Object.entries(this.parts)) {
      const due = now - this.lastOf(name) >= this.pauseOf(name, part);
      if (part.path !== null && due) void this.ask(name, part);
    }
    this.tell();
  }

  // When a part was last asked for, or came by an event.
  lastOf(name) {
    const asked = this.asked[name] ?? -Infinity;
    return asked === -Infinity ? asked : Math.max(asked, this.came[name]?.at ?? -Infinity);
  }
  pauseOf(name, part) {
    if (this.errors[name]) return REFUSED_MS;
    if (part.topic) return this.streaming ? QUIET_MS : ASK_MS;
    return part.every || (this.data[name] ? Infinity : ASK_MS);
  }

  open() {
    const topics = topicsOf(this.parts);
    const now = performance.now();
    if (this.source?.readyState === EventSource.CLOSED) this.source = null; // refused: the browser does not try again
    if (this.source || topics.length === 0 || now - this.sourceAt < (this.refused ? REOPEN_MS : 0)) return;
    this.sourceAt = now;
    this.refused = true; // until it has opened
    const names = new Set(Object.values(this.parts).map(eventOf));
    this.source = events(topics, [...names, "away"].filter(Boolean), (name, body) => this.heard(name, body));
    this.source.onopen = () => {
      this.refused = false;
      this.tell();
    };
  }

  heard(event, body) {
    if (event === "away") {
      this.away = body.error ?? "";
      this.tell();
      return;
    }
    for (const [name, part] of Object.entries(this.parts)) if (eventOf(part) === event) this.take(name, part, body);
    this.tell();
  }

  take(name, part, body) {
    const first = !this.data[name];
    const age = body.age_ms ?? 0;
    if (body.now_ms) clock.ahead = body.now_ms - Date.now();
    if (!first && part.missed?.(this.data[name], body) && performance.now() - this.asked[name] >= ASK_MS)
      void this.ask(name, part);
    this.data[name] = part.merge && this.data[name] ? part.merge(this.data[name], body) : body;
    this.came[name] = { at: performance.now(), age };
    delete this.errors[name];
    this.lost = false;
    if (body.away || age >= OLD_MS) this.away ??= "";
    else this.away = null;
    if (first) this.tell(true);
  }

  async ask(name, part) {
    this.asked[name] = performance.now();
    try {
      const body = await get(part.next && this.data[name] ? part.next(this.data[name]) : part.path);
      if (this.parts[name]?.path === part.path) this.take(name, part, body);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.failed(name, error);
    }
    this.tell();
  }

  failed(name, error) {
    this.lost = error.status === 0;
    if (error.status === 503) this.away = error.message;
    else if (error.status !== 0 && this.parts[name]) this.errors[name] = error;
  }
}
