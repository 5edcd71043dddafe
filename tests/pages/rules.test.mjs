// What the files of the pages may not have, and what nobody uses.
import assert from "node:assert/strict";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../dashboard/pages/", import.meta.url));
const walk = (at) =>
  readdirSync(at).flatMap((name) => (statSync(join(at, name)).isDirectory() ? walk(join(at, name)) : [join(at, name)]));
const files = new Map(walk(root).map((path) => [relative(root, path), readFileSync(path, "utf8")]));
const scripts = [...files].filter(([name]) => name.endsWith(".js"));

test("no text is parsed as markup, no style is inline", () => {
  const never =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\b|new Function|setAttribute\("style|\bstyle:|https?:\/\/(?!www\.w3\.org\/2000\/svg)/;
  for (const [name, text] of scripts) assert.doesNotMatch(text, never, name);
  assert.doesNotMatch(files.get("index.html"), /<style|style=|<script>|<script [^>]*>[^<]|\son[a-z]+=/);
});

test("the page has the base that the server replaces", () => {
  assert.ok(files.get("index.html").includes('<base href="./">'));
});

test("every import is there and is used, every export is imported", () => {
  const wanted = new Set();
  for (const [name, text] of scripts)
    for (const [, names, from] of text.matchAll(/import \{([^}]*)\} from "([^"]*)"/g)) {
      const path = relative(root, resolve(root, dirname(name), from));
      for (const part of names
        .split(",")
        .map((n) => n.trim())
        .filter(Boolean)) {
        const [theirs, ours] = part.split(" as ").concat(part);
        assert.match(
          files.get(path) ?? "",
          new RegExp(`export (async )?(function|const|class|let) ${theirs}\\b`),
          `${name}: ${part} of ${path}`,
        );
        assert.ok(text.match(new RegExp(`\\b${ours}\\b`, "g")).length > 1, `${name} does not use ${ours}`);
        wanted.add(path + " " + theirs);
      }
    }
  const tests = readdirSync(dirname(fileURLToPath(import.meta.url)))
    .filter((n) => n.endsWith(".test.mjs"))
    .map((n) => readFileSync(new URL(n, import.meta.url), "utf8"))
    .join();
  for (const [name, text] of scripts)
    for (const [, , , word] of text.matchAll(/export (async )?(function|const|class|let) (\w+)/g))
      assert.ok(
        wanted.has(name + " " + word) || name === `js/pages/${word}.js` || tests.includes(word),
        `${name} exports ${word}, which nobody imports`,
      );
});

test("every class that is styled is used", () => {
  const used = [...scripts.map(([, text]) => text), files.get("index.html")].join();
  for (const [, name] of files
    .get("hf.css")
    .replace(/\/\*[^]*?\*\//g, "")
    .matchAll(/\.([a-z][a-z0-9-]*)(?=[^{}]*\{)/g)) {
    if (["w3"].includes(name) || name.startsWith("is-")) continue;
    assert.match(used, new RegExp(`\\b${name}\\b`), `there is a style of .${name}`);
  }
});
