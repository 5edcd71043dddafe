"""What a queue does, by its rules alone: one class for each concept, each rule in one place. It was
written from docs/keys.md, docs/jobs.md and docs/diagnose.md, without the scripts. It knows no Redis:
time is a number, and each script is a method of Queue that gets the arguments of the script, as texts,
and returns the answer that Redis must give. What the documents leave open is ANY in an answer.
"""
import json
import operator

from model_answers import (ANY, CANCEL, EXISTS, GONE, IS_DEAD, LATE, LOST, OK, PARKED, RUNS, TAKEN, AtMost,
                           Dues, More, OneOf, Page, Record, Starts)
from lease_model import Leases
from schedule_model import Schedules

DELAY_MAX, MINUTE = 3155760000000, 60000
ORDER = operator.attrgetter("score", "id")  # of the jobs in a set of Redis


# ---- what a queue consists of ---------------------------------------------------------


class Job:
    """An accepted job. place: `schedule`, `running` or `dead`; score: when it is due, when its lease
    ends by the queue's clock (0: it is over), when it died. token: of the lock; run: the last one; held_until:
    the true end of its lease. crashes (None: it was not taken over), cancel: the marks beside it."""

    def __init__(self, id, head, payload, due):
        self.id, self.head, self.payload = id, head, payload
        self.place, self.score, self.token, self.run, self.held_until = "schedule", due, None, None, 0
        self.crashes, self.cancel = None, None
        self.progress, self.checkpoint, self.logs = None, None, Logs()
        self.first = 0  # when the first of the jobs was accepted that a debounce has put together

    @property
    def level(self):
        return {"high": 0, "low": 2}.get(self.head.get("priority"), 1)

    @property
    def size(self):
        return ANY if self.payload is None else len(self.payload)

    def record(self):
        return Record(self.head, self.payload)


class Expiry:
    """A job that has not started within its time is gone, or dead. `start_by` of its record is the time
    from which it may not start; it goes when the job may have started."""

    @staticmethod
    def begin(job, due, now):
        job.head.pop("start_by", None)
        Expiry.extend(job, max(due, now))

    @staticmethod
    def extend(job, first_due):
        """Of a parked job: its time only becomes longer."""
        if job.head.get("start_within"):
            job.head["start_by"] = max(job.head.get("start_by", 0), first_due + job.head["start_within"])

    @staticmethod
    def started(job):
        job.head.pop("start_by", None)

    @staticmethod
    def is_over(job, now):
        return job.place in ("schedule", "parked") and job.head.get("start_by", now + 1) <= now


class Taken:
    """A unique key that is taken: by which job; until its end, its start, or until it is done; in any case
    until the end of the window. `parked`: the job that follows."""

    def __init__(self, holder, head, start):
        self.holder, self.parked = holder, None
        self.gone = False  # the window is left; another job may have the holder's id meanwhile
        self.use(head, start)

    def use(self, head, start):
        length = UniqueKeys.length(head)
        self.until = "start" if "debounce" in head else head.get("unique_until", "end")
        self.window = start + length if length else 0
        self.vague = False  # its window is over, and Redis may have forgotten it or not


