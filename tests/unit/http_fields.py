#!/usr/bin/env python3
"""docs/http.md names each address of the dashboard, each parameter and field that it takes, and each field that it
gives. The fields that come from a command's --json are not read: the document names the command."""
import glob
import os
import re
import sys

SOURCE = os.environ.get("HF_SOURCE", ".")
# Texts in these calls that are no fields: values that a field may have.
VALUES = {"up", "exclusive", "hf"}


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def calls(text, name):
    """The arguments of each call of that name."""
    for found in re.finditer(rf"\b{name}\(", text):
        depth, at = 1, found.end()
        while depth > 0:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield text[found.end():at - 1]


def fields(text):
    """What json_pack() and json_object_set_new() put into objects, and the names of series."""
    names = set()
    for call in calls(text, "json_pack"):
        names.update(re.findall(r'"([a-z][a-z0-9_]*)"', call))
    for name in ("json_object_set_new", "give_done"):
        for call in calls(text, name):
            names.update(re.findall(r'^[^"]*"([a-z][a-z0-9_]*)"', call))
    for table in re.findall(r"series_names\[SERIES\] = \{([^}]*)\}", text):
        names.update(re.findall(r'"(\w+)"', table))
    return names - VALUES


def main():
    document = read("docs/http.md")
    parts = re.findall(r"```text\n.*?```|`[^`\n]+`", document, re.S)
    code = set(re.findall(r"[a-z][a-z0-9_]*", " ".join(parts)))
    missing = []
    for path in sorted(glob.glob(os.path.join(SOURCE, "dashboard", "*.c"))):
        text = read(path)
        missing += [f"{os.path.basename(path)}: the field '{name}'" for name in sorted(fields(text) - code)]
    table = read("dashboard/routes_table.c")
    for path in re.findall(r'\.path = "([^"]+)"', table):
        words = [word for word in path.split("/") if word != "*"]
        missing += [f"the address {path}"] if not all(word in code for word in words) else []
    for names in re.findall(r'\.(?:params|fields) = "([^"]+)"', table):
        missing += [f"the parameter '{name}'" for name in names.split() if name not in code]
    for line in missing:
        print(f"docs/http.md lacks {line}")
    sys.exit(1 if missing else 0)


main()
