"""Workers with C handlers (tests/helpers/hf-c-worker.c): for the scripts about limits, what they ran, read
from the lines of the handlers themselves, and Redis's count of commands; for the scripts about failovers
the Crew, all processes that go on through one (workers, a producer, locks), and what they did."""
import collections
import os
import re
import signal
import time

from support import (HOLDFAST, eventually, helper, overlaps, parse_logfmt, process, read_runs,
                     require, say)

# Of the Crew.
LEASE_MS, WORKERS, LONG_JOBS, LONG = 10000, 3, 3, "believe 3000"
DELAY_MS = 2000
SHORT = "believe 5" + " " * 3000  # more than a stalled replica can read at once


class CWorker:
    """One hf-c-worker. `words`: strict, queues with weights; `log`: what its handlers write."""

    def __init__(self, fixture, server, concurrency, words=(), lease_ms=10000, log=None):
        self.log = log or fixture.path("c.log")
        fixture.c_workers = getattr(fixture, "c_workers", 0) + 1
        self.err = fixture.path(f"c-worker-{fixture.c_workers}.err")
        with open(self.err, "wb") as err:
            self.child = fixture.start([helper("hf-c-worker"), server.url, self.log,
                                        str(concurrency), str(lease_ms), *words], stderr=err)
        self.pid = self.child.pid

    def ready(self):
        require(self.child.poll() is None, f"a worker ended at once: {self.said()}")
        return 'msg="serving"' in self.said()

    def said(self):
        with open(self.err, errors="replace") as file:
            return file.read()

    def signal(self, number):
        self.child.send_signal(number)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self):
        self.child.terminate()
        require(self.child.wait(30) == 0, "a worker did not end with 0")


def crew(fixture, server, n, concurrency, words=(), lease_ms=10000, log=None):
    workers = [CWorker(fixture, server, concurrency, words, lease_ms, log) for _ in range(n)]
    for worker in workers:
        eventually(10, "a worker serves", worker.ready)
    return workers


def stop_all(workers):
    for worker in workers:
        worker.stop()


class Runs:
    """The runs that a log of handlers reports, in the order of their starts."""

    def __init__(self, log):
        self.log = log

    def all(self):
        runs = read_runs(self.log)
        return sorted((run for job in runs.values() for run in job), key=lambda run: run.start)

    def count(self):
        return len(self.all())

    def after(self, n):
        """The run that started after n others, or None."""
        runs = self.all()
        return runs[n] if len(runs) > n else None


# The commands of clients; the rest of Redis's statistics are the calls inside scripts.
SENT = ("eval", "evalsha", "bzpopmin", "client", "script", "sadd", "ping", "hello", "auth")


def requests(server):
    """How many requests of workers Redis has served so far, by kind."""
    kinds = collections.Counter()
    for line in server.call("INFO", "commandstats").splitlines():
        name, _, rest = line.partition(":calls=")
        kind = name.removeprefix("cmdstat_").partition("|")[0]
        if rest and kind in SENT:
            kinds[kind] += int(rest.partition(",")[0])
    return kinds


def put(fixture, server, queue, ids, payload, **more):
    jobs = [{"type": "t", "id": job, "queue": queue, "payload": payload, **more} for job in ids]
    for i in range(0, len(jobs), 10000):
        fixture.bulk(server, jobs[i:i + 10000])


# ---- through a failover ---------------------------------------------------------------


def two_at_once(logs):
    """Pairs of times, from first to last, at which two hf-lockers believed to hold the same lock.
    `logs`: what each has written."""
    times = []
    for number, text in enumerate(logs):
        since = 0
        for line in text.splitlines():
            kind, ns, _ = line.split()
            if kind == "held":
                since = int(ns)
            elif kind == "believed" and int(ns):  # 0: not even once
                times.append((since, int(ns), number))
    times.sort()
    return [(a, b) for a, b in zip(times, times[1:]) if b[0] < a[1] and a[2] != b[2]]


class Member:
    """A process that must go on, and the file in which each line of one kind is a success."""

    def __init__(self, name, child, path, success):
        self.name, self.child, self.path, self.success, self.at = name, child, path, success, 0

    def mark(self):
        """Only what comes from now on counts."""
        self.at = os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def works(self):
        require(self.child.poll() is None, f"{self.name} has ended")
        if not os.path.exists(self.path):
            return False
        with open(self.path, "rb") as file:
            file.seek(self.at)
            return any(map(self.success, file.read().split(b"\n")[:-1]))

    def text(self, ending=""):
        with open(self.path + ending, errors="replace") as file:
            return file.read()


