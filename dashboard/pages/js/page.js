// page.js - what all pages need of the page that is shown: its width, its lists, and words for what is missing.
import { h, empty, button, pager } from "./dom.js";
import { exact } from "./format.js";

// The width of the content in px, and of each of two columns.
export function room(columns = 1, pad = 34) {
  const main = document.getElementById("main");
  const style = getComputedStyle(main);
  const all = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const each = columns === 2 && innerWidth > 1000 ? (all - 22) / 2 : all;
  return Math.max(260, Math.floor(each) - pad);
}

// Instead of a part that is not there: why.
export function missing(at, name) {
  const error = at.errors[name];
  if (!error)
    return h(
      "p",
      { class: "empty", role: "status" },
      at.state === "lost" ? "The dashboard does not answer." : "Loading…",
    );
  if (error.status === 403) return empty("This is not allowed for you: " + error.message);
  return empty(error.message);
}

// The line below a list of /api: `next` is its cursor, which the address of the page keeps.
export function listPager(at, list, said) {
  const after = at.params.get("after");
  const words = [
    said,
    list.looked_at > list.items.length && ` ${exact(list.looked_at)} were looked at for it.`,
    list.next && list.items.length === 0 && " None of them fits; look further.",
  ].filter(Boolean);
  const buttons = [
    after && button("First", () => at.put({ after: null }), { class: "small" }),
    list.next &&
      button(list.items.length ? "Next" : "Look further", () => at.put({ after: list.next }), { class: "small" }),
  ].filter(Boolean);
  return words.length + buttons.length > 0 ? pager(words, buttons) : null;
}
