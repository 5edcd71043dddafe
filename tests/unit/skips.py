#!/usr/bin/env python3
"""What tests/skips reads of a run of the tests: each part that was skipped, with its reason; and which are faults."""
import os
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

SKIPS = os.path.join(os.environ["HF_SOURCE"], "tests", "skips")
RUN = "[ RUN      ] one\n%s[  SKIPPED ] one\n[ RUN      ] two\n[       OK ] two\n[==========] 2 test(s) run.\n" \
      "[  PASSED  ] 1 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] one\n"
LAST = "[ RUN      ] one\nskipped: %s\n[  SKIPPED ] one\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] one\n"
FAULT = " - a fault: it has to run here"
ROOT, NODE = "only root can start a program of another user", "there is no Node 20 or newer"
# What a test prints, whether all of it was skipped, what is said of that.
CASES = [
    ("[ RUN      ] one\n[       OK ] one\n", False, []),
    (RUN % f"skipped: {ROOT}\n", False, [f"one: {ROOT}"]),
    (RUN % "", False, ["one: it does not say why" + FAULT]),
    (LAST % ROOT, False, [f"one: {ROOT}"]),
    (LAST % "no zones", False, ["one: no zones" + FAULT]),
    ("skipped: expected a cgroup v2, found none\n", False, ["expected a cgroup v2, found none"]),
    (f"skipped: {NODE}\n", True, [NODE]),
    ("skipped: there is no redis-server in PATH\n", True, ["there is no redis-server in PATH" + FAULT]),
    ("", True, ["it does not say why" + FAULT]),
    ("31.6 s\npassed: skipped: it was not built\n", False, ["it was not built" + FAULT]),
    ("SKIPPED [1] tests/test_a.py:24: it needs Python 3.11, or tomli\n", False, ["it needs Python 3.11, or tomli"]),
    ("test_a (bench.Plots) ... ok\ntest_b (bench.Plots) ... skipped 'no plots'\n", False, ["no plots" + FAULT]),
    ("ok 1 - one\nok 2 - TLS # SKIP no openssl\n# skipped 1\n", False, ["no openssl" + FAULT]),
    ("\N{SMALL HYPHEN-MINUS} TLS (0.4ms) # no openssl\n", False, ["no openssl" + FAULT]),
    ("it skipped: nothing\nok 2 - a # of them\n", False, []),
]


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tests.xml")
        for text, whole, expected in CASES:
            skipped = '<skipped message="SKIP_RETURN_CODE=77"/>' if whole else ""
            with open(path, "w", encoding="utf-8") as file:
                file.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuite><testcase name="unit.a" status="run">'
                           f"{skipped}<system-out>{escape(text)}</system-out></testcase></testsuite>\n")
            done = subprocess.run([SKIPS, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            said = [line.removeprefix("skipped: unit.a: ") for line in done.stdout.splitlines()]
            if said != expected or done.returncode != any(line.endswith(FAULT) for line in expected):
                print(f"[  FAILED  ] {text!r}: {done.returncode} {said}")
                bad += 1
    print(f"{len(CASES)} cases, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
