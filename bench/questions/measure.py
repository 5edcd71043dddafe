"""What the questions of the bench share. Each script beside this file answers one question about
speed, prints one table, and is as short as this:

    #!/usr/bin/python3 -B
    from measure import main

    def measure(m):
        server = m.server()                        # a private redis-server, as --appendonly says
        found = m.program("parts", "--url", server.url, "--jobs", m.pick(100000, 2000))
        m.row("process, jobs/s", found["process_per_s"], found["bare_process_per_s"],
              at_least=0.95, why="...")            # `why` is shown where the bar is not reached
        m.note("The bare loop sends the same scripts and does nothing else.")

    main("How many jobs a second does one worker process?", measure, seconds=120)

`m` is a Measure: a Fixture (tests/acceptance/support.py: server, worker, command, start, ...) that
also collects rows, notes, settings and series. A row's first words say what was measured, with its unit. `ours` and `against` are numbers, or texts, which are shown unchanged. The bar holds for the ratio ours / against, or for `ours` alone if there is no `against` or on="ours".
A row without at_least, at_most or reached has no bar.

Run as: NN-name [--appendonly no|yes] [--quick] [--json]
  --appendonly yes  Redis writes an append-only file, synced every second
  --quick           small sizes, to see that all of it works; the figures mean little
  --json            the table, and on the last line everything as one object:
    {"name", "question", "settings": {...}, "notes": [...], "appendonly_matters": true or false,
     "rows": [{"what", "ours", "against", "ratio", "bar", "reached", "why"}],
     "series": [{"plot", "name", "points": [[x, y], ...]}]}
  `reached` is true, false, or null where there is no bar. It exits with 0 if it could measure,
  with any figures, and otherwise with 1 and one line that gives the reason.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import traceback

sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                "../../tests/acceptance"))
import support  # noqa: E402
from support import BUILD, HOLDFAST, Failure, Fixture, percentile, require, say  # noqa: E402

HEADERS = ["what", "holdfast", "beside it", "ratio", "bar", "reached"]
median = statistics.median


class Measure(Fixture):
    def __init__(self, appendonly="no", quick=False):
        super().__init__()
        self.appendonly, self.quick = appendonly, quick
        self.settings = {"appendonly": appendonly, "quick": quick}
        self.rows, self.notes, self.series_seen = [], [], []

    def pick(self, full, quick):
        """A size: the second one with --quick."""
        return quick if self.quick else full

    def server(self, args=(), **options):
        how = ["--appendonly", self.appendonly, "--appendfsync", "everysec"]
        return super().server(args=[*how, *args], **options)

    def program(self, name, *words, seconds=120):
        """Runs build/bench/NAME and gives the object in the last line that it prints."""
        path = os.path.join(BUILD, "bench", name)
        require(os.path.exists(path), f"{path} was not built")
        child = self.start([path, *map(str, words)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Failure(f"not within {seconds} s: bench/{name}") from None
        require(child.returncode == 0, f"bench/{name}: exit {child.returncode}: " +
                (err.decode(errors="replace").strip() or "it said nothing"))
        return json.loads(out.decode().splitlines()[-1])

    def row(self, what, ours, against=None, *, at_least=None, at_most=None, on="ratio",
            bar="", reached=None, ratio=None, why=""):
        """One line of the table. Bars of another kind: their text in `bar`, and `reached`."""
        numbers = all(isinstance(value, (int, float)) for value in (ours, against))
        if ratio is None and numbers and against:
            ratio = ours / against
        judged = ours if against is None or on == "ours" else ratio
        if at_least is not None:
            bar, reached = f">= {number(at_least)}", judged >= at_least
        elif at_most is not None:
            bar, reached = f"<= {number(at_most)}", judged <= at_most
        self.rows.append({"what": what, "ours": ours, "against": against, "ratio": ratio,
                          "bar": bar, "reached": reached, "why": "" if reached else why})

    def note(self, text):
        self.notes.append(" ".join(text.split()))

    def series(self, plot, name, points):
        """A line of the plot `batch` or `workers`: x is jobs at a time or worker processes; y is
        jobs a second. Or of `waiters`: hand-overs a second, over the waiters of one lock."""
        self.series_seen.append({"plot": plot, "name": name, "points": points})


def number(value):
    """1234567 as 1,234,567; small ones with as many digits as matter."""
    if value is None:
        return ""
    if not isinstance(value, (int, float)):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 \
        else f"{value:.2f}"


def cells(row):
    """What the table shows of a row."""
    reached = {True: "yes", False: "no", None: ""}[row["reached"]]
    return [row["what"], number(row["ours"]), number(row["against"]),
            "" if row["ratio"] is None else f"{row['ratio']:.2f}", row["bar"], reached]


def lines_below(result):
    """What stands below the table: why a bar was not reached, and the notes."""
    return [f"{row['what']}: not reached. {row['why']}".strip() for row in result["rows"]
            if row["reached"] is False] + result["notes"]


def show(result):
    settings = ", ".join(f"{name} {number(value)}" for name, value in result["settings"].items()
                         if name != "quick")
    say(f"{result['question']} ({settings})")
    support.table(HEADERS, map(cells, result["rows"]))
    for line in lines_below(result):
        say(f"  {line}")


def main(question, measure, seconds, appendonly_matters=True):
    """Answers the question within this many seconds, prints the table, ends the process.
    appendonly_matters: the bench asks it again with an append-only file."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--appendonly", choices=["no", "yes"], default="no")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--json", action="store_true", help="all of it, on the last line")
    args = parser.parse_args()

    def expired(signum, _frame):
        raise Failure(f"not finished within {seconds} s" if signum == signal.SIGALRM
                      else f"ended by signal {signum}")

    for signum in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, expired)
    signal.alarm(seconds)
    m, code = Measure(args.appendonly, args.quick), 1
    name = os.path.basename(sys.argv[0])
    try:
        require(os.path.exists(HOLDFAST), f"{HOLDFAST} was not built")
        measure(m)
        result = {"name": name, "question": question, "settings": m.settings, "rows": m.rows,
                  "notes": m.notes, "series": m.series_seen,
                  "appendonly_matters": appendonly_matters}
        show(result)
        if args.json:
            say(json.dumps(result))
        code = 0
    except Failure as failure:
        say(f"{name}: {failure}")
    except Exception as error:  # a defect of the script, or of what it read
        traceback.print_exc(file=sys.stdout)
        say(f"{name}: {type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
        m.close()
    sys.exit(code)
