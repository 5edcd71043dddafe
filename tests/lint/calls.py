#!/usr/bin/env python3
"""Which file calls which, by the symbols of the objects: calls.py [-v].

A file calls another one of its folder if its object needs a symbol that the other's object defines,
or if it uses an inline function of the other's header. A call through a pointer does not count. The
check fails

 - when files of one folder call each other in a circle, unless CIRCLES lists the circle. It also
   fails when a listed circle has changed: a number there may only become smaller;
 - when a file of OWN_HEADERS exports a function that the header of the same name does not declare,
   or that does not begin with the name of the file. Public functions are declared in include/;
 - when a part of worker/ calls one that comes before it in the table of docs/design.md, or when the
   files there are not those of the table;
 - when a tag of a struct, a union or an enum is defined twice.

The check tests itself first. It prints how many files each folder has, and how many calls from file
to file; with -v each of these calls."""
import collections
import functools
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("HF_SOURCE", ".")
BUILD = os.environ.get("HF_BUILD", "build")
FOLDERS = "base cron redis config lock queue admin producer worker seen trace cli top dashboard bench".split()
# The circles that exist, each by its first file: how many files, how many calls between them. There
# is none.
CIRCLES = {}
OWN_HEADERS = {"lock", "producer", "redis", "worker"}


def circles(calls):
    """The sets of files that call each other in a circle (Tarjan's algorithm)."""
    callees, order, low, stack, found = collections.defaultdict(set), {}, {}, [], []
    for caller, callee in calls:
        callees[caller].add(callee)

    def visit(file):
        order[file] = low[file] = len(order)
        stack.append(file)
        for callee in callees.get(file, ()):
            if callee not in order:
                visit(callee)
                low[file] = min(low[file], low[callee])
            elif callee in stack:
                low[file] = min(low[file], order[callee])
        if low[file] == order[file]:
            at = stack.index(file)
            circle = set(stack[at:])
            del stack[at:]
            if len(circle) > 1:
                found.append(circle)

    for file in sorted(callees):
        if file not in order:
            visit(file)
    return found


@functools.cache
def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def sources(folder, ending):
    """The files of a folder and of the folders in it, from the root."""
    for place, _, names in os.walk(os.path.join(SOURCE, folder)):
        for name in sorted(names):
            if name.endswith(ending):
                yield os.path.relpath(os.path.join(place, name), SOURCE)


def objects():
    """(source without its ending, object) for each object whose source exists."""
    for place, _, names in os.walk(BUILD):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), BUILD)
            match = re.fullmatch(r"(?:(.*)/)?CMakeFiles/[^/]+\.dir/(.*)\.c\.o", path)
            file = match and os.path.join(match[1] or "", match[2])
            if match and os.path.exists(os.path.join(SOURCE, file + ".c")):
                yield file, os.path.join(BUILD, path)