class UniqueKeys:
    """At most one job holds a key, and one is parked behind it. What takes, frees and follows."""

    def __init__(self, queue):
        self.queue, self.taken = queue, {}

    def holder(self, key):
        """What is known of a key that is taken, and the state of its holder; GONE: only the window is
        left."""
        taken = self.taken.get(key)
        if taken and not taken.gone:
            self.queue.expire(self.queue.jobs.get(taken.parked))
            self.queue.expire(self.queue.jobs.get(taken.holder))
            taken = self.taken.get(key)
        state = self.state(taken) if taken else None
        return (taken, state) if state else (None, None)

    def state(self, taken):
        job = self.queue.jobs.get(taken.holder) if not taken.gone else None
        place = job.place if job else None
        if place == "schedule":
            return EXISTS
        if place == "running" and taken.until != "start":
            return RUNS
        if place == "dead" and taken.until == "done":
            return IS_DEAD
        return GONE if taken.window > self.queue.now else None

    @staticmethod
    def length(head):
        return head.get("throttle") or head.get("unique_for")

    @staticmethod
    def mode(head):
        return "replace" if "debounce" in head else head.get("on_conflict", "skip")

    def due(self, head, due, first):
        if "debounce" in head:
            return min(self.queue.now + head["debounce"], first + head["max_wait"])
        return due

    def meet(self, job):
        """A new job with a key: what the answer says of the job that it met, (how, id, state). It is left
        as it is if it takes the key, and else parked, or dropped."""
        now, head, key = self.queue.now, job.head, job.head["unique"]
        mode, (taken, state) = self.mode(head), self.holder(key)
        if job.id in self.queue.jobs:
            return TAKEN
        if taken and mode == "skip":
            return "skipped", taken.holder, state
        if state == EXISTS and mode == "replace":
            self.replace(taken, job)
            return "replaced", taken.holder, EXISTS
        if taken and state != GONE:
            return self.park(taken, state, mode, job)
        length, start = self.length(head), taken.window if taken else now
        if taken and length:
            start = min(start, now + length)  # no job waits for longer than its own window
        job.score = max(self.due(head, job.score, now), start if taken else 0)
        self.taken[key] = Taken(job.id, head, start)
        job.first = now if "debounce" in head else 0
        return None

    def replace(self, taken, job):
        """The holder that waits keeps its id, and is otherwise the new job."""
        holder = self.queue.jobs[taken.holder]
        first = min(holder.first or self.queue.now, self.queue.now)
        holder.head, holder.payload, holder.crashes = job.head, job.payload, None
        holder.checkpoint, holder.logs = None, Logs()
        due = self.due(job.head, job.score, first)
        Expiry.begin(holder, due, self.queue.now)
        self.queue.wait(holder, due)
        taken.use(job.head, self.queue.now)
        if taken.parked:  # it waits for this window, too
            parked = self.queue.jobs[taken.parked]
            Expiry.extend(parked, max(parked.score, taken.window))
        holder.first = first if "debounce" in job.head else 0

    def park(self, taken, state, mode, job):
        """It follows the holder; there is at most one such job, and a later one replaces its payload."""
        parked, now = self.queue.jobs.get(taken.parked), self.queue.now
        first = min(parked and parked.first or now, now)
        job.first = first if "debounce" in job.head else 0
        job.score = self.due(job.head, job.score, first)
        if mode == "cancel" and state == RUNS:
            self.queue.ask_to_cancel(self.queue.jobs[taken.holder])
        if parked:
            parked.head, parked.payload, parked.score = job.head, job.payload, job.score
            parked.first = job.first
            Expiry.begin(parked, max(parked.score, taken.window), now)
            return "replaced", parked.id, PARKED
        job.place, taken.parked = "parked", job.id
        Expiry.begin(job, max(job.score, taken.window), now)
        return "parked", taken.holder, state

    def free(self, key, voids):
        """The holder does not hold it any more. voids: the window ends as well."""
        taken = self.taken[key]
        window = 0 if voids or taken.window <= self.queue.now else taken.window
        if taken.parked:
            self.unpark(key, window)
        elif not window:
            del self.taken[key]
        else:
            taken.gone = True

    def unpark(self, key, least):
        """The parked job takes the key, and waits; never before its due."""
        taken, now = self.taken[key], self.queue.now
        job, start = self.queue.jobs[taken.parked], max(now, least)
        if not Expiry.is_over(job, now):
            Expiry.extend(job, max(job.score, least))
        self.queue.wait(job, max(job.score, start))
        self.taken[key] = Taken(job.id, job.head, start)

    def left(self, job, how):
        """A job ends; a dead one keeps its key if it is held until it is done."""
        key = job.head.get("unique")
        taken = self.taken.get(key)
        if taken and taken.parked == job.id:
            taken.parked = None
        elif taken and taken.holder == job.id and (how != "dead" or taken.until != "done"):
            self.free(key, how in ("cancelled", "deleted", "purged"))

    def started(self, job):
        job.first = 0  # the next event is of another job
        taken = self.taken.get(job.head.get("unique"))
        if taken and taken.holder == job.id and taken.until == "start":
            self.free(job.head["unique"], False)

    def hold_on(self, taken):
        """Its holder was gone, and is back. A window that ended meanwhile may have been forgotten, or not."""
        taken.vague = taken.gone and taken.window <= self.queue.now
        taken.gone = False

    def waits_again(self, job):
        """After a run: a job that follows takes its place; a key that was freed at the start is taken
        again, if it is free."""
        key, job.first = job.head.get("unique"), 0
        taken = self.taken.get(key)
        if key and taken and taken.holder == job.id:
            self.hold_on(taken)
            self.queue.expire(self.queue.jobs.get(taken.parked))
            if taken.parked:
                self.unpark(key, max(job.score, taken.window))
                self.queue.leave(job, "replaced")
        elif key and job.head.get("unique_until") == "start" or "debounce" in job.head:
            if not self.holder(key)[0]:
                self.taken[key] = Taken(job.id, {**job.head, "throttle": 0, "unique_for": 0}, 0)

    def take_again(self, job):
        """A dead job that is requeued: whether it has its key."""
        key, job.first = job.head.get("unique"), 0
        taken, _ = self.holder(key) if key else (None, None)
        if key and not taken:
            self.taken[key] = Taken(job.id, {**job.head, "throttle": 0, "unique_for": 0}, 0)
        if taken and taken.holder == job.id:
            self.hold_on(taken)
        return not taken or taken.holder == job.id


class Checkpoint:
    """What a run left for the next one. A later one of the same run has a higher number. at_crash: the
    checkpoint when a holder died last."""

    def __init__(self, fence, number, text, at_crash=None):
        self.fence, self.number, self.text, self.at_crash = fence, number, text, at_crash

    @staticmethod
    def tell(job, fence, number, text):
        before = job.checkpoint
        if before and before.fence == fence and before.number > number:
            return
        job.checkpoint = Checkpoint(fence, number, text, before.at_crash if before else None) if text \
            else None

    @staticmethod
    def crash(job):
        """A job that makes progress is not poison: its crash counts as the first."""
        point = job.checkpoint
        if point and point.text != point.at_crash:
            point.at_crash = point.text
            return 1
        return (job.crashes or 0) + 1


class Logs:
    """What the last runs of a job have printed: by fence the attempt, how many bytes it were, and the last of
    them."""

    RUNS, BYTES = 10, 65536

    def __init__(self):
        self.runs = {}  # in the order in which they began to print

    def tell(self, fence, attempt, start, text):
        """A part of what a run prints, that begins behind this many bytes. It may be known, or a part before
        it may have been lost: then it is all that is kept."""
        _, total, kept = self.runs.get(fence, (attempt, 0, ""))
        if start + len(text) <= total:
            return
        kept = text if start > total else kept + text[total - start:]
        self.runs[fence] = attempt, start + len(text), kept[-self.BYTES:]
        if len(self.runs) > self.RUNS:
            del self.runs[next(iter(self.runs))]

    def rows(self, first, start):
        """Of the run `first` what follows this many bytes, and the runs after it."""
        rows = []
        for fence, (attempt, total, kept) in self.runs.items():
            begins = max(total - len(kept), start if int(fence) == first else 0)
            if int(fence) >= first and begins < total:
                rows.append([fence, attempt, begins, kept[begins - total:]])
        return rows


class LastLines:
    """The logs of jobs that were done or cancelled are there for a while, for those that follow them. What
    happens to them when a job of the same id comes and goes meanwhile is left open."""

    LENGTH = 5000

    def __init__(self):
        self.ended = {}  # id: until when, and the logs; None: these, or none

    def left(self, job, how, now):
        if job.logs.runs:
            self.ended.pop(job.id, None)
            if how in ("done", "cancelled"):
                self.ended[job.id] = now + self.LENGTH, job.logs
        elif job.id in self.ended:
            self.ended[job.id] = max(self.ended[job.id][0], now + self.LENGTH), None

    def answer(self, id, first, start, now):
        until, logs = self.ended.get(id, (0, None))
        gone, there = [GONE, now], [OK, now, "gone"]
        if now > until:
            return gone
        return there + logs.rows(first, start) if logs else OneOf(gone, Page(there))

    def forget(self, now):
        self.ended = {id: one for id, one in self.ended.items() if now <= one[0]}


