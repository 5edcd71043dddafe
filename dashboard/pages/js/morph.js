// morph.js - turns the elements of a page into the next ones. It keeps an element where it can. So the focus, a
// selection, an open list and the scroll position stay.

const HANDLERS = ["onclick", "onchange", "oninput", "onsubmit", "onkeydown"];
const keyOf = (node) => node.dataset?.key;
const fits = (old, next) =>
  old.nodeType === next.nodeType &&
  old.nodeName === next.nodeName &&
  keyOf(old) === keyOf(next) &&
  old.nodeName !== "CANVAS";

function morphOne(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of HANDLERS) old[name] = next[name];
  morphChildren(old, next);
  if (old.type === "checkbox") old.checked = next.checked;
  if (old.nodeName === "SELECT" && old !== document.activeElement) old.value = next.value;
}

// A child with a key is matched by its key: a row never becomes another row below the pointer or the focus.
function morphChildren(old, next) {
  const keyed = new Map();
  for (const child of old.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    const found = key ? keyed.get(key) : at;
    if (found && fits(found, wanted)) {
      if (found === at) at = at.nextSibling;
      else old.insertBefore(found, at);
      morphOne(found, wanted);
    } else {
      old.insertBefore(wanted, at);
      if (!key && at && !keyOf(at)) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

export function morph(node, children) {
  const focused = document.activeElement;
  const next = document.createElement(node.nodeName);
  next.append(...children);
  morphChildren(node, next);
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
}
