"""What producers, workers and commands do to a queue, at random: for 80-model. They know only what they
were answered; an answer may be lost, and then they do what the library does."""
import collections
import json

from model_answers import CANCEL, LATE, OK
from queue_model import Queue
from schedule_play import IDS, SchedulePlay

FEATURES = ("levels", "limits", "poison", "numbered", "big", "bounds", "results", "expiry", "unique", "told",
            "on_dead", "schedules", "steps", "twins")
OPTIONS = {"priority", "start_within", "expired", "unique", "on_dead"}
AGE, DEAD_MAX = 15552000000, 10000


class Run:
    """A job as its holder knows it."""

    def __init__(self, id, fence, due, key):
        self.id, self.fence, self.due, self.key = id, fence, due, key
        self.printed = 0  # bytes


class Machine:
    """Its boot clock is this much ahead of the true time."""

    def __init__(self, name, ahead):
        self.name, self.ahead = name, ahead


class Worker:
    """A worker as it sees itself: which runs it has, which claim was not answered, which schedules its file
    has, and whether it has told Redis of them; what it has read of the queue's clock, as it shows that."""

    def __init__(self, name, lease, machine):
        self.name, self.lease, self.number, self.machine = name, lease, 0, machine
        self.readings = []
        self.runs, self.unanswered = {}, None
        self.file, self.has_put = None, False


class Producer:
    def __init__(self, name):
        self.name, self.number, self.unanswered = name, 0, []


