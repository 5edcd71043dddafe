"""The checklist of docs/locks.md: its rows, and the tests that each of them names."""
import collections
import glob
import os
import re

from support import SOURCE, require

ROWS = [f"{letter}{n}" for letter, last in (("P", 11), ("F", 10), ("R", 21))
        for n in range(1, last + 1)]
HEADING = "| row | what is promised | shown by |"
Row = collections.namedtuple("Row", "name promise tests")


def read(path):
    with open(path) as file:
        return file.read()


def source_of(program):
    """The file of tests, below tests/."""
    found = glob.glob(f"{SOURCE}/tests/*/test_{program}.c")
    require(len(found) == 1, f"docs/locks.md: there is no one file test_{program}.c below tests/")
    return found[0]


def read_rows():
    """Each row with its tests, [(program, name)]; none where it says `no test: ` and why."""
    text = read(SOURCE + "/docs/locks.md")
    require(HEADING in text, f"docs/locks.md: there is no table `{HEADING}`")
    rows = []
    for line in text.split(HEADING)[1].splitlines()[2:]:
        if not line.startswith("|"):
            break
        name, promise, shown = (cell.strip() for cell in line.strip("|").split(" | "))
        tests = [tuple(test.split(".")) for test in re.findall(r"`(\w+\.\w+)`", shown)]
        require(tests or re.match(r"no test: .{10}", shown),
                f"docs/locks.md: {name} names neither a test nor a reason why there is none")
        rows.append(Row(name, promise, tests))
    names = [row.name for row in rows]
    require(names == ROWS, f"docs/locks.md: the rows are {' '.join(names)}, not {' '.join(ROWS)}")
    return rows


def check_rows():
    """Every test that is named is in its file, and is run there; gives how many."""
    tests = {test: row.name for row in read_rows() for test in row.tests}
    for (program, name), row in tests.items():
        uses = re.findall(rf"\b{name}\b(?!\()", read(source_of(program)))
        require(uses, f"docs/locks.md: {row} names `{program}.{name}`, which is not run there")
    return len(tests)
