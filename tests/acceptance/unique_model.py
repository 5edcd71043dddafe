"""What unique keys mean, as a small program: who holds a key, who is parked, and what happens at each end.
It knows docs/keys.md and nothing of the scripts."""

VOIDS = ("cancelled", "deleted", "purged")


class Job:
    def __init__(self, job_id, options, payload, due):
        self.id, self.options, self.payload, self.due = job_id, options, payload, due
        self.state, self.cancel, self.token = "waits", False, None

    @property
    def key(self):
        return self.options.get("unique")

    @property
    def until(self):
        return "start" if "debounce" in self.options else self.options.get("unique_until", "end")

    @property
    def length(self):
        return self.options.get("throttle", self.options.get("unique_for", 0))

    @property
    def mode(self):
        return "replace" if "debounce" in self.options else self.options.get("on_conflict", "skip")

    def due_at(self, now, first):
        if "debounce" in self.options:
            return min(now + self.options["debounce"], first + self.options["max_wait"])
        return self.due


class Entry:
    def __init__(self, job, window, first):
        self.holder, self.until, self.window, self.first, self.parked = job.id, job.until, window, first, None


class Model:
    def __init__(self):
        self.jobs, self.entries, self.ended = {}, {}, {}

    # ---- who holds a key

    def holder(self, key, now):
        """The entry, and how it is held: waits, runs, dead, or window; None: it is free."""
        entry = self.entries.get(key)
        job = self.jobs.get(entry.holder) if entry else None
        if job and (job.state == "waits" or job.state == "runs" and entry.until != "start"
                    or job.state == "dead" and entry.until == "done"):
            return entry, job.state
        return (entry, "window") if entry and entry.window > now else (None, None)

    def window(self, job, start):
        return start + job.length if job.length else 0

    # ---- the ends

    def free(self, key, now, void=False):
        entry = self.entries[key]
        window = 0 if void or entry.window <= now else entry.window
        if entry.parked:
            self.unpark(key, now, window)
        elif not window:
            del self.entries[key]

    def unpark(self, key, now, least):
        entry = self.entries[key]
        job, start = self.jobs[entry.parked], max(now, least)
        job.state, job.due = "waits", max(job.due, start)
        self.entries[key] = Entry(job, self.window(job, start),
                                  entry.first if "debounce" in job.options else 0)

    def leave(self, job_id, how, now):
        job = self.jobs[job_id]
        entry = self.entries.get(job.key)
        if how == "dead":
            job.state = "dead"
        else:
            del self.jobs[job_id]
            self.ended[job_id] = how
        if entry and entry.parked == job_id:
            entry.parked = None
        elif entry and entry.holder == job_id and not (how == "dead" and entry.until == "done"):
            self.free(job.key, now, how in VOIDS)

    def start(self, job_id, now):
        job = self.jobs[job_id]
        job.state = "runs"
        entry = self.entries.get(job.key)
        if entry and entry.holder == job_id and job.until == "start":
            self.free(job.key, now)

    def back(self, job_id, due, now):
        job = self.jobs[job_id]
        entry = self.entries.get(job.key)
        job.state, job.due, job.cancel = "waits", due, False
        if entry and entry.holder == job_id and entry.parked:
            self.unpark(job.key, now, max(due, entry.window))
            self.leave(job_id, "replaced", now)
        elif entry and entry.holder == job_id:
            entry.first = 0 # a debounce counts from what comes now
        elif job.key and job.until == "start" and not self.holder(job.key, now)[0]:
            self.entries[job.key] = Entry(job, 0, 0)

    def requeue(self, job_id, now):
        """Whether a dead job may run again."""
        job = self.jobs[job_id]
        entry, _ = self.holder(job.key, now) if job.key else (None, None)
        if entry and entry.holder != job_id:
            return False
        if job.key and not entry:
            self.entries[job.key] = Entry(job, 0, 0)
        job.state, job.due = "waits", now
        return True

    # ---- enqueue

    def enqueue(self, job, now):
        """The job is accepted, or meets another: None, or (how, id, state)."""
        if job.id in self.jobs:
            return "known"
        entry, state = self.holder(job.key, now) if job.key else (None, None)
        if entry and job.mode == "skip":
            return "skipped", entry.holder, state
        if state == "waits" and job.mode == "replace":
            return self.replace(entry, job, now)
        if entry and state != "window":
            return self.park(entry, job, now, state)
        start = now
        if entry:
            start = min(entry.window, now + job.length) if job.length else entry.window
            job.due = max(job.due, start)
        if job.key:
            debounced = "debounce" in job.options
            job.due = max(job.due_at(now, now), start if entry else 0)
            self.entries[job.key] = Entry(job, self.window(job, start), now if debounced else 0)
        self.jobs[job.id] = job
        return None

    def replace(self, entry, new, now):
        old, first = self.jobs[entry.holder], entry.first or now
        old.options, old.payload = new.options, new.payload
        old.due = new.due_at(now, first)
        entry.until, entry.window = new.until, self.window(new, now)
        entry.first = first if "debounce" in new.options else 0
        return "replaced", old.id, "waits"

    def park(self, entry, new, now, state):
        first = entry.first if entry.parked and entry.first else now
        new.due = new.due_at(now, first)
        entry.first = first if "debounce" in new.options else 0
        if new.mode == "cancel" and state == "runs":
            self.jobs[entry.holder].cancel = True
        if entry.parked:
            parked = self.jobs[entry.parked]
            parked.options, parked.payload, parked.due = new.options, new.payload, new.due
            return "replaced", entry.parked, "parked"
        new.state, entry.parked = "parked", new.id
        self.jobs[new.id] = new
        return "parked", entry.holder, state
