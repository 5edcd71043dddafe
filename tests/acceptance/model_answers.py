"""What a script must answer, for the models: codes, and what stands for something that the documents leave
open."""
import json

TAKEN = "taken"
OK, EXISTS, LOST, GONE, LATE, CANCEL, RUNS, IS_DEAD = 0, -1, -2, -3, -4, -5, -6, -7
PARKED = -14
NAMES = {OK: "ok", EXISTS: "exists", LOST: "lost", GONE: "gone", LATE: "late", CANCEL: "cancel",
         RUNS: "runs", IS_DEAD: "dead", PARKED: "parked"}


class Any:
    """Something that the documents leave open."""

    def matches(self, _found):
        return True

    def __repr__(self):
        return "ANY"


ANY = Any()


class Starts:
    """A text that begins so: its end is for people."""

    def __init__(self, text):
        self.text = text

    def matches(self, found):
        return isinstance(found, str) and found.startswith(self.text)

    def __repr__(self):
        return f"{self.text!r}..."


class Page(list):
    """The answer of a script that reads: later builds may say more, behind this."""

    def matches(self, found):
        return isinstance(found, list) and same(list(self), found[:len(self)])


class OneOf:
    """One of these; who looks into it finds the first."""

    def __init__(self, *those):
        self.those = those

    def __getitem__(self, k):
        return self.those[0][k]

    def matches(self, found):
        return any(same(one, found) for one in self.those)

    def __repr__(self):
        return " or ".join(map(repr, self.those))


class Record:
    """The record of a job: its line is compared as JSON, its payload byte for byte."""

    def __init__(self, head, payload):
        self.head, self.payload = dict(head), payload

    def matches(self, found):
        if not isinstance(found, str):
            return False
        head, newline, payload = found.partition("\n")
        return bool(newline) and self.payload in (None, payload) and same(self.head, json.loads(head))

    def __repr__(self):
        return repr(f"{json.dumps(self.head, default=repr)}\n{str(self.payload)[:40]}")


class Dues:
    """One time for all, or a list with one for each."""

    def __init__(self, dues):
        self.dues = dues

    def matches(self, found):
        times = found if isinstance(found, list) else [found] * len(self.dues)
        return len(times) == len(self.dues) and all(map(lambda a, b: float(a) == b, times, self.dues))

    def __repr__(self):
        return repr(self.dues)


class More:
    """What a claim says of more work: ticks: what is due and is this worker's to reckon; None: nothing."""

    def __init__(self, ticks):
        self.ticks = ticks

    def matches(self, found):
        if self.ticks is None:
            return isinstance(found, int)
        return isinstance(found, list) and len(found) == 2 and same(self.ticks, found[1])

    def __repr__(self):
        return f"more, and due: {self.ticks}"


class Fields:
    """JSON: a number that is 0 may be missing."""

    def __init__(self, fields):
        self.fields = self.whole(fields)

    @staticmethod
    def whole(fields):
        return {name: value for name, value in fields.items() if value}

    def matches(self, found):
        return isinstance(found, str) and self.whole(json.loads(found)) == self.fields

    def __repr__(self):
        return json.dumps(self.fields)


class AnyOrder(list):
    """The rows behind the beginning of an answer may have any order."""

    def __init__(self, head, rows):
        super().__init__([*head, *(word for row in rows for word in row)])
        self.head, self.rows = head, sorted(rows)

    def matches(self, found):
        n, width = len(self.head), len(self.rows[0]) if self.rows else 1
        rows = sorted(found[at:at + width] for at in range(n, len(found), width))
        return same(self.head, found[:n]) and same(self.rows, rows)


class AtMost:
    """A time that is not later."""

    def __init__(self, time):
        self.time = time

    def matches(self, found):
        return found is not None and int(found) <= self.time

    def __repr__(self):
        return f"at most {self.time}"


def same(expected, found):
    if hasattr(expected, "matches"):
        return expected.matches(found)
    if isinstance(expected, dict):
        return isinstance(found, dict) and expected.keys() == found.keys() and all(
            same(value, found[key]) for key, value in expected.items())
    if isinstance(expected, (list, tuple)):
        return isinstance(found, (list, tuple)) and len(expected) == len(found) and all(
            map(same, expected, found))
    return expected == found
