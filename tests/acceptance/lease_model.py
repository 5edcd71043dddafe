"""When leases are over, by the rule alone: for queue_model.py. It was written from docs/design.md, without the
scripts. A queue has a clock that only readings move. A lease begins at Redis's time or at this clock, the later of
the two; so a lease that began before a reading has been there for as long as the reading, and machines show
how long that is by their boot clocks."""
import re

from model_answers import ANY

HOUR, DAY, BURST = 3600000, 86400000, 25


class Reading:
    """clock: of the queue; boot: of the machine, when it knew the answer; redis: Redis's time of the answer."""

    def __init__(self, clock, boot, redis):
        self.clock, self.boot, self.redis = clock, boot, redis

    def age(self, boot, now):
        """No older than Redis's clock says, too: two machines may have one name."""
        return min(boot - self.boot, now - self.redis)

    def __str__(self):
        return f"{self.clock}:{self.boot}:{self.redis}"


class Machine:
    """Its readings, the oldest first."""

    MOST = 32

    def __init__(self):
        self.readings = []

    @property
    def last(self):
        return self.readings[-1] if self.readings else None

    def add(self, reading, shortest, before):
        """Whether it tells more than what is there. Those that are not younger than any lease prove nothing,
        except the newest of them. Those with a later boot time give way."""
        stay = [one for one in self.readings if one.boot <= reading.boot]
        if self.last and reading.clock <= self.last.clock or stay and reading.boot < stay[-1].boot + shortest / BURST:
            return False
        self.readings = [*stay, reading]
        while len(self.readings) > 1 and self.readings[1].clock <= before:
            del self.readings[0]
        if len(self.readings) > self.MOST:
            self.forget()
        return True

    def forget(self):
        """The one that is missed least: old ones may be further apart."""
        all, last = self.readings, self.last
        gaps = [(all[k + 1].boot - all[k - 1].boot) / (last.boot - all[k].boot + 1) for k in range(1, len(all) - 1)]
        del all[1 + gaps.index(min(gaps))]


class Leases:
    """The clock of a queue, what machines have read of it, and how long leases may be. lengths: until when a worker
    with that lease counts as alive. number: of this clock, for the case that another one takes its place."""

    MACHINES, MOST = 64, 256

    def __init__(self, queue):
        self.queue, self.clock, self.lengths = queue, None, {}
        self.world, self.too_early = 0, []  # the true time, which nobody in the queue knows
        self.judged = 0
        self.forget()

    def forget(self):
        self.number, self.until, self.machines = None, 0, {}

    def begin(self, job, length):
        """It lasts from now on."""
        job.score = max(self.queue.now, self.clock or 0) + length
        job.held_until = self.world + length
        job.run = job.token

    def lives(self, length, alive):
        """A worker with this lease. A length stays for an hour; where no worker is alive any more, which may be
        the doing of a step, that hour begins now."""
        now, latest = self.queue.now, max(self.lengths.values(), default=self.queue.now)
        if latest < now:
            self.lengths = {one: until + now - latest for one, until in self.lengths.items()}
        self.lengths[length] = now + alive
        self.lengths = {one: until for one, until in self.lengths.items() if until > now - HOUR}

    # ---- judging ----

    def over(self):
        """Those that were found to be over."""
        return [job for job in self.queue.within("running") if job.score == 0]

    def left(self, job):
        """How long a lease lasts, if nothing happens to the clocks."""
        return max(0, job.score - max(self.queue.now, self.clock or 0)) if self.queue.locked(job) else 0

    def is_followed(self, worker, id, fence):
        """Whether a run was taken over, and no lock tells: that of the present run may have ended."""
        job = self.queue.at(id, "running")
        return job is not None and not self.queue.locked(job) and job.run != f"{worker}:{fence}"

    def running(self):
        """Those that are not known to be over, in the order of their ends."""
        return [job for job in self.queue.within("running") if job.score > 0]

    def read(self, machine, boot, shown):
        """A machine reads the clock, and shows what it has read before. Returns [clock, number, after]: in how many
        ms the first lease may be over; 0: that is not known."""
        running, now = self.running(), self.queue.now
        boot = int(boot)
        if not running or not self.lengths:
            return [0, 0, 0]
        if now > self.until:
            self.forget()
        # A lease that begins next may be a short one.
        before = min(running[0].score, (self.clock or 0) + min(self.lengths)) - max(self.lengths)
        begins = self.number is None
        self.number = self.number or f"{now}000"
        known = self.machines.get(machine) or Machine()
        reading = self.of_this_clock(shown)
        is_new = reading is not None and known.add(reading, min(self.lengths), before)
        self.end_leases(known.readings, boot)
        self.go_on(known.last, boot)
        if (is_new or begins) and (machine in self.machines or self.has_room()):
            self.machines[machine], self.until = known, now + DAY
        left = self.running()
        return [self.clock, self.number, self.after(left[0].score, known.readings, boot) if left else 0]

    def of_this_clock(self, shown):
        parts = re.fullmatch(r"(\d+):(\d+):(\d+):(\d+)", shown)
        number, *rest = map(int, parts.groups()) if parts else (None,)
        if number != int(self.number) or rest[0] > (self.clock or 0):
            return None
        return Reading(*rest)

    def end_leases(self, readings, boot):
        """Of each length a reading must be as old: it is not known how long a lease is."""
        ended = []
        for length in self.lengths:
            old = [one for one in readings if one.age(boot, self.queue.now) >= length]
            if not old:
                return
            ended.append(old[-1].clock + length)
        for job in self.running():
            if job.score < min(ended):
                if job.held_until > self.world:
                    self.too_early.append(f"{job.id}, by {job.held_until - self.world} ms")
                job.score, job.token = 0, None
                self.judged += 1

    def after(self, ends, readings, boot):
        waits = []
        for length in self.lengths:
            usable = [one for one in readings if one.clock > ends - length]
            if not usable:
                return 0
            waits.append(length - max(one.age(boot, self.queue.now) for one in usable) + 1)
        return max(0, *waits)

    def go_on(self, last, boot):
        """Past all leases, also if Redis's clock was ahead when they began; while it is behind, at the usual
        speed."""
        speed = last.clock + last.age(boot, self.queue.now) if last else 0
        latest = max(job.score for job in self.queue.within("running")) - max(self.lengths)
        self.clock = max(self.queue.now, (self.clock or 0) + 1, speed, latest + 1)

    def has_room(self):
        """Machines that were not seen for an hour give way, if there are many; for a lease, if there are too many."""
        if len(self.machines) >= self.MACHINES:
            silent = HOUR if len(self.machines) < self.MOST else max(self.lengths)
            self.machines = {name: one for name, one in self.machines.items()
                             if not one.last or one.last.clock >= self.clock - silent}
        return len(self.machines) < self.MOST

    # ---- all of it ----

    def forget_the_past(self):
        if self.queue.now > self.until:
            self.forget()

    def keys(self):
        there = self.number is not None and self.queue.now <= self.until
        return {
            "clock": {"clock": str(self.clock)} if self.clock is not None else {},
            "leases": {str(length): until for length, until in self.lengths.items()},
            "readings": {"#": self.number, **{name: " ".join(map(str, one.readings))
                                             for name, one in self.machines.items()}} if there else {},
        }
