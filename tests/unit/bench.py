"""bench.py - what ./dev bench decides: when it measures, and what of the document it writes.
Its questions are scripts made here, which measure nothing."""
import contextlib
import glob
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import sys
import tempfile
import unittest
import unittest.mock
import xml.dom.minidom

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(1, os.path.join(SOURCE, "bench"))
import plots  # noqa: E402
import report  # noqa: E402
from measure import Measure, cells  # noqa: E402

DOCUMENT = """# Title

<!-- bench machine -->
old machine
<!-- end -->
between, with a <!-- end --> in the line
<!-- bench 01-one -->
old one
<!-- end -->
<!-- bench 02-two -->
<!-- end -->
the last words
"""

QUESTION = """#!/usr/bin/python3 -B
import json, sys
print("table of NAME", *sys.argv[1:])
open("ASKED", "a").write(" ".join(["NAME", *sys.argv[1:]]) + "\\n")
if FAILS:
    sys.exit("NAME: it could not be measured")
appendonly = sys.argv[sys.argv.index("--appendonly") + 1]
print(json.dumps({"name": "NAME", "question": "?", "settings": {"appendonly": appendonly},
                  "appendonly_matters": True, "notes": ["a note"], "series": [],
                  "rows": [{"what": "NAME|" + appendonly, "ours": 1234567, "against": 2,
                            "ratio": 0.5, "bar": "", "reached": None, "why": ""}]}))
"""


