"""How long each script keeps Redis, by its slow log. What the machine took from Redis meanwhile is told apart: the
kernel counts for how long a thread that could run had to wait."""
import collections
import glob
import hashlib
import os

from support import BUILD


def script_names():
    """{SHA1: name}"""
    names = {}
    for path in glob.glob(BUILD + "/lua/*.lua"):
        with open(path, "rb") as file:
            names[hashlib.sha1(file.read()).hexdigest()] = os.path.basename(path)[:-4]
    return names


def ran_and_waited_us(pid):
    """How long the first thread of a process ran, and how long it could have run and did not."""
    with open(f"/proc/{pid}/task/{pid}/schedstat") as file:
        return [int(word) / 1000 for word in file.read().split()[:2]]


class Watch:
    """The commands that took Redis longer than `over_us` while it was open."""

    def __init__(self, server, slow_us, over_us=1000):
        self.server, self.slow_us, self.names = server, slow_us, script_names()
        server.call("CONFIG", "SET", "slowlog-max-len", 100000, "slowlog-log-slower-than", over_us)

    def __enter__(self):
        self.server.call("SLOWLOG", "RESET")
        self.before = ran_and_waited_us(self.server.pid)[1]
        return self

    def __exit__(self, *_):
        self.waited = ran_and_waited_us(self.server.pid)[1] - self.before
        self.entries = [(int(entry[2]), self.names.get(entry[3][1], entry[3][0])
                         if len(entry[3]) > 1 else entry[3][0])
                        for entry in self.server.call("SLOWLOG", "GET", -1)]
        self.longest = max(self.entries, default=(0, ""))
        over = [us - self.slow_us for us, name in self.entries if us > self.slow_us]
        self.slow = len(over)
        self.excused = sum(over) <= self.waited

    def said(self):
        us, name = self.longest
        return "under 1 ms" if us == 0 else f"{us / 1000:.1f} ms ({name})"

    def by_name(self):
        """{name: its times in us}"""
        found = collections.defaultdict(list)
        for us, name in self.entries:
            found[name].append(us)
        return found
