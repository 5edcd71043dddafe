#!/usr/bin/env python3
"""The table of features in queue/lua/lib/features.lua: whether the patterns below it, what a check corrects and the keys of
queue/lua/lib/keys.lua agree with it; and docs/keys.md, with the table that --write makes anew."""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SOURCE, BUILD = os.environ.get("HF_SOURCE", HERE), os.environ.get("HF_BUILD", os.path.join(HERE, "build"))
HEAD = "| letter | the queue uses it if | keys | checked by |\n|---|---|---|---|\n"
NEVER_CORRECTED = {"LARGE", "SHARDS"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def scripts():
    """Name -> what Redis runs."""
    paths = glob.glob(os.path.join(BUILD, "lua", "*.lua"))
    return {name: read(path) for path in paths
            if not (name := os.path.basename(path)[:-4]).startswith("lock_")}


def heeds(text, letter, patterns):
    """Whether a script looks for this letter, or looks closer at a queue that has it."""
    if re.search(rf"string\.find\([^()]+, '{letter}', 1, true\)", text):
        return True
    closer = patterns["CLOSER"]
    looked = [p for p in re.findall(r"string\.find\([^()]+, '(\[\w+\])'\)", text) if p in patterns.values()]
    return any(letter in p for p in looked) or f"'{closer}'" in text and letter not in closer


def main():
    text, failed = read(os.path.join(SOURCE, "queue/lua/lib/features.lua")), []
    rows = re.findall(r"^local (\w+) = '(\w)' -- (.*?) \|(.*)$", text, re.M)
    patterns = dict(re.findall(r"^local (\w+) = '(\[\^?\w+\])'", text, re.M))
    letters = [letter for _, letter, _, _ in rows]

    def expect(that, what):
        if not that:
            failed.append(what)

    expect(len(rows) > 10 and len(set(letters)) == len(rows), "each feature has a letter of its own")
    expect(sorted(patterns.get("UNKNOWN", "")[2:-1]) == sorted(letters), "UNKNOWN has all letters")
    for name, pattern in patterns.items():
        expect(set(pattern.strip("[^]")) <= set(letters), f"{name} has letters of features only")
    linked = scripts()
    now = text[text.index("local function uses_now"):]
    corrected = set(re.findall(r"\[(\w+)\] =", now))
    expect(corrected == {name for name, _, _, _ in rows} - NEVER_CORRECTED, "a check corrects each letter that keys tell")
    marks = re.search(r"local function has_marks\(prefix\)\n.*?\n *end\n", linked["check"], re.S)[0]
    looked_at = set(re.findall(r"prefix \.\. '(\w+)'", now + marks)) - {"running", "jobs", "meta"}
    level = read(os.path.join(SOURCE, "queue/lua/lib/level.lua"))
    behind = re.findall(r"'(:\w+)'", re.search(r"^local LEVELS_BEHIND = \{(.*)\}$", level, re.M)[1])
    levels = {"schedule" + name for name in behind}
    keys = {key for _, _, _, where in rows if "`meta`" not in where for key in re.findall(r"`([^`]+)`", where)}
    expect(looked_at | levels == keys, f"a check looks at the keys of the table: {sorted(looked_at ^ keys)}")
    listed = read(os.path.join(SOURCE, "queue/lua/lib/keys.lua"))
    listed = re.search(r"^local TYPE_OF_KEY = \{(.*?)\n\}", listed, re.M | re.S)[1]
    types = dict(re.findall(r"\b(\w+) = '(\w+)'", listed))
    expect(keys - levels <= set(types), "TYPE_OF_KEY has these keys")
    table = HEAD
    for _, letter, what, where in rows:
        heeding = " ".join(f"`{name}`" for name in sorted(linked) if heeds(linked[name], letter, patterns))
        heeding = heeding or "older versions"
        table += f"| `{letter}` | {what} |{where.rstrip()} | {heeding} |\n"
    document = os.path.join(SOURCE, "docs/keys.md")
    page = read(document)
    told = {"zset": "sorted set", "hash": "hash"}
    for key, kind in types.items():
        expect(f"\n| `{key}` | {told[kind]} | " in page, f"docs/keys.md has a row of `{key}`, a {told[kind]}")
    before, after = page.split(HEAD)
    rest = re.sub(r"\A(\|.*\n)+", "", after)
    if before + table + rest != page and "--write" in sys.argv:
        with open(document, "w", encoding="utf-8") as file:
            file.write(before + table + rest)
    elif before + table + rest != page:
        failed.append(f"docs/keys.md has this table (./dev generate writes it):\n{table}")
    for what in failed:
        print(f"not so: {what}")
    return 1 if failed else 0


sys.exit(main())
