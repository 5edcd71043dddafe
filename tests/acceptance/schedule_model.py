"""What schedules mean, by their rules alone: for queue_model.py. It was written from docs/schedules.md and
docs/keys.md, without the scripts. First the ticks of a schedule, and what a worker decides on; then what
the queue knows of schedules, one method for each script."""
import collections
import hashlib
import json

from model_answers import EXISTS, GONE, LATE, LOST, OK, AnyOrder, Fields

SECOND, MINUTE, HOUR = 1000, 60000, 3600000
NAMED, STEP_BACK, AT_ONCE = 10 * MINUTE, 3 * HOUR, 1000


# ---- ticks, as a worker reckons them --------------------------------------------------


class Ticks:
    """Those of one `every`: at multiples of it since 1970, or since its start."""

    def __init__(self, head):
        self.every, self.start, self.end = head["every"], head.get("start", 0), head.get("end")

    def at(self, k):
        return self.start + k * self.every

    def number(self, ms):
        """Of the first tick after this time."""
        return max(0, (ms - self.start) // self.every + 1)

    def next(self, after):
        tick = self.at(self.number(after))
        return tick if self.end is None or tick <= self.end else None

    def between(self, after, until):
        """The numbers of all ticks after one time, until another one."""
        last = until if self.end is None else min(until, self.end)
        return range(self.number(after), max(self.number(after), self.number(last)))


def after_step_back(since, now):
    """Until when ticks are decided on: if Redis's clock was set back nothing repeats, but after a large step
    all is reckoned anew."""
    return since if now < since <= now + STEP_BACK else now


class Decision:
    """What happens to the ticks after `since` until `now`: those that make jobs, how many are dropped; until
    when all are decided on then, and the next tick."""

    def __init__(self, head, since, now):
        ticks = Ticks(head)
        self.since = after_step_back(since, now)
        if self.since > now:  # it goes on after a period: the first tick from now on may have been there
            self.since = min(self.since, ticks.next(now) or self.since)
        all = ticks.between(since, now)
        missed = head.get("missed", "once")
        if missed == "all":
            made = [k for k in all[-AT_ONCE:] if ticks.at(k) >= now - head.get("catch_up", HOUR)]
        else:  # the newest; one that is a minute late was missed
            made = [k for k in all[-1:] if missed == "once" or ticks.at(k) >= now - MINUTE]
        self.made, self.dropped = [ticks.at(k) for k in made], len(all) - len(made)
        self.next = ticks.next(self.since)

    def cut(self, room):
        """No more jobs than this in one request: the others follow."""
        if len(self.made) > room:
            self.since, self.next = self.made[room - 1], self.made[room]
            del self.made[room:]


# ---- what the queue knows -------------------------------------------------------------


class Schedule:
    """value: its definition. next: its next tick, None: there is none. since: all ticks until then are
    decided on. file, rev: what a worker's file said last. named: until then it stays although no file
    names it again; None: it belongs to no file. removed: by a command, and the file may not bring it back."""

    def __init__(self):
        self.value = self.gen = self.next = self.file = self.named = self.job = self.tick = None
        self.ran = None  # the last job by hand
        self.since = self.rev = self.accepted = self.skipped = self.dropped = 0
        self.paused = self.removed = False

    @property
    def head(self):
        return json.loads(self.value.partition("\n")[0])

    @property
    def payload(self):
        return self.value.partition("\n")[2]

    @property
    def is_over(self):
        limit = self.head.get("limit")
        return bool(limit) and self.accepted >= limit

    def state(self):
        file = {"file": self.file and hashlib.sha1(self.file.encode()).hexdigest(), "rev": self.rev}
        if self.removed:
            return Fields({**file, "removed": 1})
        return Fields({**file, "gen": self.gen, "from": self.since, "job": self.job, "tick": self.tick,
                       "accepted": self.accepted, "skipped": self.skipped, "dropped": self.dropped,
                       "ran": self.ran, "paused": int(self.paused)})


class Schedules:
    """Those of a queue. by: until then the worker that was informed of due ticks reckons; high: when ticks were
    decided on last."""

    def __init__(self, queue):
        self.queue, self.all, self.by, self.high = queue, {}, 0, 0
        self.counts = collections.Counter()  # what came of all

    @property
    def now(self):
        return self.queue.now

    def live(self, id):
        schedule = self.all.get(id)
        return schedule if schedule and not schedule.removed else None

    def due(self):
        """(next tick, id) of those whose next tick has come, the earliest first."""
        return sorted((one.next, id) for id, one in self.all.items()
                      if one.next is not None and one.next <= self.now)

    # ---- who is told ----

    def tell(self):
        """Whether ticks are due that no other worker reckons: this one has a second for it. A paused queue
        makes no jobs."""
        reckons = self.now < self.by <= self.now + SECOND  # later: the clock was set back
        if self.queue.paused or reckons or not self.due():
            return False
        self.by = self.now + SECOND
        return True

    def wake_by(self):
        """When a worker must come for a tick; None: for none."""
        times = [one.next for one in self.all.values() if one.next is not None]
        if self.queue.paused or not times:
            return None
        first = min(times)
        return max(first, self.by) if first <= self.now and self.by <= self.now + SECOND else first

    # ---- the scripts ----

    def cron_put(self, args):
        not_after, id, next, value, file, rev = args
        if self.queue.late(not_after):
            return [LATE, self.now]
        rev, one = int(rev), self.all.get(id)
        if file and one and not (file == "start" and self.is_news(one, value, rev)):
            if one.named is not None:
                one.named = self.now + NAMED
            if one.file == value:
                one.rev = max(one.rev, rev)
            return [OK, self.now, 0]
        if not file and one and one.value == value and not one.removed:
            one.named = None  # a command takes it over
            return [OK, self.now, 0]
        if not one or one.removed:
            before, one = one, Schedule()
            one.file, one.rev = (before.file, before.rev) if before else (None, 0)
            self.all[id] = one
        if file:
            one.file, one.rev = value, rev
        one.value, one.named = value, self.now + NAMED if file else None
        self.begin(one, next)
        self.counts["written"] += 1
        return [OK, self.now, 1]

    @staticmethod
    def is_news(one, value, rev):
        """What a worker's file says, against what a file said last. A newer file that says the same takes back
        what a command has done."""
        changed = one.removed or one.value != value
        return rev >= one.rev if one.file != value else rev > one.rev and changed

    def begin(self, one, next):
        """From now on; what came before is decided on, and does not repeat. It has another gen: the time in
        microseconds."""
        one.gen, self.high = f"{self.now}000", max(self.high, self.now)
        one.since = after_step_back(one.since, self.now)
        one.next = int(next) if next != "" and not one.paused else None

    def cron_change(self, args):
        not_after, id, what, word = args
        if self.queue.late(not_after):
            return [LATE, self.now]
        one = self.live(id)
        if not one:
            return [GONE, self.now]
        if what == "run":
            if word != one.ran and word not in self.queue.jobs:  # it may be done already
                one.ran = word
                self.accept(id, one, word, self.now, None)
        elif what == "remove":
            del self.all[id]
            if one.file:  # while a file names it, it must change before the schedule comes back
                left = self.all[id] = Schedule()
                left.file, left.rev, left.removed = one.file, one.rev, True
                left.named = self.now + NAMED if one.named is None else one.named
        elif what == "pause":
            one.paused, one.next = True, None
        elif one.paused:
            one.paused = False
            self.begin(one, word)
        return [OK, self.now]

    def cron_due(self, args):
        return [OK, self.now, *([] if self.queue.paused else self.due_rows(int(args[0])))]

    def due_rows(self, most):
        """What a worker has to know of the first ones that are due."""
        rows = []
        for next, id in self.due()[:most]:
            value = self.all[id].value
            rows += [id, str(next), value.partition("\n")[0], self.all[id].state(), len(value.encode())]
        return rows

    def cron_tick(self, args):
        if self.queue.late(args[0]):
            return [LATE, self.now]
        codes, at = [], 2
        while at < len(args):
            id, gen, next, new_next, since, dropped, n = args[at:at + 7]
            jobs = args[at + 7:at + 7 + 3 * int(n)]
            one = self.live(id)
            at += 7 + 3 * int(n)
            if not one or one.gen != gen or str(one.next) != next:
                codes.append(LOST)
            elif any(job in self.queue.jobs for job in jobs[::3]):
                codes.append(EXISTS)
            else:
                codes.append(OK)
                self.decide(id, one, zip(jobs[::3], map(int, jobs[1::3]), map(int, jobs[2::3])))
                one.since, one.dropped = int(since), one.dropped + int(dropped)
                self.counts["dropped"] += int(dropped)
                one.next = int(new_next) if new_next != "" and not one.is_over else None
        more = bool(self.due())
        if OK in codes:
            self.high, self.by = max(self.high, self.now), self.now + SECOND if more else 0
        return [OK, self.now, int(more), codes]

    def decide(self, id, one, ticks):
        for job, tick, due in ticks:
            if one.is_over:
                return
            if self.makes_room(one):
                one.job, one.tick, one.accepted = job, tick, one.accepted + 1
                self.counts["accepted"] += 1
                self.accept(id, one, job, due, tick)
            else:
                one.skipped += 1
                self.counts["skipped"] += 1

    def makes_room(self, one):
        """Whether the next tick may make a job, while that of the last tick waits, is retried or runs."""
        how, job = one.head.get("overlap", "skip"), self.queue.jobs.get(one.job)
        if how == "allow" or not job or not self.queue.waits_or_runs(job):
            return True
        if how == "cancel":
            self.queue.end_early(job)
            self.counts["cancelled"] += 1
        return how == "cancel"

    def accept(self, id, one, job, due, tick):
        head = {**one.head["job"], "cron": id, **({"scheduled": tick} if tick is not None else {})}
        self.queue.accept(job, str(max(due, self.now)), json.dumps(head) + "\n" + one.payload, 0)

    def cron_list(self, args):
        _cursor, after, before = args
        return AnyOrder([OK, self.now, "0"], [[id] for id in self.all if self.live(id) and id > after and (
            not before or id < before)])

    def cron_read(self, args):
        rows = []
        for id in filter(self.live, args[1:]):
            one = self.all[id]
            value = one.value if args[0] == "1" else one.value.partition("\n")[0] + "\n"
            rows += [id, value, one.state(), str(one.next or ""), str(one.named or ""), 0]
        return [OK, self.now, len(args) - 1, *rows]

    # ---- now and then ----

    def sweep(self):
        """A schedule that no live worker's file names ends. If the end came while nobody was there to see
        it, it has its time once more. A queue without schedules knows none of this."""
        if not self.all:
            return
        for id, one in list(self.all.items()):
            if one.named is not None and one.named <= self.now:
                if one.named < self.now - MINUTE:
                    one.named = self.now + NAMED
                else:
                    del self.all[id]
                    self.counts["ended"] += 1
        if self.now < self.high:  # all is reckoned anew
            self.high = self.now
            self.counts["reckoned anew"] += 1
            for one in self.all.values():
                if one.next is not None and one.next > self.now:
                    one.next = self.now

    def keys(self):
        live = {id: one for id, one in self.all.items() if not one.removed}
        return {
            "cron": {id: one.value for id, one in live.items()},
            "cron_state": {id: one.state() for id, one in self.all.items()},
            "cron_next": {id: one.next for id, one in live.items() if one.next is not None},
            "cron_named": {id: one.named for id, one in self.all.items() if one.named is not None},
        }