class Crew:
    """All members at one group of servers. `wanted`: the replicas that they wait for."""

    def __init__(self, rig, group, wanted):
        self.rig, self.group, self.wanted = rig, group, wanted
        self.directory = rig.make_directory("crew")
        self.c_workers = [
            self.start(f"C worker {i}", b"start", "hf-c-worker", LONG_JOBS + 1, LEASE_MS,
                       f"replicas={wanted}", "default", "long") for i in range(WORKERS)]
        self.until = os.path.join(self.directory, "until")
        self.producer = self.start("producer", None, "hf-producer", self.until, SHORT, wanted,
                                   DELAY_MS)
        self.members, self.programs, self.pair = [*self.c_workers, self.producer], None, []
        self.accepted, self.away_ns = set(), None

    def start(self, name, success, program, *words):
        log = os.path.join(self.directory, name.replace(" ", "-"))
        with open(log + ".err", "wb") as err:
            child = self.rig.start([helper(program), self.group.url, log, *map(str, words)],
                                   stderr=err)
        # The producer writes nothing but the id of a job that was accepted.
        return Member(name, child, log, lambda line: line.startswith(success) if success
                      else b" " not in line)

    def add_programs_and_locks(self):
        worker = self.rig.worker(
            self.group, [{"type": "t", "exec": ["true"]}],
            worker={"concurrency": 1, "lease": f"{LEASE_MS}ms"},
            redis={"url": self.group.url, "wait_replicas": self.wanted})
        self.programs = Member("program worker", worker.child, worker.log_path,
                               lambda line: b" msg=job " in line)
        words = [f"replicas={self.wanted}", "rounds=1000000"]
        # The name of each lock is new: a release that is lost with a primary keeps it for a lease.
        apart = [self.start(f"locker {name}", b"held", "hf-locker", name, "apart", *words)
                 for name in "ab"]
        # These two want the same lock. They may have to wait for such a lease.
        self.pair = [self.start(f"one of two {i}", b"held", "hf-locker", "shared", "patient",
                                f"lease={LEASE_MS}", "hold=2000", f"seed={i}", *words)
                     for i in range(2)]
        held = os.path.join(self.directory, "held")
        child = self.rig.start(
            [HOLDFAST, "lock", "-n", "long", "--ttl", "15s", "--wait-replicas", str(self.wanted),
             "--redis", self.group.url, "--", "sh", "-c",
             f"while sleep 0.05; do echo held >>{held}; done"])
        self.lock = Member("holdfast lock", child, held, lambda line: line == b"held")
        self.members += [self.programs, *apart, self.lock]

    def ready(self):
        for member in self.members + self.pair:
            eventually(20, f"{member.name} works", member.works)

    def put_long_jobs(self):
        """Some that run while the failover comes."""
        jobs = [{"type": "t", "queue": "long", "payload": LONG}] * LONG_JOBS
        self.accepted.update(self.rig.bulk(self.group, jobs, "--wait-replicas", str(self.wanted)))

    def back(self, seconds, what, named, meanwhile=lambda: None):
        """When each member works again, in seconds after `named`. `meanwhile` is called often."""
        moments = {}
        for member in self.members:
            member.mark()

        def all_work():
            meanwhile()
            for member in self.members:
                if member.name not in moments and member.works():
                    moments[member.name] = time.monotonic() - named
            return len(moments) == len(self.members)

        try:
            eventually(seconds, f"all work again after {what}", all_work)
        finally:
            missing = [member.name for member in self.members if member.name not in moments]
            if missing:
                say(f"  {what}: not working again: {', '.join(missing)}")
        return moments

    def stop(self):
        for member in self.members + self.pair:
            require(process(member.child.pid), f"{member.name} was restarted or ended")
        open(self.until, "w").close()
        require(self.producer.child.wait(70) == 0, "the producer did not end with 0")
        server = self.group.settle()
        server.url = f"redis://127.0.0.1:{server.port}"
        for queue in "default", "long":
            self.rig.wait_idle(server, 60, queue)
        self.rig.audit(server)
        for member in self.members:
            if "worker" in member.name:
                member.child.send_signal(signal.SIGTERM)
                require(member.child.wait(30) == 0, f"{member.name} did not end with 0")

    def judge(self):
        """How many jobs were accepted, were lost, and ended more than once; and of how many ends a
        worker said that replicas have not confirmed them."""
        answers = self.producer.text().split("\n")[:-1]
        self.accepted.update(line for line in answers if " " not in line)
        ends = {job: sum(run.ended and not self.unanswered(run) for run in runs)
                for job, runs in self.runs().items()}
        told = "".join(worker.text(".err") for worker in self.c_workers)
        if self.programs:
            told += self.programs.text()
            for entry in map(parse_logfmt, self.programs.text().splitlines()):
                if entry.get("msg") == "job":
                    done = entry["outcome"] == "done"
                    ends[entry["job"]] = ends.get(entry["job"], 0) + done
        self.lost = self.accepted - set(ends)
        again = sum(n > 1 for n in ends.values())
        unconfirmed = sum(map(int, re.findall(r"not confirmed by replicas.* jobs=(\d+)", told)))
        say(f"  {len(self.accepted)} jobs accepted, {len(self.lost)} of them lost; {again} ended "
            f"more than once; {unconfirmed} ends told as not confirmed; "
            f"{sum(' ' in line for line in answers)} other answers to the producer")
        return len(self.accepted), len(self.lost), again, unconfirmed

    def unanswered(self, run):
        """It ended when all servers were killed. Its job may run again."""
        return self.away_ns and abs(run.last - self.away_ns) < 1e9

    def runs(self):
        return read_runs(*(worker.path for worker in self.c_workers))

    def two_holders(self):
        """Pairs of runs of one job, and of times of the lock that two want, that overlap."""
        return overlaps(self.runs()) + two_at_once(member.text() for member in self.pair)