class Play(SchedulePlay):
    """One run of 80-model. harness: request(script, words), set_time(ms), now."""

    def __init__(self, random, harness):
        self.random, self.harness = random, harness
        self.model = Queue(harness.now)
        self.features = {name for name in FEATURES if random.random() < 0.5}
        self.names = [f"job-{k:02}" for k in range(random.choice((4, 12, 40)))]
        self.ever = {*self.names, *IDS}
        self.made, self.payloads, self.slices, self.born = 0, 0, 0, 0
        self.pace = random.choice((20, 200, 2000, 600000))
        lengths = {20: (40, 120, 200, 400), 200: (400, 1200, 2000, 4000), 2000: (600, 2000, 3000, 10000),
                   600000: (1000, 60000, 3600000, 7200000)}
        self.lengths = random.sample(lengths[self.pace], random.choice((1, 1, 2, 3)))  # of leases
        self.unheard, self.booted = [], 0
        self.machines = [self.machine() for _ in range(random.choice((1, 2, 3)))]
        if "twins" in self.features:  # two machines that were made of one image have one name
            self.machines.append(Machine(self.machines[0].name, self.ahead()))
        self.workers = [self.worker() for _ in range(random.choice((1, 2, 4)))]
        self.producers = [Producer(f"producer-{k}") for k in range(2)]
        self.poison = random.choice((1, 2, 3, 5)) if "poison" in self.features else 3
        self.earlier = collections.deque(maxlen=40)
        self.begin_schedules()
        self.actions = self.weighted()

    def weighted(self):
        weights = {
            self.enqueue: 22, self.claim: 18, self.verdicts: 26, self.renew: 6, self.die: 1.5,
            self.again: 6, self.pass_time: 14, self.cancel: 4, self.delete: 2, self.requeue: 3,
            self.purge: 0.7, self.pause: 0.8, self.check: 2, self.stats: 1.5, self.show: 2,
            self.list: 0.7, self.edit: 2, self.read: 8, self.read_often: 0.3, self.reboot: 0.2,
            self.limits: 1 if "limits" in self.features else 0,
            self.on_dead: 1 if "on_dead" in self.features else 0,
            self.many_runs: 0.2 if "told" in self.features else 0,
            self.logs: 1.5 if "told" in self.features else 0.1,
            self.step_back: 0.3 if "steps" in self.features else 0,
            self.step_forward: 0.3 if "steps" in self.features else 0, **self.schedule_actions(),
        }
        for action in weights:
            weights[action] *= self.random.uniform(0.5, 1.5)
        return list(weights), list(weights.values())

    # ---- the harness calls ----

    def begin(self):
        for worker in self.workers:
            self.check(worker)

    def step(self):
        if self.model.paused and self.chance(0.05):
            self.send("pause", 0, 0)
        actions, weights = self.actions
        self.random.choices(actions, weights)[0]()

    def drain(self):
        """All that is there comes to an end, by every exit."""
        self.send("pause", 0, 0)
        self.send("limits", 0, "", "max_running", 0, "rate_limit", 0, "rate_per", 0)
        self.stop_schedules()
        for state in "delayed", "dead", "done":
            if self.chance(0.3):
                self.purge(state, 1000)
        worker = self.born_worker(8000, self.machine())
        for _ in range(300):
            self.pass_time(self.random.choice((10000, 400000)))
            if not self.model.within("schedule") and not self.model.within("running"):
                dead = [job.id for job in self.model.within("dead")]
                if not dead:
                    break
                self.send("delete", 0, 0, *dead[:1000])
            self.check(worker)
            if self.chance(0.2):
                waiting = [job.id for job in self.model.waiting()][:200]
                self.send("requeue", 0, 0, 0, 0, 0, *waiting)
            self.claim(worker, 1000, lost=False)
            while worker.runs and self.chance(0.9):
                self.verdicts(worker, ending=True)
            worker.runs.clear()
            self.check(worker)
        self.end_schedules()
        self.pass_time(10 * 86400000)  # what was to end before the clock was set back ends, too
        self.check(worker)

    # ---- words ----

    @property
    def now(self):
        return self.harness.now

    @property
    def true_time(self):
        return self.model.leases.world

    def chance(self, p):
        return self.random.random() < p

    def id(self):
        """Of a job that is there, or was."""
        if self.made_jobs and self.chance(0.3):
            return self.random.choice(self.made_jobs)
        return self.name()

    def name(self):
        return self.random.choice(self.names) + (".dead" if self.chance(0.05) else "")

    def ids(self, most):
        names = [*self.names, *self.made_jobs]
        return self.random.sample(names, min(len(names), self.random.randint(1, most)))

    def not_after(self):
        """Mostly in time."""
        return self.random.choice((0, 0, 0, self.now, self.now + 5000, self.now + 5000))

    def worker(self, machine=None):
        self.born += 1
        return Worker(f"host-{self.born}-00c0ffee00c0ffee", self.random.choice(self.lengths),
                      machine or self.random.choice(self.machines))

    def born_worker(self, lease, machine):
        worker = self.worker(machine)
        worker.lease = lease
        self.workers.append(worker)
        return worker

    def machine(self):
        self.booted += 1
        return Machine(f"boot-{self.booted}", self.ahead())

    def ahead(self):
        return self.random.choice((0, 5000, 86400000, 3000000000)) + self.random.randint(0, 1000) - self.true_time

    def boot(self, worker):
        return max(0, self.true_time + worker.machine.ahead)

    def bounds(self):
        """Of the dead: jobs, and ms."""
        if "bounds" not in self.features:
            return DEAD_MAX, AGE
        return self.random.choice((1, 3, 10)), self.random.choice((5000, 60000, AGE))

    def any_worker(self):
        return self.random.choice(self.workers)

    # ---- sending: once, twice, late, long after ----

    def send(self, script, *words):
        request = script, [str(word) for word in words]
        answer = self.harness.request(*request)
        if self.chance(0.04):
            self.harness.request(*request)
        self.earlier.append(request)
        return answer

    def again(self):
        """A request that was sent before arrives once more, or only now; or with its time over."""
        if not self.earlier:
            return
        script, words = self.random.choice(self.earlier)
        words = list(words)
        if script == "renew" and any(self.model.leases.is_followed(words[0], *words[k:k + 2])
                                     for k in range(5, len(words) - int(words[4]), 2)):
            return
        if script in ("cron_put", "cron_change"):
            self.pass_time(1)
        if script == "cron_change" and not self.is_last_run(words):
            return
        at = {"complete": 2, "retry": 2, "release": 2, "bury": 2, "keep": 2, "crash": 2}.get(script)
        if at and self.chance(0.7):
            words[at] = "1000" + words[at][1:]  # the holder knows that it sent them before
        if script == "claim" and words[6] == "" and self.chance(0.5):
            words[6] = "b"
        answer = self.harness.request(script, words)
        if script == "claim":
            self.lost_claim(words[0], words[1], answer)

    def lost_claim(self, name, number, answer):
        """A claim that was sent by an earlier connection: its worker does not hear the answer."""
        for worker in self.workers:
            if worker.name == name and answer[0] == OK and len(answer) > 7:
                worker.unanswered = number

    def pass_time(self, ms=None):
        if ms is None:
            ms = self.random.choice((1, self.pace, self.pace, 10 * self.pace)) * self.random.random()
            if self.chance(0.01):
                ms = self.random.choice((70000, 600000, 7200000, 15000000))
        self.set_time(self.now + int(ms) + 1)
        self.model.leases.world += int(ms) + 1
        unheard, self.unheard = self.unheard, []
        for worker, *answer in unheard:
            self.note(worker, *answer)

    def set_time(self, ms):
        self.harness.set_time(ms)
        self.model.now = self.now

    def step_forward(self):
        """Redis's clock is set forward: locks end, and leases do not."""
        self.set_time(self.now + self.random.choice((1, 30, 1000, self.pace, 20 * self.pace, 3000000, 90000000)))

    def step_back(self):
        """Redis's clock is set back. A worker sees what was ready, and sees the step."""
        if any(taken.vague for taken in self.model.unique.taken.values()):
            return
        worker = self.any_worker()
        ms = self.random.choice((1, 60, 160, self.pace, 20 * self.pace, 6000000, 18000000))
        self.says_it_lives(worker)
        before, high = self.now, self.model.schedules.high
        self.model.forget_the_past()
        self.harness.set_back(ms)
        self.model.now = self.now
        self.says_it_lives(worker)
        self.harness.compare_dues(before)
        if self.model.schedules.high < high:  # all is reckoned anew
            self.decided.clear()
        self.earlier.clear()  # no client sends them again after so long

    # ---- producers ----

    def head(self):
        head = self.plain_head()
        if self.chance(0.3):
            head["created"] = self.now - self.random.randint(0, 1000)
        if "unique" in self.features and self.chance(0.6):
            unique = self.unique()
            head = {**unique, **head} if self.chance(0.5) else {**head, **unique}
        return head

    def plain_head(self):
        """Of a job, or of the jobs of a schedule."""
        head = {"type": self.random.choice(("mail", "report"))}
        if self.chance(0.2):
            head["max_attempts"] = self.random.randint(1, 9)
        if "levels" in self.features and self.chance(0.6):
            head["priority"] = self.random.choice(("high", "low"))
        if "expiry" in self.features and self.chance(0.5):
            head["start_within"] = self.random.choice((1, self.pace, 5 * self.pace, 3600000))
            if self.chance(0.3):
                head["expired"] = "dead"
        if "on_dead" in self.features and self.chance(0.3):
            head["on_dead"] = "report"
        return head

    def unique(self):
        """A key, and one of the ways in which jobs may share it."""
        head = {"unique": self.random.choice(("key", "another key", "a third", "ключ"))}
        some = self.random.choice((1, self.pace, 10 * self.pace, 600000))
        way = self.random.choice(("plain", "plain", "for", "debounce", "throttle"))
        if way == "debounce":  # with a key of its own: other jobs with it would start its time anew
            return {"unique": "events", "debounce": some, "max_wait": 3 * some}
        if way == "throttle":
            return {**head, "throttle": some, **({"on_conflict": "next"} if self.chance(0.5) else {})}
        if way == "for":
            head["unique_for"] = some
        if self.chance(0.5):
            head["unique_until"] = self.random.choice(("start", "done"))
        if self.chance(0.7):
            head["on_conflict"] = self.random.choice(("replace", "next", "cancel"))
        return head

    def payload(self):
        self.payloads += 1
        size = 9000 if "big" in self.features and self.chance(0.02) else 0
        return f"payload {self.payloads}\n" + "x" * size

    def due(self):
        far = self.random.choice((1, 10, 100)) * self.pace
        return self.random.choice((0, 0, 0, -self.random.randint(0, far),
                                   self.now + self.random.randint(-far, far)))

    def enqueue(self):
        n = self.random.choice((1, 1, 1, 2, 5, 40 if len(self.names) > 12 else 3))
        made = self.chance(0.15)
        jobs, optional = [], False
        for _ in range(n):
            head = self.head()
            optional = optional or OPTIONS & head.keys()
            line = json.dumps(head, separators=(",", ":"), ensure_ascii=False)
            jobs += [self.new_id(made), self.due(), line + "\n" + self.payload()]
        script = "enqueue_with" if optional or self.chance(0.1) else "enqueue"
        producer, number, remember = "", 0, 0
        if "numbered" in self.features and self.chance(0.7):
            who = self.random.choice(self.producers)
            who.number += self.random.choice((1, 1, 1, 2, 40))
            producer, number, remember = who.name, who.number, self.random.choice((1000, 60000))
        waited = self.random.choice((0, 0, self.random.randint(0, 50)))
        self.send(script, producer, number, self.not_after(), remember, waited, *jobs,
                  *self.random.choice(((["n"], ["N"]) if made else ([], ["C"], ["-"]))))

    def new_id(self, made):
        if not made or self.chance(0.03):
            return self.name()
        self.made += 1
        name = f"made-{self.made:06}"
        self.names[self.random.randrange(len(self.names))] = name
        self.ever.add(name)
        return name

    # ---- workers ----

    def claim(self, worker=None, most=None, lost=None):
        worker = worker or self.any_worker()
        if worker.unanswered is not None:
            self.send("unclaim", worker.name, worker.unanswered)
            worker.unanswered = None
        worker.number += 1
        most = most or self.random.choice((1, 2, 3, 10, 100))
        baton = self.random.choice(("", "", "", "due", "doubted"))
        dead_max, dead_age = self.bounds()
        answer = self.send("claim", worker.name, worker.number, most, worker.lease, self.not_after(),
                           worker.lease + 15000, baton, self.random.choice((most, 1, 3, 100)),
                           f"{0 if self.chance(0.1) else self.poison} {dead_max} {dead_age}")
        if self.chance(0.05) if lost is None else lost:
            worker.unanswered = worker.number
        elif answer[0] == OK:
            claimed = self.model.claims.get(worker.name) if len(answer) > 7 else None
            for id, due in claimed.jobs if claimed else ():
                worker.runs[id] = Run(id, claimed.fence, due, self.model.jobs[id].head.get("unique"))
            if answer[4].ticks:
                self.told_of_ticks(answer[4].ticks)

    def some_runs(self, worker):
        runs = list(worker.runs.values())
        return self.random.sample(runs, self.random.randint(1, min(len(runs), 6))) if runs else []

    def verdicts(self, worker=None, ending=False):
        worker = worker or self.any_worker()
        runs = self.some_runs(worker)
        if not runs:
            return
        done = self.keep if "results" in self.features and self.chance(0.6) else self.complete
        kinds = (done, done, done, self.bury) if ending else (
            done, done, self.retry, self.release, self.bury, self.crash)
        answer = self.random.choice(kinds)(worker, runs)
        if answer[0] != LATE:
            for run in runs:
                if not self.chance(0.02):  # it forgets, and goes on
                    worker.runs.pop(run.id, None)

    def complete(self, worker, runs):
        by_fence = collections.defaultdict(list)
        for run in runs:
            by_fence[run.fence].append(run)
        words = [word for fence, runs in by_fence.items() for word in (fence, len(runs))]
        runs = [run for runs in by_fence.values() for run in runs]
        keys = [run.key or "" for run in runs] if any(run.key for run in runs) else []
        return self.send("complete", worker.name, self.not_after(), "0 leaving" if keys else 0, len(by_fence), *words,
                         *(run.id for run in runs), *keys)

    def keep(self, worker, runs):
        words = []
        for run in runs:
            self.payloads += 1
            line = json.dumps({"type": "mail", "ran": self.payloads})
            keep = self.random.choice((0, self.pace, 10 * self.pace, 3600000))
            words += [run.id, run.fence, keep, line + "\n" + "r" * self.random.choice((0, 5, 50))]
        return self.send("keep", worker.name, self.not_after(), 0, self.random.choice((1, 5, 10000)),
                         self.random.choice((100, 1000, 67108864)), *words)

    def retry(self, worker, runs):
        words = [word for run in runs for word in (run.id, run.fence, self.delay(), self.error(),
                                                   self.random.randint(-1, self.pace), self.random.randint(0, 1))]
        return self.send("retry", worker.name, self.not_after(), 0, *words)

    def release(self, worker, runs):
        words = []
        for run in runs:
            how = self.random.choice(("unstarted", "unstarted", "started", "started", "later", "cancelled", "neighbour", "down"))
            error = self.error() if self.chance(0.3) else ""
            due = self.delay() if how in ("later", "down") or error and how != "neighbour" else int(run.due)
            words += [run.id, run.fence, due, how, error if how != "cancelled" else ""]
        return self.send("release", worker.name, self.not_after(), 0, *words)

    def bury(self, worker, runs):
        reasons = ("attempts", "handler", "type")
        words = [word for run in runs for word in (run.id, run.fence, self.random.randint(0, 1),
                                                   self.random.choice(reasons), self.error(),
                                                   self.random.randint(0, self.pace))]
        return self.send("bury", worker.name, self.not_after(), 0, *self.bounds(), *words)

    def crash(self, worker, runs):
        words = [word for run in runs for word in (run.id, run.fence, int(run.due), self.error())]
        return self.send("crash", worker.name, self.not_after(), 0, *self.bounds(),
                         self.random.choice((2, 3, 3, 5)), *words)

    def delay(self):
        return self.random.choice((0, 1, self.random.randint(0, 10 * self.pace), -5))

    def error(self):
        return self.random.choice(("it broke", "no such \"thing\"", "zu früh", "x"))

    def renew(self):
        worker = self.any_worker()
        runs = self.some_runs(worker)
        for _ in range(self.random.choice((1, 1, 3)) if runs else 0):
            self.renew_runs(worker, [run for run in runs if run.id in worker.runs])

    def renew_runs(self, worker, runs, told=None):
        """A worker believes in a lease by its own clock, and not when it was found to be over."""
        runs = [run for run in runs if not self.model.leases.is_followed(worker.name, run.id, run.fence)]
        if told is None:
            told = self.told(runs) if runs and "told" in self.features else []
        named = [word for run in runs for word in (run.id, run.fence)]
        answer = self.send("renew", worker.name, worker.lease, self.not_after(), worker.lease + 15000,
                           len(told), *named, *told)
        if answer[0] == OK and len(answer) > 2:
            for run, code in zip(runs, answer[2]):
                if code not in (OK, CANCEL) and self.chance(0.8):
                    worker.runs.pop(run.id, None)

    def told(self, runs):
        """What the worker tells about its runs: a progress, a checkpoint, lines."""
        words = []
        for place, run in enumerate(runs, 1):
            if self.chance(0.4):
                words += [place, "progress", f"{self.random.randint(0, 100)} {self.error()}"]
            if self.chance(0.4):
                text = self.random.choice(("", "step 1", "step 2", f"step {self.payloads}"))
                words += [place, "checkpoint", f"{self.random.randint(1, 9)} {text}"]
            if self.chance(0.4):
                words += [place, "log", self.lines(run)]
        return words

    def lines(self, run):
        """What a run has printed since; a part is sent again, or was lost."""
        self.payloads += 1
        size = self.random.choice((30000, 70000)) if "big" in self.features and self.chance(0.1) else 0
        text = f"line {self.payloads}\n" + "y" * size
        start = max(0, run.printed + self.random.choice((0, 0, 0, -3, -20, 7)))
        run.printed = max(run.printed, start + len(text))
        return f"{self.random.randint(1, 3)} {start} {text}"

    def many_runs(self):
        """A job that is given back again and again, and prints each time: it becomes the first one that
        waits."""
        worker = self.any_worker()
        for _ in range(13):
            run = next(iter(worker.runs.values()), None)
            if not run:
                break
            self.renew_runs(worker, [run], [1, "log", self.lines(run)])
            self.send("release", worker.name, 0, 0, run.id, run.fence, 1, "started", "")
            worker.runs.pop(run.id, None)
            self.claim(worker, 1, lost=False)
            if run.id in worker.runs:
                worker.runs = {run.id: worker.runs[run.id], **worker.runs}

    def die(self):
        """A worker is killed, and another one starts."""
        self.workers[self.random.randrange(len(self.workers))] = self.worker()

    # ---- reading the clock of the queue ----

    def check(self, worker=None):
        if self.says_it_lives(worker or self.any_worker())[5] == [1]:
            self.told_of_ticks()

    def says_it_lives(self, worker):
        answer = self.send("check", worker.name, worker.lease + 15000, 0, worker.lease, worker.machine.name,
                           self.boot(worker), self.shown(worker))
        self.hear(worker, answer[7][0])
        return answer

    def read(self, worker=None):
        worker = worker or self.any_worker()
        answer = self.send("read", worker.machine.name, self.boot(worker), self.shown(worker))
        self.hear(worker, answer[2])

    def read_often(self):
        """While a lease lasts, so that more is read than is kept."""
        worker = self.any_worker()
        for _ in range(50):
            self.read(worker)
            self.pass_time(self.random.uniform(0.02, 0.1) * min(self.lengths))

    def hear(self, worker, reading):
        """The answer may be lost, or come later."""
        if reading[0] and self.chance(0.9):
            self.note(worker, reading, self.now)
        elif reading[0] and self.chance(0.7):
            self.unheard.append((worker, reading, self.now))

    def note(self, worker, reading, redis):
        clock, number, _ = reading
        worker.readings.append(f"{number}:{clock}:{self.boot(worker)}:{redis}")

    def shown(self, worker):
        """What it has read last; or before, or nothing, or what was read of another clock."""
        if not worker.readings or self.chance(0.04):
            return self.random.choice(("", "1:2:3:4", "1:2:3", "1:2:3:4:5", "x"))
        if self.chance(0.03):
            return str(int(worker.readings[-1][0]) + 1) + worker.readings[-1][1:]
        return self.random.choice(worker.readings) if self.chance(0.08) else worker.readings[-1]

    def reboot(self):
        """A machine starts again, mostly under another name."""
        k = self.random.randrange(len(self.machines))
        before, self.machines[k] = self.machines[k], self.machine()
        if self.chance(0.2):
            self.machines[k] = Machine(before.name, min(before.ahead, -self.true_time))
        for k, worker in enumerate(self.workers):
            if worker.machine is before:
                self.workers[k] = self.worker()

    # ---- commands ----

    def cancel(self):
        self.send("cancel", self.not_after(), self.id())

    def delete(self):
        died = self.random.choice((0, 0, self.now, self.now - self.pace))
        self.send("delete", self.not_after(), died, *self.ids(4))

    def requeue(self):
        died = self.random.choice((0, 0, self.now, self.now - self.pace))
        first = self.random.choice((0, 0, self.now + self.pace))
        self.send("requeue", self.not_after(), died, first, self.random.choice((0, 0, 1, 50)),
                  self.random.randint(0, 3), *self.ids(5))

    def purge(self, state=None, most=None):
        self.slices += self.random.choice((0, 1, 1))
        state = state or self.random.choice(("ready", "delayed", "dead", "done", "parked"))
        before = self.now - self.random.choice((0, self.pace))
        most = most or self.random.choice((1, 5, 1000))
        self.send("purge", self.not_after(), state, before, most, f"slice-{self.slices}")

    def pause(self):
        self.send("pause", self.not_after(), self.random.randint(0, 1))

    def limits(self):
        rate = self.random.choice(((), (0, 0), (60, 3840), (4, 64), (15, 960), (3, 192)))
        most = self.random.choice(((), (0,), (1,), (3,), (20,)))
        limits = [*zip(("max_running",), most), *zip(("rate_limit", "rate_per"), rate)]
        self.send("limits", self.not_after(), "", *(word for limit in limits for word in limit))

    def on_dead(self):
        types = self.random.choice(("", '{"*":"report"}', '{"mail":"told","report":false}',
                                    '{"*":"told","mail":false}', '{"*":"mail","mail":"report"}'))
        self.send("on_dead", self.not_after(), types)

    def edit(self):
        due = self.random.choice(("", "", self.due()))
        priorities = ("", "", "high", "normal", "low") if "levels" in self.features else ("",)
        self.send("edit", self.not_after(), self.id(), due, self.random.choice(priorities),
                  *self.random.choice(((0, ""), (1, self.payload()))))

    def stats(self):
        self.send("stats")

    def logs(self):
        """Of a job, or of one that ended a moment ago."""
        self.model.last_lines.forget(self.now)
        ended = list(self.model.last_lines.ended)
        id = self.random.choice(ended) if ended and self.chance(0.5) else self.id()
        job = self.model.jobs.get(id)
        fence = self.random.choice([0, *(job.logs.runs if job else ())])
        self.send("logs", id, fence, self.random.choice((0, 0, self.random.randint(0, 100))))

    def show(self):
        self.send("job", self.id(), self.random.randint(0, 1), 0, 0)

    def list(self):
        state = self.random.choice(("ready", "delayed", "retry", "running", "dead", "done", "parked"))
        self.send("list", state, "", 1000, "")
