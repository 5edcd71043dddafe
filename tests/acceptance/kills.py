"""A play of random kills, shared by the scripts whose workers have pools: workers, their minders and the processes of
their pools are killed, stopped and continued while jobs run, and in the end it is judged what happened to the jobs."""
import collections
import os
import signal
import time

from pools import BEAT_MS, processes_of
from support import (Pressure, boottime_ns, overlaps, percentile, process, read_runs, require, say, table,
                     unordered_fences)

LEASE_MS, BLOWS_EACH_S, STOPPED_LEASES = 2000, 0.8, 2.5
OBEYS_NS = 5e9  # after a late renewal, how long the end of a process may be the minder's doing
VICTIMS = {"process": 5, "worker": 3, "minder": 2}


class Play:
    """crew: the pools of each worker. kinds: type -> (jobs a second, the longest in ms). crashes: type -> one job each
    this many seconds, which crashes its process. runs: the file of what the handlers note."""

    def __init__(self, fixture, crew, kinds, crashes, runs):
        self.fixture, self.random, self.server = fixture, fixture.random, fixture.server()
        self.crew, self.rates, self.crashes, self.runs = crew, kinds, crashes, runs
        self.kinds, self.put_ns = {}, {}  # job -> its type, and when it was enqueued
        self.blows, self.stopped, self.worker_blows = collections.Counter(), [], []
        self.struck = collections.defaultdict(list)  # process -> when it, its worker or minder was killed
        self.workers = [self.begin(pools) for pools in crew]
        fixture.workers_ready(*self.workers, seconds=60)

    def begin(self, pools):
        return self.fixture.worker(self.server, pools, worker={"lease": f"{LEASE_MS}ms"})

    def whole(self, minutes):
        """Plays for so long, and judges."""
        pressure = Pressure()
        self.run(minutes)
        self.settle()
        say(f"processes waited for a processor {pressure.share():.0%} of the time")
        jobs = self.judge()
        # A process that began after the blow has the number of the one that was struck.
        left = [pid for pid, blows in self.struck.items() if process(pid) and process(pid).started_ns < blows[0]]
        require(not left, f"processes of workers that have ended are there: {left}")
        return f"{minutes:g} minutes, {sum(self.blows.values())} blows, {jobs} jobs: no overlap, none lost, none " \
               "buried for others"

    # ---- jobs ----

    def put(self, seconds):
        """Those of the next moment."""
        jobs = []
        for kind, (each_s, longest) in self.rates.items():
            jobs += [(kind, self.random.randint(20, longest)) for _ in range(self.number(each_s * seconds))]
        for kind, each in self.crashes.items():
            jobs += [(kind, 0)] * self.number(seconds / each)
        if jobs:
            now = boottime_ns()
            ids = self.fixture.bulk(self.server, [{"type": kind, "payload": str(ms)} for kind, ms in jobs])
            self.kinds.update(zip(ids, (kind for kind, _ in jobs)))
            self.put_ns.update(dict.fromkeys(ids, now))

    def number(self, mean):
        return int(mean) + (self.random.random() < mean % 1)

    # ---- blows ----

    def strike(self):
        i = self.random.randrange(len(self.workers))
        worker, kind = self.workers[i], self.random.choices(list(VICTIMS), VICTIMS.values())[0]
        processes = processes_of(worker)
        pid = {"worker": worker.pid, "minder": worker.minder(),
               "process": self.random.choice(processes) if processes else 0}[kind]
        if not pid:  # there is none at the moment
            return
        number = self.random.choice((signal.SIGKILL, signal.SIGSTOP))
        self.blows[kind, number.name] += 1
        if number == signal.SIGSTOP:
            until = time.monotonic() + self.random.uniform(0.02, STOPPED_LEASES) * LEASE_MS / 1000
            self.stopped.append((until, pid))
        hit = [pid] if kind == "process" else processes
        if number == signal.SIGKILL or kind == "worker":
            for process in hit:
                self.struck[process].append(boottime_ns())
        self.worker_blows += [boottime_ns()] if kind == "worker" else []
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # it has just been replaced
            return
        if kind == "worker" and number == signal.SIGKILL:
            worker.child.wait()
            self.workers[i] = self.begin(self.crew[i])

    def go_on(self, every=False):
        for entry in list(self.stopped):
            if every or entry[0] <= time.monotonic():
                self.stopped.remove(entry)
                try:
                    os.kill(entry[1], signal.SIGCONT)
                except ProcessLookupError:  # it was killed meanwhile
                    pass

    def run(self, minutes):
        until = time.monotonic() + minutes * 60
        next_put = next_blow = time.monotonic()
        while time.monotonic() < until:
            if time.monotonic() >= next_put:
                next_put += 0.5
                self.put(0.5)
            if time.monotonic() >= next_blow:
                next_blow = time.monotonic() + self.random.expovariate(BLOWS_EACH_S)
                self.strike()
                self.fixture.reap()
            self.go_on()
            time.sleep(0.01)
        self.go_on(every=True)

    def settle(self):
        self.fixture.wait_idle(self.server, 240)
        self.fixture.audit(self.server)
        for worker in self.workers:
            code = worker.stop()
            require(code == 0, f"worker {worker.number} ended with {code}")

    # ---- judging ----

    def judge(self):
        runs, stats = read_runs(self.runs), self.fixture.stats(self.server)
        dead = {entry["id"]: entry for entry in self.fixture.json(self.server, "dead", "list", "--limit", "1000")}
        crashers = {job for job, kind in self.kinds.items() if kind in self.crashes}
        beside = self.beside(runs, crashers)
        cut = {job: sum(not run.ended for run in own) for job, own in runs.items() if job not in crashers}
        again = collections.Counter(len(own) for job, own in runs.items() if job not in crashers)
        say(f"{len(self.kinds)} jobs, {len(crashers)} of which crash their process; {sum(map(len, runs.values()))} runs")
        table(["blow", "kill", "stop"], [[kind, self.blows[kind, "SIGKILL"], self.blows[kind, "SIGSTOP"]]
                                         for kind in VICTIMS])
        table(["runs of a job that does not crash", "jobs"], sorted(again.items()))
        say(f"runs that were cut off: {sum(cut.values())}; {sum(beside.values())} of them beside a job that crashed, "
            f"of {len(beside)} jobs; side effects that happened once more: {sum(again[n] * (n - 1) for n in again)}")
        say(f"dead: {len(dead)}; the queue counts " +
            " ".join(f"{name}={stats[name]}" for name in ("done", "dead", "lost", "crashed", "failed") if name in stats))
        self.takeovers(runs)
        self.waits(runs)
        bad = overlaps(runs)
        require(not bad, f"{len(bad)} times two runs of a job at once: {bad[:3]}")
        lost = [job for job in self.kinds if job not in dead and not any(run.ended for run in runs.get(job, ()))]
        require(not lost, f"{len(lost)} jobs were lost: {lost[:3]}")
        require(stats["done"] + len(dead) == len(self.kinds), f"{len(self.kinds)} jobs, but {stats['done']} are done "
                f"and {len(dead)} dead")
        self.judge_dead(dead, crashers, beside, runs)
        self.judge_beside(runs, beside)
        counted = [run for own in runs.values() for run in own if run.attempt != 1]
        require(not counted, f"an attempt was counted: {counted[:3]}")
        require(not unordered_fences(runs), f"the fence did not rise: {unordered_fences(runs)[:3]}")
        return len(self.kinds)

    def beside(self, runs, crashers):
        """job -> how many of its runs ended with the process that another job crashed. A run of such a job that was
        cut off by a blow has not crashed its process."""
        ends = [(run.pid, run.last) for job in crashers for run in runs.get(job, ()) if not self.was_struck(run)]
        found = collections.Counter()
        for job, own in runs.items():
            if job not in crashers:
                found[job] = sum(any(pid == run.pid and run.start <= ns and abs(run.last - ns) < 1e9 for pid, ns in ends)
                                 for run in own if not run.ended)
        return +found

    def judge_beside(self, runs, beside):
        """After the first time a job runs alone, unless the worker was struck before it could tell that the process
        has crashed, or its minder may have asked the process to end. Then the second time is the last."""
        twice = [job for job, n in beside.items() if n > 1]
        say(f"jobs that ran twice beside one that crashed, because the worker was struck at the same time: {len(twice)}")
        wrong = [job for job in twice if beside[job] > 2 or not any(
            -1e9 < run.last - ns < 2 * LEASE_MS * 1e6 for run in runs[job] for ns in self.worker_blows) and not any(
            0 < run.last - ns < STOPPED_LEASES * LEASE_MS * 1e6 + OBEYS_NS for run in runs[job]
            for ns in self.struck.get(run.pid, ()))]
        require(not wrong, f"{len(wrong)} jobs ran twice beside one that crashed: {[runs[job] for job in wrong[:2]]}")

    def was_struck(self, run):
        return any(abs(ns - run.last) < 2 * LEASE_MS * 1e6 for ns in self.struck.get(run.pid, ()))

    def judge_dead(self, dead, crashers, beside, runs):
        """A job that does not crash may die of three blows, also of its worker before it has started. One of the
        deaths may be that of a process which another job crashed."""
        require(crashers <= set(dead), f"jobs that crash their process are not dead: {list(crashers - set(dead))[:3]}")
        silent = [job for job, entry in dead.items() if not entry["error"]]
        require(not silent, f"jobs are dead without a reason: {silent[:3]}")
        wrong = []
        for job in set(dead) - crashers:
            cut = [run for run in runs.get(job, ()) if not run.ended]
            unbegun = max(0, 3 - len(cut))  # the process, or the worker, was struck before the handler wrote its note
            died = dead[job]["error"].count("its process died") - unbegun
            struck = sum(self.was_struck(run) for run in cut)
            say(f"  {job} died of 3 blows, {beside[job]} of them beside a job that crashed: {dead[job]['error']}")
            if died > struck + beside[job]:
                wrong.append((dead[job]["error"], runs[job]))
        require(not wrong, f"{len(wrong)} jobs were buried for others: {wrong[:2]}")

    def waits(self, runs):
        rows = []
        for kind in self.rates:
            waits = [(runs[job][0].start - ns) / 1e6 for job, ns in self.put_ns.items()
                     if self.kinds[job] == kind and job in runs]
            require(waits, f"no job of type {kind} has run")
            rows.append([kind, len(waits)] + [f"{percentile(waits, p):.0f}" for p in (50, 99, 100)])
        table(["type", "jobs", "ms to the first run: p50", "p99", "most"], rows)

    def takeovers(self, runs):
        gaps = [(other.start - one.last) / 1e6 for own in runs.values() for one, other in zip(own, own[1:])
                if not one.ended]
        if gaps:
            say(f"from the last sign of life to the next run, ms: least {min(gaps):.0f}, p50 {percentile(gaps, 50):.0f}, "
                f"most {max(gaps):.0f} (a sign each {BEAT_MS} ms)")
