// change.js - what changes something: a button that is there only if the server allows it, a question, the request.
import { ApiError, change } from "./api.js";
import { button, h, say } from "./dom.js";

const LATER_MS = 400; // after a change, its effect is read

// A question in a window of its own. ask: {title, text, act, typed, risk, fields}. `typed` is what the reader has to
// write; fields are elements; act(dialog) sends, and may throw an ApiError.
function question({ title, text, verb, typed, risk, fields = [] }, act) {
  const wrong = h("p", { class: "bad", role: "alert" });
  const go = h("button", { type: "submit", class: risk ? "risk" : "main", disabled: Boolean(typed) }, verb);
  const input =
    typed &&
    h("input", { class: "field mono", autocomplete: "off", spellcheck: "false", "aria-label": "Type " + typed });
  if (input)
    input.oninput = () => {
      go.disabled = input.value !== typed;
    };
  const send = async (e) => {
    e.preventDefault();
    go.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      wrong.replaceChildren(error.message);
      go.disabled = false;
    }
  };
  const dialog = h(
    "dialog",
    { "aria-labelledby": "question", onclose: () => dialog.remove() },
    h(
      "form",
      { onsubmit: send },
      h("h2", { id: "question" }, title),
      [text].flat().map((line) => h("p", {}, line)),
      fields.map((field) => h("p", {}, field)),
      typed && h("p", {}, "Type ", h("b", { class: "mono" }, typed), " to go on: ", input),
      wrong,
      h(
        "div",
        { class: "acts" },
        button("Leave it", () => dialog.close()),
        go,
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

// what: {label, title, text, verb, risk, typed, fields, path, body(), done, after(answer)}
export function changeButton(at, what, attributes = {}) {
  if (!at.about.changes) return null;
  const act = async () => {
    const answer = await change(what.path, what.body?.() ?? {});
    say(what.done ?? "Done.");
    what.after?.(answer);
    setTimeout(() => at.reload(), LATER_MS);
  };
  return button(what.label, () => question(what, act), {
    class: (what.small ? "small " : "") + (what.risk ? "risk" : what.main ? "main" : ""),
    disabled: at.state === "away" || at.state === "lost",
    ...attributes,
  });
}
