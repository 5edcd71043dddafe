"""What workers and commands do to schedules, at random: a part of model_play.py."""
import collections
import json

from model_answers import OK
from schedule_model import Decision, Ticks
from support import require

IDS = ("nightly", "sweep", "hourly")


class SchedulePlay:
    """Of a play: its words, and send()."""

    def begin_schedules(self):
        self.files = [self.file(0)]  # the versions of the workers' file, the oldest first
        self.reckoned = []  # requests of workers that were held up
        self.borrowed = set()  # the ids of other jobs that ticks were given
        self.decided = collections.defaultdict(set)  # the ticks of each schedule
        self.made_jobs = collections.deque(maxlen=8)  # the last jobs of schedules

    def schedule_actions(self):
        if "schedules" not in self.features:
            return {}
        return {self.command_schedule: 0.7, self.name_schedules: 1.5, self.change_file: 0.3,
                self.change_schedule: 1.2, self.reckon: 4, self.hurry_on: 1, self.read_schedules: 0.7}

    # ---- words ----

    def definition(self):
        every = self.random.choice((self.pace, 7 * self.pace, 50 * self.pace, 3600000))
        head = {"every": every, "job": self.plain_head()}
        some = {"missed": ("all", "skip"), "overlap": ("allow", "cancel"), "jitter": (every // 2,),
                "catch_up": (3 * every, 30 * every), "limit": (1, 5), "start": (
                    self.now - 1, self.now + 3 * every), "end": (self.now + 20 * every,)}
        for name, values in some.items():
            if self.chance(0.5 if name in ("missed", "overlap", "catch_up") else 0.15):
                head[name] = self.random.choice(values)
        if head.get("missed") == "all":  # by default a queue would fill with jobs
            head.setdefault("catch_up", 30 * every)
        return json.dumps(head) + "\n" + self.payload()

    def file(self, rev):
        """What the file of the workers says: of each schedule its definition and rev."""
        return {id: (self.definition(), rev) for id in IDS[:2] if self.chance(0.8)}

    def schedule_id(self):
        return self.random.choice(IDS)

    def a_tick_after(self, value):
        """The next one; rarely one that has come, so that a worker reckons."""
        return self.now - 1 if self.chance(0.1) else self.next_of(value)

    def next_of(self, value):
        tick = Ticks(json.loads(value.partition("\n")[0])).next(self.now)
        return "" if tick is None else tick

    def job_of_schedule(self):
        self.made += 1
        name = f"tick-{self.made:06}"
        self.made_jobs.append(name)
        self.ever.add(name)
        return name

    # ---- what a file says, and commands ----

    def put_schedule(self, id, value, how, rev, next=None):
        self.pass_time(1)  # two changes at once are one
        next = self.a_tick_after(value) if next is None else next
        self.send("cron_put", self.not_after(), id, next, value, how, rev)
        self.look_at_wake()

    def command_schedule(self):
        """It writes one, the same again, or one with another payload."""
        schedule, value = self.model.schedules.live(id := self.schedule_id()), self.definition()
        if schedule and self.chance(0.4):
            line = schedule.value.partition("\n")[0]
            value = self.random.choice((schedule.value, line + "\n" + self.payload()))
        self.put_schedule(id, value, "", 0)

    def look_at_wake(self):
        if self.chance(0.3):
            self.harness.look_at_wake()

    def change_file(self):
        """The workers that start from now on have another file; this one reloads it."""
        before, rev = self.files[-1], len(self.files) * self.random.choice((0, 1))
        changed = {**before, **self.file(rev)}
        if self.chance(0.3):  # the same, but newer
            changed = {id: (value, rev) for id, (value, _) in before.items()}
        self.files.append(changed)
        worker = self.any_worker()
        worker.file, worker.has_put = changed, False

    def name_schedules(self, worker=None):
        worker = worker or self.any_worker()
        if worker.file is None:  # some workers of an older version go on, or start again
            worker.file = self.files[-1] if self.chance(0.7) else self.random.choice(self.files)
        for id, (value, rev) in worker.file.items():
            self.put_schedule(id, value, "keep" if worker.has_put else "start", rev)
        worker.has_put = True

    def change_schedule(self):
        id, what = self.schedule_id(), self.random.choice(
            ("pause", "resume", "resume", "resume", "remove", "run", "run"))
        schedule = self.model.schedules.live(id)
        self.pass_time(1)
        words = self.job_of_schedule() if what == "run" else ""
        if what == "resume" and schedule:
            words = self.next_of(schedule.value)
        if what == "run" and schedule and schedule.ran and self.chance(0.3):
            words = schedule.ran  # the answer was lost
        self.send("cron_change", self.not_after(), id, what, words)
        self.look_at_wake()

    def is_last_run(self, words):
        """A command sends a run again soon, before another command has made one."""
        schedule = self.model.schedules.live(words[1])
        return words[2] != "run" or not schedule or schedule.ran == words[3]

    def read_schedules(self):
        if self.chance(0.5):
            self.send("cron_list", 0, *(self.random.choice(("", self.schedule_id())) for _ in range(2)))
        else:
            self.send("cron_read", self.random.randint(0, 1), *self.random.sample(IDS, 2))

    # ---- ticks ----

    def told_of_ticks(self, due=None):
        """A claim or a check. Mostly the worker does what it is told; it may be held up, or die."""
        if self.chance(0.8):
            self.reckon(due)

    def reckon(self, due=None):
        """A worker knows what is due, or reads it, and says what comes of it; another one may have read the
        same."""
        if due is None:
            due = self.send("cron_due", self.random.choice((1, 2, 100)), self.any_worker().name)[2:]
        due = [due[k:k + 5] for k in range(0, len(due), 5)]
        requests = [self.decide(due) for _ in range(self.random.choice((1, 1, 1, 2)))] if due else []
        for words in requests:
            if self.chance(0.1):
                self.reckoned.append(words)
                if self.chance(0.5):
                    self.change_meanwhile(due[0][0])
            else:
                self.tick(words)

    def change_meanwhile(self, id):
        """Its next tick was reckoned before that came."""
        one = self.model.schedules.live(id)
        if one and one.next:
            line = one.value.partition("\n")[0]
            self.put_schedule(id, line + "\n" + self.payload(), "", 0, one.next)

    def hurry_on(self):
        """A worker that was held up goes on."""
        if self.reckoned:
            self.tick(self.reckoned.pop(self.random.randrange(len(self.reckoned))))

    def decide(self, due):
        words, room = [self.not_after(), self.random.randint(0, 1)], self.random.choice((1, 4, 250, 250))
        for id, next, line, state, _ in due:
            if room == 0:
                break
            head, state = json.loads(line), state.fields
            decision = Decision(head, state["from"], self.now)
            decision.cut(room)
            room -= len(decision.made)
            words += [id, state["gen"], next, "" if decision.next is None else decision.next, decision.since,
                      decision.dropped, len(decision.made)]
            for tick in decision.made:
                words += [self.tick_job(), tick, tick + self.random.randint(0, head.get("jitter", 0))]
        return words

    def tick_job(self):
        """An id that is new; or one that is known, although that cannot be by chance."""
        known = [job.id for job in self.model.jobs.values() if "start_by" not in job.head]
        if not known or not self.chance(0.02):
            return self.job_of_schedule()
        self.borrowed.add(id := self.random.choice(known))
        return id

    def tick(self, words):
        if any(id not in self.model.jobs for id in self.borrowed.intersection(map(str, words))):
            return  # it has ended; a new job has no such id
        answer = self.send("cron_tick", *words)
        if answer[0] == OK:
            self.note_decided(words, answer[3])
        self.look_at_wake()
        if words[1] and self.chance(0.95):
            self.claim()  # as the worker has said
        elif words[1]:
            self.pass_time(200)
            self.check()  # it has died, and another one comes
        if answer[0] == OK and answer[2] and self.chance(0.8):
            self.reckon()

    def note_decided(self, words, codes):
        """No tick of a schedule is decided on twice."""
        at = 2
        for code in codes:
            id, n = words[at], words[at + 6]
            ticks = words[at + 8:at + 7 + 3 * n:3] if code == OK else []
            decided = self.decided[self.model.schedules.live(id)]
            twice = decided.intersection(ticks)
            require(not twice, f"the ticks {twice} of {id} are decided on twice: {self.harness.where}")
            decided.update(ticks)
            at += 7 + 3 * n

    # ---- the end ----

    def stop_schedules(self):
        for id in IDS:
            self.send("cron_change", 0, id, self.random.choice(("pause", "remove")), "")

    def end_schedules(self):
        """Those of commands are removed; the others end when no file names them."""
        for id in IDS:
            schedule = self.model.schedules.live(id)
            if schedule and (schedule.named is None or self.chance(0.5)):
                self.send("cron_change", 0, id, "remove", "")
        while self.model.schedules.all:
            until = min(one.named for one in self.model.schedules.all.values())
            self.pass_time(max(1, until - self.now))
            self.check(self.any_worker())