def load(path):
    loader = importlib.machinery.SourceFileLoader(re.sub(r"\W", "_", path),
                                                  os.path.join(SOURCE, path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class All(unittest.TestCase):
    """bench/all as it is, but for its directory, its document and the load."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="hf-bench-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.all, self.load = load("bench/all"), 0.1
        self.all.HERE = self.all.SOURCE = self.directory
        self.all.DOCUMENT = os.path.join(self.directory, "performance.md")
        os.makedirs(os.path.join(self.directory, "questions"))
        self.write(DOCUMENT)
        for name in ("01-one", "02-two"):
            self.question(name)
        before = os.getloadavg
        os.getloadavg = lambda: (self.load, 0, 0)
        self.addCleanup(setattr, os, "getloadavg", before)

    def question(self, name, fails=False):
        path = os.path.join(self.directory, "questions", name)
        with open(path, "w") as file:
            file.write(QUESTION.replace("NAME", name).replace("FAILS", str(fails)).replace(
                "ASKED", os.path.join(self.directory, "asked")))
        os.chmod(path, 0o755)

    def write(self, text):
        with open(self.all.DOCUMENT, "w") as file:
            file.write(text)

    def read(self):
        with open(self.all.DOCUMENT) as file:
            return file.read()

    def asked(self):
        path = os.path.join(self.directory, "asked")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return file.read().splitlines()

    def run_all(self, *words):
        """Its exit code; self.out and self.err are what it said."""
        out, err, before = io.StringIO(), io.StringIO(), sys.argv
        sys.argv = ["all", *words]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = self.all.main()
        finally:
            sys.argv = before
        self.out, self.err = out.getvalue(), err.getvalue()
        return code

    def test_a_busy_machine_is_not_measured(self):
        self.load = 0.51
        self.assertEqual(self.run_all(), 75)
        self.assertEqual(self.err.count("\n"), 1)
        self.assertIn("0.51", self.err)
        self.assertEqual(self.asked(), [])
        self.assertEqual(self.read(), DOCUMENT)

    def test_a_quiet_machine_is(self):
        self.load = 0.5
        self.assertEqual(self.run_all(), 0)
        self.assertEqual([line.split()[0] for line in self.asked()],
                         ["01-one", "01-one", "02-two", "02-two"])
        text = self.read()
        self.assertIn("| kernel | Linux ", text)
        self.assertNotIn("old machine", text)
        self.assertNotIn("- Measured ", text)

    def test_anyway_and_quick_only_print(self):
        self.load = 9
        for word in ("--anyway", "--quick"):
            self.assertEqual(self.run_all(word), 0)
            self.assertIn("table of 02-two", self.out)
            self.assertEqual(self.read(), DOCUMENT)

    def test_only_what_was_asked_is_written(self):
        self.assertEqual(self.run_all("1"), 0)
        self.assertEqual(self.asked(), ["01-one --json --appendonly no",
                                        "01-one --json --appendonly yes"])
        text = self.read()
        for part in ("# Title", "between, with a <!-- end --> in the line", "the last words",
                     "<!-- bench 02-two -->\n<!-- end -->", "| 01-one\\|no | 1,234,567 | 2 | 0.50",
                     "| 01-one\\|yes |", "- a note\n- Measured ", "old machine"):
            self.assertIn(part, text)
        self.assertNotIn("old one", text)
        self.assertEqual(text.count("a note"), 1)
        self.assertEqual(self.run_all("1"), 0)
        self.assertEqual(self.read(), text)

    def test_one_that_fails_keeps_its_old_table(self):
        self.question("01-one", fails=True)
        self.assertEqual(self.run_all(), 1)
        self.assertIn("not measured: 01-one", self.err)
        self.assertIn("\nold one\n", self.read())
        self.assertIn("02-two\\|yes", self.read())

    def test_unknown_numbers_and_missing_places_are_seen_first(self):
        self.assertEqual(self.run_all("1", "7"), 64)
        self.assertIn("no question 7", self.err)
        self.question("03-three")
        self.assertEqual(self.run_all(), 1)
        self.assertIn("<!-- bench 03-three -->", self.err)
        self.assertEqual(self.asked(), [])

    def test_a_short_soak_is_not_written(self):
        self.question("15-soak")
        self.write(DOCUMENT + "<!-- bench 15-soak -->\nten minutes\n<!-- end -->\n")
        self.assertEqual(self.run_all("15"), 0)
        self.assertIn("ten minutes", self.read())
        self.assertTrue(all("--quick" in line for line in self.asked()))
        self.assertEqual(self.run_all("15", "--soak"), 0)
        self.assertNotIn("ten minutes", self.read())


class Blocks(unittest.TestCase):
    def test_nothing_else_changes(self):
        text = report.replace_blocks(DOCUMENT, {"02-two": "new two\n"})
        self.assertEqual(text, DOCUMENT.replace("<!-- bench 02-two -->\n",
                                                "<!-- bench 02-two -->\nnew two\n"))
        self.assertEqual(report.blocks_of(text), ["machine", "01-one", "02-two"])

    def test_what_cannot_be_placed_is_refused(self):
        begin = "<!-- bench 01-one -->\n"
        for text in ("", DOCUMENT + begin, begin, begin + "<!-- bench 02-two -->\n<!-- end -->\n"):
            with self.assertRaises(ValueError):
                report.replace_blocks(text, {"01-one": "new"})

    def test_every_question_has_its_place(self):
        with open(os.path.join(SOURCE, "docs/performance.md")) as file:
            places = report.blocks_of(file.read())
        self.assertEqual(len(places), len(set(places)))
        for script in glob.glob(os.path.join(SOURCE, "bench/questions/[0-9][0-9]-*")):
            self.assertIn(os.path.basename(script), places)
            self.assertTrue(os.access(script, os.X_OK), script)


class Rows(unittest.TestCase):
    def setUp(self):
        self.m = Measure()
        self.addCleanup(self.m.close)

    def row(self, *values, **options):
        self.m.row("what", *values, **options)
        return self.m.rows[-1]

    def test_the_bar_is_for_the_ratio(self):
        self.assertIs(self.row(95, 100, at_least=0.95)["reached"], True)
        self.assertIs(self.row(94, 100, at_least=0.95)["reached"], False)
        self.assertIs(self.row(115, 100, at_most=1.15)["reached"], True)
        self.assertIs(self.row(116, 100, at_most=1.15)["reached"], False)

    def test_or_for_the_figure_itself(self):
        self.assertIs(self.row(320, at_most=320)["reached"], True)
        self.assertIs(self.row(321, at_most=320)["reached"], False)
        self.assertIs(self.row(10, 1, at_most=10, on="ours")["reached"], True)

    def test_no_bar_is_neither(self):
        self.assertIsNone(self.row(1, 2)["reached"])
        self.assertEqual(cells(self.row("as it is", 2)), ["what", "as it is", "2", "", "", ""])

    def test_a_reason_is_for_what_was_not_reached(self):
        self.assertEqual(self.row(1, 1, at_least=1, why="because")["why"], "")
        self.assertEqual(self.row(1, 2, at_least=1, why="because")["why"], "because")


class Scripts(unittest.TestCase):
    """Question 2 sends the scripts itself."""

    def test_each_script_gets_all_of_its_arguments(self):
        with unittest.mock.patch("measure.main"):
            question = load("bench/questions/02-scripts")
        sent = []

        def call(*words):
            sent.append(words)
            return words[2] if words[0] == "SCRIPT" else [0, 0, "17", 0, 0, 0, 0, 0, "id", "record"]

        side = question.Side(call, "today", {name: name for name in ("enqueue", "claim", "renew",
                                                                     "complete")})
        side.enqueue(1)
        claimed = side.claim(1)
        side.renew(claimed)
        side.complete(claimed)
        each = {"enqueue": 3 + 1, "claim": 0, "renew": 2, "complete": 2 + 1}
        for _, script, _, _, *words in (words for words in sent if words[0] == "EVALSHA"):
            with open(os.path.join(SOURCE, f"queue/lua/{script}.lua")) as file:
                fixed = len(re.findall(r"^--  ARGV\[\d+\] ", file.read(), re.M))
            self.assertEqual(len(words), fixed + each.pop(script), script)
        self.assertEqual(each, {})


class Plots(unittest.TestCase):
    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_only_those_with_points_are_drawn(self):
        directory = tempfile.mkdtemp(prefix="hf-bench-")
        self.addCleanup(shutil.rmtree, directory)
        plots.draw([{"plot": "batch", "name": "it's <ours>", "points": [[1, 10], [1000, 250000]]}],
                   directory)
        self.assertEqual(os.listdir(directory), ["performance-batch.svg"])
        with open(os.path.join(directory, "performance-batch.svg")) as file:
            text = file.read()
        xml.dom.minidom.parseString(text)
        for word in ("it's &lt;ours", "jobs at a time", "jobs a second"):
            self.assertIn(word, text)


unittest.main(verbosity=2)  # it says what it skips
