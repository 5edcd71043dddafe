#!/usr/bin/env python3
"""The counters of a queue in seen/figures.c: whether they are those that the scripts count, and whether each place with a list
of its own has them."""
import glob
import os
import re
import sys

SOURCE = os.environ.get("HF_SOURCE", ".")
# A file, its part with the list, and how it names a counter.
PLACES = (
    ("queue/lua/stats.lua", r"HMGET', META, (.*?)\)", "'{}'"),
    ("admin/queues.c", r"\} figures\[\] = \{(.*?)\n\};", "FIGURE({}, both)"),
    ("dashboard/pages/js/pages/queue.js", r"\nconst COUNTED = \[(.*?)\]", '"{}"'),
    ("tests/pages/data.mjs", r"\n  makeQueues\(\) \{(.*?)\n  \}", " {}: "),
    ("tests/acceptance/queue_model.py", r"\nCOUNTERS = \((.*?)\)", '"{}"'),
    ("tests/acceptance/queue_model.py", r"\n    def stats\((.*?)\n    def", 'n["{}"]'),
    ("docs/keys.md", r"\n\| ([^|\n]*) \| counters since", "`{}`"),
    ("docs/diagnose.md", r"\n## The figures of a queue\n(.*?)\n## ", "\n| `{}` |"),
    ("docs/metrics.md", r"\n## Names of the exporter\n(.*?)\n## ", "\n| `holdfast_jobs_{}_total` |"),
)


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def counted():
    """What the scripts count: by count(), and the ends of jobs that steps/leaving.lua does not leave out."""
    names = set()
    for path in glob.glob(os.path.join(SOURCE, "queue/lua/**/*.lua"), recursive=True):
        names.update(re.findall(r"\bcount\('(\w+)'", read(path)))
    leaving = read("queue/lua/steps/leaving.lua")
    ends = set(re.findall(r"^--   (\w+) {2,}\w", leaving, re.M))
    left_out = set(re.findall(r"how ~= '(\w+)'", leaving[leaving.rindex("\nif how"):]))
    return names | ends - left_out - {"purged"}  # it counts as deleted


def main():
    names = re.findall(r"^    COUNTER\((\w+), ", read("seen/figures.c"), re.M)
    failed = [f"{name} is counted in queue/lua or in seen/figures.c, and not in both"
              for name in sorted(counted() ^ set(names))]
    for path, part, form in PLACES:
        text = re.findall(part, read(path), re.S)
        failed += [] if len(text) == 1 else [f"{path} has one part {part!r}"]
        failed += [f"{path} has {form.format(name).strip()!r}" for name in names if form.format(name) not in "".join(text)]
    for what in failed:
        print(f"not so: {what}")
    return 1 if failed else 0


sys.exit(main())
