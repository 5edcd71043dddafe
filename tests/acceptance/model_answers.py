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
    """One of these."""

    def __init__(self, *those):
        self.those = those

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