def printed(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def defined(paths):
    """{object: the symbols that it defines for others}"""
    found = collections.defaultdict(set)
    for line in printed("nm", "-A", "-g", "--defined-only", *paths).splitlines():
        path, _, symbol = line.partition(":")
        found[path].add(symbol.split()[-1])
    return found


def needed(paths):
    """{object: the symbols that its code uses}. A table of functions is no code."""
    found = collections.defaultdict(set)
    parts = re.split(r"^(.+): +file format .*$", printed("objdump", "-r", *paths), flags=re.M)
    for path, text in zip(parts[1::2], parts[2::2]):
        for section in text.split("RELOCATION RECORDS FOR ")[1:]:
            if section.startswith("[.text"):
                found[path] |= set(re.findall(r" R_\S+\s+([A-Za-z_]\w*)", section))
    return found


class Folder:
    def __init__(self, name):
        self.name = name
        self.needs = collections.defaultdict(set)  # file: symbols
        self.home = {}  # symbol: file

    def add(self, file, needed, defined):
        self.needs[file] |= needed
        self.home.update((symbol, file) for symbol in defined if symbol != "main")

    def add_inline(self):
        """What the objects do not show: the inline functions of the headers."""
        for header in sources(self.name, ".h"):
            for symbol in re.findall(r"^static inline\b[^;{]*?\b(hf_\w+)\(", read(header), re.M):
                self.home[symbol] = header[:-2]
                for file in list(self.needs):
                    if re.search(rf"\b{symbol}\(", read(file + ".c")):
                        self.needs[file].add(symbol)

    def calls(self):
        """{(caller, callee): symbols}"""
        found = collections.defaultdict(set)
        for file, needed in self.needs.items():
            for symbol in needed & self.home.keys():
                if self.home[symbol] != file:
                    found[file, self.home[symbol]].add(symbol)
        return found

    def strangers(self, public):
        """The exported functions that the header of their file does not declare, or that another
        name begins."""
        for symbol, file in sorted(self.home.items()):
            header = file + ".h"
            stem = os.path.basename(file)
            one = stem.removesuffix("s")
            words = {stem, one, one + "s", one + "es"}
            words |= {f"{os.path.basename(os.path.dirname(file))}_{word}" for word in words}
            if symbol in public or not symbol.startswith("hf_"):
                continue
            own = os.path.exists(os.path.join(SOURCE, header)) and symbol in read(header)
            if not own:
                yield f"{file}.c: {symbol} is not declared in {header}"
            if not any(f"{symbol}_".startswith(f"hf_{word}_") for word in words):
                yield f"{file}.c: {symbol} does not begin with hf_{stem}"


def worker_parts():
    """[(name, files and folders)] of worker/, from the table of docs/design.md."""
    table = read("docs/design.md").partition("| part | in `worker/` | is about |\n")[2]
    rows = [line.split("|") for line in table.partition("\n\n")[0].splitlines()[1:]]
    return [(row[1].strip(), re.findall(r"`([^`]+)`", row[2])) for row in rows]


def part_faults(parts, files, calls, report=print):
    """Sentences about files that are in no part, or in two, and about calls upward."""
    home, between = {}, set()
    for file in files:
        inside = file.partition("/")[2] + ".c"
        found = [index for index, (_, places) in enumerate(parts)
                 if inside in places or inside.partition("/")[0] + "/" in places]
        home[file] = found[0] if found else None
        if len(found) != 1:
            yield f"{file}.c is in {len(found)} parts of the table of docs/design.md"
    for name, places in parts:
        for place in places:
            if not any(file.startswith(f"worker/{place}") or f"{file}.c" == f"worker/{place}"
                       for file in files):
                yield f"the part {name} of docs/design.md names {place}, which does not exist"
    for caller, callee in sorted(calls):
        if None not in (home.get(caller), home.get(callee)) and home[caller] != home[callee]:
            between.add((home[caller], home[callee]))
            if home[caller] > home[callee]:
                yield f"{caller} calls {callee}, whose part comes before its own"
    report(f"  parts: {len(parts)}, {len(between)} calls from part to part")


def circle_faults(found, listed):
    """Sentences about circles that are new, that have grown, or that are smaller than listed."""
    listed = dict(listed)
    for first, files, calls in found:
        was = listed.pop(first, None)
        if was != (files, calls):
            yield (f"{files} files call each other in a circle, by {calls} calls: {first} ..., "
                   f"where {was or 'none'} is listed")
    for first in listed:
        yield f"CIRCLES lists a circle of {first} that is gone"


def tag_faults():
    homes = collections.defaultdict(set)
    for folder in FOLDERS + ["include"]:
        for ending in ".h", ".c":
            for path in sources(folder, ending):
                for tag in re.findall(r"\b(?:struct|union|enum) (hf_\w+) \{", read(path)):
                    homes[tag].add(path)
    for tag, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield f"the tag {tag} is defined in {' and '.join(sorted(paths))}"


def test():
    assert circles([("a", "b"), ("b", "c")]) == []
    assert circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]) == [{"a", "b", "c"}]
    assert not list(circle_faults([("a", 2, 2)], {"a": (2, 2)}))
    assert len(list(circle_faults([("a", 3, 3)], {"a": (2, 2)}))) == 1
    assert len(list(circle_faults([("a", 2, 2)], {"a": (3, 3)}))) == 1
    assert len(list(circle_faults([("a", 2, 2)], {}))) == 1
    assert len(list(circle_faults([], {"a": (2, 2)}))) == 1
    parts, files, down = [("a", ["x.c"]), ("b", ["y/"])], ["worker/x", "worker/y/z"], ("worker/x", "worker/y/z")
    for wrong, found, calls in (0, files, {down}), (1, files, {down[::-1]}), (1, files + ["worker/w"], {}), (1, files[:1], {}):
        assert len(list(part_faults(parts, found, calls, report=len))) == wrong


def main():
    test()
    folders = {name: Folder(name) for name in FOLDERS}
    compiled = [(file, path) for file, path in objects() if file.partition("/")[0] in folders]
    paths = [path for _, path in compiled]
    needs, homes = needed(paths), defined(paths)
    for file, path in compiled:
        folders[file.partition("/")[0]].add(file, needs[path], homes[path])
    public = set(re.findall(r"\bhf_\w+", "".join(read(path) for path in sources("include", ".h"))))
    faults, found = list(tag_faults()), []
    for folder in folders.values():
        folder.add_inline()
        if not folder.needs:
            faults.append(f"no object of {folder.name}/ in {BUILD}")
        calls = folder.calls()
        print(f"{folder.name}: {len(folder.needs)} files, {len(calls)} calls from file to file")
        if sys.argv[1:] == ["-v"]:
            for (caller, callee), names in sorted(calls.items()):
                print(f"  {caller} > {callee}: {' '.join(sorted(names))}")
        for circle in circles(calls):
            inside = [call for call in calls if set(call) <= circle]
            found.append((min(circle), len(circle), len(inside)))
            print(f"  circle: {' '.join(sorted(circle))}")
        if folder.name == "worker":
            faults += part_faults(worker_parts(), set(folder.needs), calls)
        if folder.name in OWN_HEADERS:
            faults += folder.strangers(public)
    faults += circle_faults(found, CIRCLES)
    print(*faults, sep="\n")
    return 1 if faults else 0


sys.exit(main())