class Levels:
    """Of jobs that are due, which are handed out: the higher level first, but of every eight one is the
    oldest of all levels."""

    def __init__(self):
        self.turn = 0  # counts while the queue has levels

    def choose(self, due, n, levelled):
        """due: in order. The first n of them, in the order in which they are handed out."""
        n = min(n, len(due))
        if not levelled:
            return due[:n]
        shares = (self.turn + n) // 8 - self.turn // 8
        self.turn += n
        oldest = sorted(due, key=lambda job: (job.score, job.level, job.id))[:shares]
        rest = sorted((job for job in due if job not in oldest), key=lambda job: job.level)
        return sorted(oldest + rest[:n - shares], key=lambda job: (job.level, *ORDER(job)))


class Limits:
    """max_running, and the bucket of a rate: it holds a tenth of the period's jobs, at least one. The
    harness uses rates of k / 64 tokens in a ms, so the arithmetic is exact."""

    def __init__(self):
        self.max_running = self.rate = self.per = 0
        self.tokens, self.at = None, 0

    def set(self, max_running=None, rate_limit=None, rate_per=None):
        if max_running is not None:
            self.max_running = max_running
        if rate_limit is not None:
            self.rate, self.per, self.tokens = rate_limit, rate_per, None

    def available(self, now, back=0):
        """What is in the bucket now, with what comes back from jobs that never started."""
        burst = max(1, self.rate // 10)
        if self.tokens is None or now <= self.at - 1000:  # the clock was set back: nobody knows for how long
            return min(burst, burst + back)
        return min(burst, self.tokens + max(0, now - self.at) * self.rate / self.per + back)

    def take(self, now, jobs):
        if self.rate:
            self.tokens, self.at = self.available(now) - jobs, now

    def give_back(self, now, unstarted):
        if self.rate and unstarted:
            self.tokens, self.at = self.available(now, unstarted), now

    def free(self, now, free, slots, running):
        """Of this many places, how many may be taken."""
        if self.max_running or self.rate:
            free = min(free, slots)
        if self.max_running:
            free = min(free, self.max_running - running)
        if self.rate:
            free = min(free, int(self.available(now)))
        return max(0, free)


class Producer:
    """Which of its numbered requests were executed; remembered for a while after the last."""

    SPAN = 32

    def __init__(self):
        self.executed, self.highest, self.until = set(), 0, 0

    def repeats(self, number, now):
        if now > self.until:
            self.__init__()
        return number in self.executed or number <= self.highest - self.SPAN

    def remember(self, number, until):
        self.highest = max(self.highest, number)
        self.executed.add(number)
        self.until = until


class Claimed:
    """The last claim of a worker that gave jobs: [(id, due)], and when their leases end by the queue's clock."""

    def __init__(self, number, fence, jobs, ends, until):
        self.number, self.fence, self.jobs, self.ends, self.until = number, fence, jobs, ends, until


class Kept:
    """Done jobs that are kept: id -> (when it ended, until when it is kept, its line and result)."""

    def __init__(self):
        self.jobs = {}

    def at(self, id, now):
        """What is over is never shown."""
        job = self.jobs.get(id)
        return job if job and now < job[1] else None

    def add(self, id, ended, until, words):
        self.jobs[id] = ended, until, words

    def oldest(self, now):
        return sorted((ended, id) for id, (ended, until, _) in self.jobs.items() if now < until)

    def trim(self, now, most, most_bytes):
        """The oldest leave first."""
        ids = [id for _, id in self.oldest(now)]
        bytes = sum(len(self.jobs[id][2]) for id in ids)
        while ids and (len(ids) > most or bytes > most_bytes):
            bytes -= len(self.jobs.pop(ids.pop(0))[2])


COUNTERS = ("enqueued", "done", "failed", "lost", "unsure", "crashed", "cancelled", "deleted",
            "expired", "replaced", "healed")


class Queue:
    def __init__(self, now):
        self.now = now
        self.jobs, self.ended, self.purged = {}, {}, None
        self.levels, self.levelled = Levels(), False
        self.limits, self.paused, self.fence = Limits(), None, 0  # paused: since when
        self.tellers = {}  # of the deaths of jobs that name none, by their types
        self.producers, self.claims = {}, {}
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.trimmed, self.kept, self.last_lines = 0, Kept(), LastLines()
        self.unique, self.conflicts = UniqueKeys(self), {}
        self.schedules, self.leases = Schedules(self), Leases(self)

    # ---- looking ----

    def within(self, place):
        """The jobs of a set, in its order."""
        return sorted([job for job in self.jobs.values() if job.place == place], key=ORDER)

    def waiting(self):
        """Those whose time is over wait no more, although nobody may have come yet to remove them."""
        return [job for job in self.within("schedule") if not Expiry.is_over(job, self.now)]

    def parked(self):
        return [job for job in self.within("parked") if not Expiry.is_over(job, self.now)]

    def expired(self):
        """In their order in `expires`."""
        return sorted((job for job in self.jobs.values() if Expiry.is_over(job, self.now)),
                      key=lambda job: (job.head["start_by"], job.id))

    def due(self):
        return [job for job in self.waiting() if job.score <= self.now]

    def at(self, id, place):
        job = self.jobs.get(id)
        return job if job and job.place == place else None

    def waits_or_runs(self, job):
        return job.place in ("schedule", "running") and not Expiry.is_over(job, self.now)

    def late(self, not_after):
        return 0 < int(not_after) < self.now

    def locked(self, job):
        """Whether its lock is there: it ends by Redis's clock, or with the lease."""
        return job.place == "running" and job.token is not None and self.now <= job.score

    # ---- the one door out ----

    def leave(self, job, how):
        """Everything that is kept beside a job ends here. A dead job stays, as a dead letter."""
        self.unique.left(job, how)
        job.token, job.cancel, job.crashes, job.progress = None, None, None, None
        if how != "dead":
            del self.jobs[job.id]
            self.last_lines.left(job, how, self.now)
        if how in ("cancelled", "deleted", "expired", "replaced"):
            self.ended[job.id] = (self.now, how)
        if how == "trimmed":
            self.trimmed += 1
        elif how != "dead":
            self.counters["deleted" if how == "purged" else how] += 1

    def fail(self, job, worker, ran, text):
        """One failed attempt more; the last ten are told with the job."""
        told = text.encode()[:256].decode(errors="ignore")
        attempt = {"at": self.now, "worker": worker, "ran": max(0, int(ran)), "error": told}
        job.head["history"] = [*job.head.get("history", []), attempt][-10:]
        job.head["attempts"] = job.head.get("attempts", 0) + 1
        self.counters["failed"] += 1

    def bury(self, job, reason, text):
        job.head.update(reason=reason, error=text, died=self.now)
        Expiry.started(job)
        self.leave(job, "dead")
        job.place, job.score = "dead", self.now
        about = job.id + ".dead"
        teller = self.tellers.get(job.head["type"], self.tellers.get("*"))
        teller = job.head.get("on_dead", teller)
        if teller:  # a job about the death, under an id that is free
            n = 1
            while about in self.jobs:
                n += 1
                about = f"{job.id}.dead.{n}"
            head = {"type": teller, "created": self.now, "on_dead": 0}
            self.accept(about, "0", json.dumps(head) + "\n", 0)
            self.jobs[about].payload = None  # says it in words

    def expire(self, job, buried=None):
        """A script that meets a job whose time is over removes it."""
        if job and Expiry.is_over(job, self.now):
            if job.head.get("expired") == "dead":
                text = Starts("it did not start within ")
                self.bury(job, "expired", text)
                self.counters["expired"] += 1
                if buried is not None:
                    buried += [job.id, text]
            else:
                self.leave(job, "expired")

    def expire_due(self, buried=None):
        """As many as one script may: slices of 25, until 200 or 50 deaths. Their records are short here."""
        gone, dead = 0, len(self.within("dead"))
        while gone < 200 and len(self.within("dead")) < dead + 50:
            over = self.expired()[:25]
            for job in sorted(over, key=lambda job: (job.place != "parked", job.head.get("expired") == "dead")):
                self.expire(job, buried)
            gone += len(over)
            if len(over) < 25:
                break

    def trim(self, most, age, brought):
        """The bounds of the dead, after this many came: a script removes a hundred more at most."""
        old = [job for job in self.within("dead") if job.score <= self.now - min(DELAY_MAX, age)]
        for job in old[:100]:
            self.leave(job, "trimmed")
        dead = self.within("dead")
        for job in dead[:max(0, min(len(dead) - most, brought + 100))]:
            self.leave(job, "trimmed")

    def wait(self, job, due):
        """It waits (again), at its level."""
        job.place, job.score, job.token, job.progress = "schedule", due, None, None
        self.levelled = self.levelled or job.level != 1

    def wait_again(self, job, due):
        self.wait(job, due)
        self.unique.waits_again(job)

    # ---- enqueueing ----

    def known(self, id):
        job = self.jobs.get(id)
        if job and Expiry.is_over(job, self.now):
            if job.head.get("expired") == "dead":
                return IS_DEAD
            self.expire(job)
            return OK
        return {"schedule": EXISTS, "parked": EXISTS, "running": RUNS, "dead": IS_DEAD}[job.place] if job else OK

    def enqueue(self, args):
        producer, number, not_after, remember, waited = args[0], *map(int, args[1:5])
        n = (len(args) - 5) // 3
        made = args[5 + 3 * n] if len(args) > 5 + 3 * n else "-"
        seen = self.producers.setdefault(producer, Producer())
        if producer and seen.repeats(number, self.now):
            until, *answer = self.conflicts.get((producer, number), (0, []))
            return [OK, self.now, 1, *(answer if self.now <= until else [[]])]
        if self.late(not_after):
            return [LATE, self.now]
        first, codes, refused = {}, [], False  # what happened to an id that waits is not told in its later mentions
        for k in range(n):
            id = args[5 + 3 * k]
            codes.append(EXISTS if first.get(id) in (OK, EXISTS) else self.known(id))
            first.setdefault(id, codes[k])
            refused = refused or codes[k] != OK and made[min(k, len(made) - 1)] in "nN"
        if refused:
            return [EXISTS, self.now, 0, codes]
        conflicts, taken = [], False
        for k in range(n):
            if codes[k] == OK:
                met = self.accept(*args[5 + 3 * k:8 + 3 * k], waited)
                if met == TAKEN:
                    codes[k], taken = EXISTS, True
                elif met:
                    codes[k] = OK if met[0] == "parked" else EXISTS
                    conflicts += [k + 1, *met]
        if producer:
            seen.remember(number, self.now + remember)
        if (taken or IS_DEAD in codes) and not conflicts:  # sent again, it is told again
            self.conflicts[producer, number] = self.now + remember, codes, []
        if conflicts:
            self.conflicts[producer, number] = self.now + remember, codes, conflicts
            return [OK, self.now, 0, codes, conflicts]
        return [OK, self.now, 0, codes if any(codes) else OneOf([], codes)]

    enqueue_with = enqueue

    def accept(self, id, due, record, waited):
        due = int(due)
        if due == 0:
            due = self.now
        elif due < 0:
            due = self.now + max(0, -due - waited)
        head, _, payload = record.partition("\n")
        job = Job(id, json.loads(head), payload, due)
        met = self.unique.meet(job) if "unique" in job.head else None
        if met is None and id in self.jobs:
            return TAKEN  # for the job about a death in this request
        if met and met[0] != "parked":
            return met
        self.jobs[id] = job
        if not met:
            Expiry.begin(job, job.score, self.now)
            self.wait(job, job.score)
        self.ended.pop(id, None)
        self.kept.jobs.pop(id, None)
        self.counters["enqueued"] += 1
        return met

    # ---- claiming ----

    def claim(self, args):
        worker, number, most, lease, not_after, alive, _, slots, rules = args
        if self.late(not_after):
            return [LATE, self.now]
        most = int(most)
        poison, dead_max, dead_age = map(int, rules.split())
        fence = max(self.now * 1000, self.fence + 1)
        taken, buried, marks, over = [], [], [], 0
        self.expire_due(buried)
        if not self.paused:
            most = 0 if self.expired() else most  # what followed one of them: it comes back at once
            for job in self.leases.over()[:min(most, 200)]:
                if self.take_over(job, poison, buried):
                    taken.append((job, self.now))
            over = len(taken)
            most = over if self.expired() else most
            free = self.limits.free(self.now, most - over, int(slots) - over,
                                    len(self.within("running")))
            chosen = self.levels.choose(self.due(), free, self.levelled)
            taken += [(job, job.score) for job in chosen]
            if taken:
                self.limits.take(self.now, len(chosen))
        for job, _ in taken:
            starts = job.place == "schedule"
            job.place, job.token = "running", f"{worker}:{fence}"
            self.leases.begin(job, int(lease))
            if starts:
                self.unique.started(job)
        if taken:
            self.fence = fence
            jobs = [(job.id, due) for job, due in taken]
            self.claims[worker] = Claimed(number, fence, jobs, taken[0][0].score, self.now + 86400000)
            marks = [word for k, (job, _) in enumerate(taken)
                     if k < over or job.crashes is not None or job.checkpoint
                     for word in (job.id, job.crashes or 0, job.checkpoint.text if job.checkpoint else "")]
        if buried:
            self.trim(dead_max, dead_age, len(buried) // 2)
        self.leases.lives(int(lease), int(alive))
        ticks = self.schedules.due_rows(100) if self.schedules.tell() else None
        return [OK, self.now, str(fence), ANY, More(ticks), marks or 0, buried or 0, *self.told(taken)]

    @staticmethod
    def told(taken):
        if not taken:
            return []
        words = [[job.id, job.record()] for job, _ in taken]
        if len(taken) > 32:
            return [Dues([due for _, due in taken]), *map(list, zip(*words))]
        return [Dues([due for _, due in taken]), *(word for pair in words for word in pair)]

    def take_over(self, job, poison, buried):
        """The job of a dead holder: whether the claim gets it."""
        if job.cancel:
            self.leave(job, "cancelled")
            return False
        if poison:
            self.counters["crashed"] += 1
            job.crashes = Checkpoint.crash(job)
        else:
            job.crashes = job.crashes or 0
        if not poison or job.crashes < poison:
            Expiry.started(job)  # it may have
            job.progress = None
            return True
        text = Starts(f"its holder died {job.crashes} times")
        self.bury(job, "poison", text)
        buried += [job.id, text]
        return False

    def unclaim(self, args):
        """None of these jobs has started."""
        worker, number = args
        claimed, released = self.claims.get(worker), 0
        if not claimed or claimed.number != number or self.now > claimed.until:
            return [OK, self.now, 0]
        for id, due in claimed.jobs:
            job = self.jobs.get(id)
            ours = job and (job.token == f"{worker}:{claimed.fence}" if self.locked(job)
                            else job.place == "running" and job.score == claimed.ends)
            if ours:
                if not self.cancelled(job, claimed.fence):
                    self.wait_again(job, min(due, self.now))
                released += 1
        self.limits.give_back(self.now, released)
        return [OK, self.now, released]

    # ---- what a holder says ----

    def renew(self, args):
        worker, lease, not_after, alive, told = args[:5]
        jobs, told = args[5:len(args) - int(told)], args[len(args) - int(told):]
        if self.late(not_after):
            return [LATE, self.now]
        if not jobs:
            return [OK, self.now]
        codes = []
        for id, fence in zip(jobs[::2], jobs[1::2]):
            job, token = self.at(id, "running"), f"{worker}:{fence}"
            held = job and job.score > 0 and (job.token == token or not self.locked(job))
            if held:
                job.token = token
                self.leases.begin(job, int(lease))
                codes.append(CANCEL if job.cancel in (fence, "*") else OK)
            else:
                codes.append(LOST)
        for place, what, text in zip(told[::3], told[1::3], told[2::3]):
            id, fence = jobs[2 * int(place) - 2:2 * int(place)]
            if codes[int(place) - 1] != LOST:
                first, _, rest = text.partition(" ")
                if what == "progress":
                    self.jobs[id].progress = f"{fence} {text}"
                elif what == "checkpoint":
                    Checkpoint.tell(self.jobs[id], fence, int(first), rest)
                else:
                    start, _, lines = rest.partition(" ")
                    self.jobs[id].logs.tell(fence, first, int(start), lines)
        self.leases.lives(int(lease), int(alive))
        return [OK, self.now] + ([codes] if any(codes) else [])

    def held(self, worker, args, step, resent):
        """Of the jobs that a verdict names: [(job, its arguments)] of those that the worker holds, and
        a code for each. Counts the verdicts that came too late."""
        held, codes, seen = [], [], set()
        for k in range(0, len(args), step):
            id, fence = args[k:k + 2]
            job = self.jobs.get(id)
            if job and id not in seen and self.locked(job) and job.token == f"{worker}:{fence}":
                held.append((job, args[k:k + step]))
                seen.add(id)
                codes.append(OK)
                continue
            codes.append(LOST if job else GONE)
            if k // step >= int(resent.split()[0]):
                self.counters["lost"] += 1
            elif codes[-1] == LOST:
                self.counters["unsure"] += 1
        return held, codes

    def verdict(self, codes):
        return [OK, self.now] + ([codes] if any(codes) else [])

    def cancelled(self, job, fence):
        """A command asked to cancel this run: this overrides any verdict but done."""
        if job.cancel in (str(fence), "*"):
            self.leave(job, "cancelled")
            return True
        job.cancel = None  # of an earlier run
        return False

    def complete(self, args):
        worker, not_after, resent, fences = args[:4]
        if self.late(not_after):
            return [LATE, self.now]
        pairs, ids = [], iter(args[4 + 2 * int(fences):])
        for k in range(int(fences)):
            for _ in range(int(args[5 + 2 * k])):
                pairs += [next(ids), args[4 + 2 * k]]
        held, codes = self.held(worker, pairs, 2, resent)
        for job, _ in held:
            self.leave(job, "done")
        return self.verdict(codes)

    def keep(self, args):
        """Done, and kept with a result."""
        worker, not_after, resent, most, most_bytes = args[:5]
        if self.late(not_after):
            return [LATE, self.now]
        held, codes = self.held(worker, args[5:], 4, resent)
        for job, (_, _, keep, words) in held:
            self.leave(job, "done")
            self.kept.add(job.id, self.now, self.now + int(keep), words)
        if held:
            self.kept.trim(self.now, int(most), int(most_bytes))
        return self.verdict(codes)

    def retry(self, args):
        worker, not_after, resent = args[:3]
        if self.late(not_after):
            return [LATE, self.now]
        held, codes = self.held(worker, args[3:], 6, resent)
        for job, (_, fence, delay, error, ran, alone) in held:
            if not self.cancelled(job, fence):
                self.fail(job, worker, ran, error)
                job.head.update(error=error, failed=self.now, failed_fence=fence)
                job.head.pop("refused", None)
                job.head.pop("alone", None)
                job.head.update({"alone": 3} if alone == "1" else {})
                Expiry.started(job)
                self.wait_again(job, self.now + max(0, min(DELAY_MAX, int(delay))))
        return self.verdict(codes)

    def release(self, args):
        worker, not_after, resent = args[:3]
        if self.late(not_after):
            return [LATE, self.now]
        held, codes = self.held(worker, args[3:], 5, resent)
        for job, (_, fence, due, how, error) in held:
            if self.cancelled(job, fence):
                continue
            if how not in ("unstarted", "down"):
                Expiry.started(job)
            if how == "cancelled":
                self.leave(job, "cancelled")
            elif how == "neighbour":  # ended because of another one
                job.head.update({"error": error} if error else {}, alone=min(3, job.head.get("alone", 0) + 1))
                self.wait_again(job, min(int(due), self.now))
            elif how == "down":
                job.head.update({"error": error} if error else {})
                self.wait_again(job, self.now + max(0, min(DELAY_MAX, int(due))))
            elif how == "later":
                job.head.pop("refused", None)  # a handler had it
                job.head.pop("alone", None)
                if error:
                    job.head["error"] = error
                self.wait_again(job, self.now + max(0, min(DELAY_MAX, int(due))))
            elif error:
                job.head["error"] = error
                job.head.setdefault("refused", self.now)
                self.wait_again(job, self.now + max(0, min(DELAY_MAX, int(due))))
            else:
                self.wait_again(job, min(int(due), self.now))
        self.limits.give_back(self.now, sum(words[3] in ("unstarted", "down") for _, words in held))
        return self.verdict(codes)

    def crash(self, args):
        """Its process died, and its holder did not: a crash as any other."""
        worker, not_after, resent, dead_max, dead_age, poison = args[:6]
        if self.late(not_after):
            return [LATE, self.now]
        held, codes = self.held(worker, args[6:], 4, resent)
        buried = []
        for job, (_, fence, due, error) in held:
            if self.cancelled(job, fence):
                continue
            self.counters["crashed"] += 1
            job.crashes = Checkpoint.crash(job)
            if job.crashes < int(poison):
                Expiry.started(job)
                job.head.update(error=error, alone=3)
                self.wait_again(job, min(int(due), self.now))
            else:
                self.bury(job, "poison", Starts(f"{error}; it crashed {job.crashes} times; "))
                buried.append(job.id)
        if buried:
            self.trim(int(dead_max), int(dead_age), len(buried))
        codes = [IS_DEAD if code == OK and id in buried else code for code, id in zip(codes, args[6::4])]
        return [OK, self.now, codes]

    def bury_verdict(self, args):
        worker, not_after, resent, dead_max, dead_age = args[:5]
        if self.late(not_after):
            return [LATE, self.now]
        held, codes = self.held(worker, args[5:], 6, resent)
        for job, (_, fence, counts, reason, error, ran) in held:
            if not self.cancelled(job, fence):
                if counts == "1":
                    self.fail(job, worker, ran, error)
                self.bury(job, reason, error)
        if held:
            self.trim(int(dead_max), int(dead_age), len(held))
            self.limits.give_back(self.now, sum(words[2] == "0" for _, words in held))
        return self.verdict(codes)

    # ---- commands ----

    def cancel(self, args):
        not_after, id = args
        if self.late(not_after):
            return [LATE, self.now]
        self.expire(self.jobs.get(id))
        job = self.jobs.get(id)
        if not job:
            return [GONE, self.now]
        if job.place == "dead":
            return [IS_DEAD, self.now]
        if job.place == "running":
            return [RUNS, self.now, self.ask_to_cancel(job), self.now + self.leases.left(job), ANY]
        self.leave(job, "cancelled")
        return [OK, self.now]

    def end_early(self, job):
        """It waits or runs, and is not wanted any more."""
        if job.place == "running":
            self.ask_to_cancel(job)
        else:
            self.leave(job, "cancelled")

    def ask_to_cancel(self, job):
        """Marks the present run; one whose lock has ended is any."""
        token = job.token if self.locked(job) else ""
        job.cancel = token.rpartition(":")[2] or "*"
        return token

    def delete(self, args):
        not_after, died = args[0], int(args[1])
        if self.late(not_after):
            return [LATE, self.now]
        for id in args[2:]:
            self.expire(self.jobs.get(id))
        codes, holders, leaving = [], [], []
        for job in map(self.jobs.get, args[2:]):
            code = GONE
            if job and job.place == "dead":
                code = OK if died == 0 or job.score <= died else GONE
            elif job and died == 0 and job.place == "running":
                code = RUNS
                holders += [job.token if self.locked(job) else "", job.score]
            elif job and died == 0:
                code = OK
            leaving += [job] if code == OK else []
            codes.append(code)
        for job in sorted(leaving, key=lambda job: job.place != "parked"):  # before it follows
            self.leave(job, "purged" if died else "deleted")
        for k, id in enumerate(args[2:] if died == 0 else ()):
            if codes[k] == GONE and self.kept.at(id, self.now):
                codes[k] = OK
                del self.kept.jobs[id]
        return [OK, self.now, codes, holders]

    def requeue(self, args):
        """Dead jobs as if they were new, waiting ones without waiting."""
        not_after, died, first, rate, place = map(int, args[:5])
        if self.late(not_after):
            return [LATE, self.now]
        codes = []
        for k, id in enumerate(args[5:]):
            if died == 0:
                self.expire(self.jobs.get(id))
            job, code = self.jobs.get(id), GONE
            due = first + (place + k) * 1000 // rate if rate else first
            if job and job.place == "dead" and (died == 0 or job.score <= died):
                code = OK if self.unique.take_again(job) else EXISTS
                if code == OK:
                    for field in ("attempts", "history", "reason", "died", "refused", "alone"):
                        job.head.pop(field, None)
                    Expiry.begin(job, due, self.now)
                    self.wait(job, max(due, self.now))
            elif job and died == 0 and job.place == "schedule":
                code = OK
                if job.score > self.now:
                    job.score = self.now
                    if "start_by" in job.head:  # its whole time again
                        Expiry.begin(job, self.now, self.now)
            elif job and died == 0 and job.place == "running":
                code = RUNS
            elif job and died == 0 and job.place == "parked":
                code = PARKED
            codes.append(code)
        return [OK, self.now, codes]

    def purge(self, args):
        not_after, state, before, most, word = args
        if self.late(not_after):
            return [LATE, self.now]
        if self.purged and self.purged[1] == word and self.now <= self.purged[0] + MINUTE:
            return Page([OK, self.now, self.purged[2]])
        for _ in range(2 if state not in ("dead", "done") else 0):
            self.expire_due()
        n, most = 0, int(most)
        if state == "done":
            over = [id for ended, id in self.kept.oldest(self.now) if ended <= int(before)]
            for id in over[:most]:
                del self.kept.jobs[id]
                n += 1
        for level in range(3):
            jobs = self.within("schedule" if state in ("ready", "delayed") else state)
            for job in [job for job in jobs if job.level == level or job.place != "schedule"]:
                wanted = {"delayed": job.score > self.now, "parked": True}.get(
                    state, job.score <= int(before))
                if wanted and n < most:
                    self.leave(job, "purged")
                    n += 1
        if n:
            self.purged = self.now, word, n
        return Page([OK, self.now, n])

    def edit(self, args):
        """A job that waits gets another payload, due time or priority."""
        not_after, id, due, priority, replaces, payload = args
        if self.late(not_after):
            return [LATE, self.now]
        self.expire(self.jobs.get(id))
        job = self.jobs.get(id)
        if not job or job.place != "schedule":
            code = {"running": RUNS, "dead": IS_DEAD, "parked": PARKED}[job.place] if job else GONE
            return [code, self.now]
        if replaces == "1":
            job.payload = payload
        if priority:
            job.head.pop("priority", None)
            job.head.update({"priority": priority} if priority != "normal" else {})
        score = job.score
        if due:
            score = int(due) if int(due) > 0 else self.now - int(due)
            if "start_by" in job.head:
                Expiry.begin(job, score, self.now)
        self.wait(job, score)
        return [OK, self.now]

    def pause(self, args):
        not_after, paused = args
        if self.late(not_after):
            return [LATE, self.now]
        self.paused = (self.paused or self.now) if paused == "1" else None
        return [OK, self.now]

    def set_limits(self, args):
        not_after, _file, *limits = args
        if self.late(not_after):
            return [LATE, self.now]
        self.limits.set(**dict(zip(limits[::2], map(int, limits[1::2]))))
        return [OK, self.now]

    def on_dead(self, args):
        not_after, types = args
        if self.late(not_after):
            return [LATE, self.now]
        self.tellers = json.loads(types or "{}")
        return [OK, self.now]

    def check(self, args):
        """A worker is alive. It corrects the letters in `uses`, ends schedules that no file names, and reads."""
        _worker, alive, _give_back, lease, machine, boot, shown = args
        self.leases.lives(int(lease), int(alive))
        reading = self.leases.read(machine, boot, shown)
        self.schedules.sweep()
        self.levelled = any(job.level != 1 for job in self.within("schedule")) or (
            self.levelled and bool(self.within("running")))
        empty = not self.waiting() and not self.within("running")
        return [OK, self.now, ANY if self.expired() else int(empty), [0], min(self.leases.lengths),
                [int(self.schedules.tell())], ANY, [reading]]

    # ---- reading ----

    def stats(self, _args):
        waiting = self.waiting()
        ready = [job.score for job in waiting if job.score <= self.now]
        later = [job.score for job in waiting if job.score > self.now]
        n, limits = self.counters, self.limits
        died = sum(job.score >= self.now - 60 * MINUTE for job in self.within("dead"))
        return [OK, self.now, int(bool(self.paused)), len(ready), len(later), len(self.within("running")),
                len(self.within("dead")), n["enqueued"], n["done"], n["failed"], n["lost"], n["unsure"],
                n["crashed"], min(ready, default=0), min(later, default=0), limits.max_running,
                limits.rate, limits.per, ANY, n["cancelled"], n["deleted"],
                len(self.kept.oldest(self.now)), ANY, n["expired"] + len(self.expired()),
                len(self.parked()), n["replaced"], n["healed"], self.paused or 0,
                min(self.now, self.fence // 1000), died, ANY, ANY]

    def job(self, args):
        id, whole, _accepted, _noted = args
        job = self.jobs.get(id)
        kept = self.kept.at(id, self.now)
        if not job and kept:
            ended, until, words = kept
            line, _, result = words.partition("\n")
            record = words if whole == "1" else line + "\n"
            return Page([OK, self.now, "done", ended, record, len(result), "", 0, 0, until])
        if not job:
            at = self.ended_word(id)
            purged = self.purged and self.now <= self.purged[0] + MINUTE
            return Page([GONE, self.now, at[0] if at else 0, self.purged[0] if purged else 0,
                         at[1] if at else ""])
        if Expiry.is_over(job, self.now):
            if job.head.get("expired") == "dead":
                return Page([OK, self.now, "dead", ANY, ANY, job.size, "", 0, 0])
            return Page([GONE, self.now, ANY, 0, "expired"])
        locked = self.locked(job)
        record = job.record() if whole == "1" else Record(job.head, "")
        return Page([OK, self.now, job.place, job.score, record, job.size,
                     job.token if locked else "", self.leases.left(job), job.crashes or 0, 0,
                     self.follows(job), [job.progress.partition(" ")[2] if job.progress and locked else "",
                                         len(job.checkpoint.text) if job.checkpoint else 0,
                                         len(job.logs.runs)]])

    def logs(self, args):
        """What the runs of a job have printed; it stays with a dead one."""
        id, fence, start = args
        job = self.jobs.get(id)
        if not job:
            return self.last_lines.answer(id, int(fence), int(start), self.now)
        if Expiry.is_over(job, self.now) and job.head.get("expired") != "dead":
            return [GONE, self.now]
        place = "dead" if Expiry.is_over(job, self.now) else job.place
        return [OK, self.now, place, *job.logs.rows(int(fence), int(start))]

    def follows(self, job):
        """Of a parked job, the holder of its key."""
        return self.unique.taken[job.head["unique"]].holder if job.place == "parked" else ""

    def list(self, args):
        """A page that has room for all of them."""
        state = args[0]
        if state in ("running", "dead", "parked"):
            jobs = self.parked() if state == "parked" else self.within(state)
        else:
            jobs = [job for job in self.waiting() if (job.score <= self.now) == (state == "ready")
                    and (state != "retry" or job.head.get("attempts"))]
        rows = [Page([job.id, job.score, Record(job.head, ""), job.size,
                      job.token if self.locked(job) else "", ANY, job.crashes or 0]) for job in jobs]
        if state == "done":
            rows = [Page([id, ended, self.kept.jobs[id][2].partition("\n")[0] + "\n"])
                    for ended, id in self.kept.oldest(self.now)]
        return [OK, self.now, "", ANY, *rows]

    def ended_word(self, id):
        at = self.ended.get(id)
        return at if at and self.now <= at[0] + MINUTE else None

    SCRIPTS = {"bury": "bury_verdict", "limits": "set_limits"}

    def call(self, script, args):
        if script.startswith("cron_"):
            return getattr(self.schedules, script)(args)
        if script == "read":
            return [OK, self.now, self.leases.read(*args)]
        return getattr(self, self.SCRIPTS.get(script, script))(args)

    # ---- the wake rule ----

    def wake_by(self):
        """When a worker must come at the latest: for a tick, for a job that waits, or for one that expires
        (with limits that is left open); {}: nothing is to come."""
        waiting = self.within("schedule")
        times = [self.schedules.wake_by(),
                 *(job.head.get("start_by") for job in [*waiting, *self.within("parked")])]
        if not self.paused and self.leases.over():
            times.append(self.now)
        if not self.paused and not self.limits.max_running and not self.limits.rate:
            times += [job.score for job in waiting]
        times = [time for time in times if time is not None]
        return {"next": AtMost(max(min(times), self.now))} if times else {}

    # ---- Redis's clock ----

    def forget_the_past(self):
        """What is over by now does not come back when the clock is set back."""
        self.ended = {id: at for id, at in self.ended.items() if self.now <= at[0] + MINUTE}
        self.purged = self.purged if self.purged and self.now <= self.purged[0] + MINUTE else None
        self.producers = {name: one for name, one in self.producers.items() if self.now <= one.until}
        self.conflicts = {name: one for name, one in self.conflicts.items() if self.now <= one[0]}
        self.claims = {name: one for name, one in self.claims.items() if self.now <= one.until}
        self.kept.jobs = {id: self.kept.jobs[id] for _, id in self.kept.oldest(self.now)}
        self.unique.taken = {key: one for key, one in self.unique.taken.items() if self.unique.state(one)}
        self.last_lines.forget(self.now)
        self.leases.forget_the_past()
        for job in self.within("running"):
            job.token = job.token if self.locked(job) else None

    def take_dues(self, before, found):
        """The clock was set back. What was ready stays ready, and what of it has moved keeps its order; what
        was to come later waits for its time on the clock as it is. The queue knows the latest time only to
        within 100 ms. found: when each is due now. Returns what is wrong."""
        waiting = self.within("schedule")
        seen = before - self.now > 100
        wrong = [job.id for job in waiting
                 if found[job.id] > self.now and job.score <= before and seen
                 or found[job.id] != job.score and not self.now < job.score <= before + 100]
        moved = [(found[job.id], job.id) for job in waiting if found[job.id] != job.score]
        for job in waiting:
            job.score = found[job.id]
        return wrong or (["order"] if moved != sorted(moved) else [])

    # ---- all of it ----

    def state(self):
        """What the keys of the queue must hold, as queue_state() of 80-model reads them."""
        jobs, sets = self.jobs.values(), {}
        for job in jobs:
            name = ("schedule:h", "schedule", "schedule:l")[job.level] if job.place == "schedule" \
                else job.place
            sets.setdefault(name, {})[job.id] = job.score
        return {
            **sets, "jobs": {job.id: job.record() for job in jobs},
            "locks": {job.id: (job.token, job.score) for job in jobs if self.locked(job)},
            "crashes": {job.id: job.crashes for job in jobs if job.crashes is not None},
            "kept": {id: self.kept.jobs[id] for _, id in self.kept.oldest(self.now)},
            "expires": {job.id: job.head["start_by"] for job in jobs
                        if job.place in ("schedule", "parked") and "start_by" in job.head},
            "unique": {key: (one.holder, one.until[0], one.window if one.window > self.now else 0, one.parked or "")
                       for key, one in self.unique.taken.items() if self.unique.state(one)},
            "progress": {job.id: job.progress for job in jobs if job.progress},
            "checkpoint": {job.id: job.checkpoint.text for job in jobs if job.checkpoint},
            "logs": {job.id: " ".join(job.logs.runs) for job in jobs if job.logs.runs},
            "log": {job.id: {fence: "{} {} {}".format(*run) for fence, run in job.logs.runs.items()}
                    for job in jobs if job.logs.runs},
            "cancel": {job.id: job.cancel for job in jobs if job.cancel},
            "ended": {id: how for id, (at, how) in self.ended.items() if self.now <= at + MINUTE},
            "counters": {name: n for name, n in self.counters.items() if n},
            "wake": self.wake_by(), **self.schedules.keys(), **self.leases.keys(),
        }
