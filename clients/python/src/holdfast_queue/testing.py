"""Tests of code that enqueues, without Redis.

    with hf.testing("fake") as q:      jobs are kept in a list
        sign_up("ada@example.com")
        assert q.jobs[0].args == {"to": "ada@example.com"}
        q.run_all()                    runs them, and those that they enqueue

    with hf.testing("inline"):         each job runs at once, where it is enqueued

Arguments go through JSON in both, as they do in Redis."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from . import _app, _job, _run
from ._job import Job
from ._loop import run_in_thread
from ._ref import JobRef, Outcome, State
from .errors import Cancel, Dead, HoldfastError, JobCancelled, JobDead, Release, Retry

if TYPE_CHECKING:
    from ._app import Call, Holdfast

Mode = Literal["fake", "inline"]
_MAX_ATTEMPTS = 20  # of a worker without other settings


class FakeJob(JobRef):
    """A job of a test mode: `type`, `args`, `headers`, `options`, and what came of it."""

    __slots__ = ("type", "args", "payload", "headers", "options", "due", "call", "ended", "value", "error", "fake",
                 "attempts")

    def __init__(self, hf: Holdfast, id: str, call: Call, record: bytes, fake: Fake):
        super().__init__(hf, id, call.queue, "new", kept=call.plan.kept)
        line, _, self.payload = record.partition(b"\n")
        fields = json.loads(line)
        self.call = call
        self.type = call.type
        self.args: Any = json.loads(self.payload) if call.args is not None else self.payload
        self.headers: dict[str, str] = fields.pop("headers", {})
        self.options: dict[str, Any] = {k: v for k, v in fields.items() if k not in ("type", "created")}
        self.due = call.plan.due
        self.ended: State = "waiting"
        self.value: Any = None
        self.error: BaseException | None = None
        self.fake = fake
        self.attempts = 0

    def __repr__(self) -> str:
        return f"<FakeJob {self.type} {self.args!r} {self.ended}>"

    @property
    def max_attempts(self) -> int:
        function = self._hf.jobs.get(self.type)
        declared = None if function is None else function.ready.get("max_attempts")
        return int(self.options.get("max_attempts") or declared or _MAX_ATTEMPTS)

    def job(self) -> Job:
        return Job(id=self.id, type=self.type, queue=self.queue, attempt=self.attempts + 1,
                   max_attempts=self.max_attempts, headers=self.headers, payload=self.payload, created=int(time.time() * 1000))

    def state(self) -> State:
        return self.ended

    async def astate(self) -> State:
        return self.ended

    def cancel(self) -> bool:
        if self.ended != "waiting":
            return False
        self.fake.remove(self, "cancelled")
        return True

    async def acancel(self) -> bool:
        return self.cancel()

    def result(self, timeout: float | None = None) -> Any:
        self._must_be_kept()
        if self.ended == "waiting":
            raise HoldfastError(f"{self.type}: the test mode has not run this job yet: call run_all() first")
        if self.ended == "cancelled":
            raise JobCancelled(self, "it was cancelled")
        if self.error is not None:
            raise JobDead(self, _run.end_of_error(None, self.job(), self.error).error)
        return self.value

    async def aresult(self, timeout: float | None = None) -> Any:
        return self.result(timeout)


class Fake:
    """The jobs of a test mode. `jobs` wait, `done` have run."""

    def __init__(self, mode: Mode):
        self.mode = mode
        self.jobs: list[FakeJob] = []
        self.done: list[FakeJob] = []

    def __len__(self) -> int:
        return len(self.jobs)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[FakeJob]:
        return iter(self.jobs)

    def of(self, type: str) -> list[FakeJob]:
        """The waiting jobs of a type."""
        return [job for job in self.jobs if job.type == type]

    def clear(self) -> None:
        self.jobs.clear()
        self.done.clear()

    def remove(self, job: FakeJob, ended: State) -> None:
        self.jobs.remove(job)
        self.done.append(job)
        job.ended = ended

    def _put_back(self, job: FakeJob) -> None:
        self.done.remove(job)
        self.jobs.append(job)
        job.ended = "waiting"

    # ---- enqueueing ----

    def _add(self, hf: Holdfast, calls: list[Call]) -> list[JobRef]:
        made = [FakeJob(hf, call.plan.id or hf._ids.next(), call, call.record(None), self) for call in calls]
        refs: list[JobRef] = []
        for job in made:
            holder, outcome = self._holder(job)
            if holder is not None:
                refs.append(JobRef(hf, holder.id, holder.queue, outcome))
            else:
                self.jobs.append(job)
                refs.append(job)
        return refs

    def _holder(self, job: FakeJob) -> tuple[FakeJob | None, Outcome]:
        for other in self.jobs:
            if other.queue == job.queue and other.id == job.id:
                return other, "exists"
            key = job.options.get("unique")
            if key is not None and other.queue == job.queue and other.options.get("unique") == key \
                    and job.options.get("on_conflict", "skip") == "skip" and "debounce" not in job.options:
                return other, "skipped"
        return None, "new"

    def take(self, hf: Holdfast, calls: list[Call]) -> list[JobRef]:
        refs = self._add(hf, calls)
        if self.mode == "inline":
            for ref in refs:
                if isinstance(ref, FakeJob):
                    self._run(ref)
        return refs

    async def atake(self, hf: Holdfast, calls: list[Call]) -> list[JobRef]:
        refs = self._add(hf, calls)
        if self.mode == "inline":
            for ref in refs:
                if isinstance(ref, FakeJob):
                    await self._arun(ref)
        return refs

    # ---- running ----

    def run_all(self) -> int:
        """Runs the waiting jobs, in their order and whatever their time, and those that they enqueue: each one once.
        A job that raises Retry or Release is in `jobs` again, for the next call, until its attempts are used up.
        Returns how many ran. An exception of a handler ends it."""
        ran: list[FakeJob] = []
        while (job := self._next(ran)) is not None:
            self._run(job)
        return len(ran)

    async def arun_all(self) -> int:
        ran: list[FakeJob] = []
        while (job := self._next(ran)) is not None:
            await self._arun(job)
        return len(ran)

    def _next(self, ran: list[FakeJob]) -> FakeJob | None:
        """The first job that is not among those that ran, of which it then is one."""
        for job in self.jobs:
            if not any(job is each for each in ran):
                ran.append(job)
                return job
        return None

    def _run(self, fake: FakeJob) -> None:
        function = fake._hf.jobs.get(fake.type)
        if function is not None and (_run.is_async(function.fn) or any(map(_run.is_async, fake._hf._middleware))):
            _in_a_loop(self._arun(fake))
            return
        with self._ending(fake):
            job = fake.job()
            args = self._args(fake, job)
            token = _job._running.set(job)
            try:
                assert function is not None
                self._take_value(fake, _run.call_sync(fake._hf._middleware, job, function.fn, args))
            finally:
                _job._running.reset(token)

    async def _arun(self, fake: FakeJob) -> None:
        function = fake._hf.jobs.get(fake.type)
        with self._ending(fake):
            job = fake.job()
            args = self._args(fake, job)
            token = _job._running.set(job)
            try:
                assert function is not None
                self._take_value(fake, await _run.call_async(fake._hf._middleware, job, function.fn, args,
                                                             run_in_thread))
            finally:
                _job._running.reset(token)

    def _args(self, fake: FakeJob, job: Job) -> dict[str, Any]:
        function = fake._hf.jobs.get(fake.type)
        if function is None:
            raise HoldfastError(f"expected a function for the type '{fake.type}', found none")
        return function.params.unpack(fake.payload, job)

    def _take_value(self, fake: FakeJob, value: Any) -> None:
        end = _run.end_of_value(value)
        if end.word != "done":
            raise Dead(end.error)
        fake.value = value if end.body is None or not end.json else json.loads(end.body)

    @contextmanager
    def _ending(self, fake: FakeJob) -> Iterator[None]:
        """A verdict is an end, and no error of the test."""
        self.remove(fake, "running")
        try:
            yield
        except Cancel:
            fake.ended = "cancelled"
        except (Retry, Release) as verdict:
            fake.attempts += isinstance(verdict, Retry)
            fake.error = verdict
            if isinstance(verdict, Retry) and fake.attempts >= fake.max_attempts:
                fake.ended = "dead"
            else:
                fake.due = -(verdict.delay or 0)
                self._put_back(fake)
        except Dead as verdict:
            fake.ended, fake.error = "dead", verdict
        except BaseException as error:
            fake.attempts += 1
            fake.ended, fake.error = "dead", error
            raise
        else:
            fake.ended = "done"


def _in_a_loop(coroutine: Any) -> None:
    """Runs it to its end, also where a loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    caught: list[BaseException] = []

    def target() -> None:
        try:
            asyncio.run(coroutine)
        except BaseException as error:
            caught.append(error)
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if caught:
        raise caught[0]


def _checked(mode: str) -> Mode:
    if mode not in ("fake", "inline"):
        raise ValueError(f"expected the mode 'fake' or 'inline', found {mode!r}")
    return mode  # type: ignore[return-value]


@contextmanager
def testing(hf: Holdfast, mode: Mode) -> Iterator[Fake]:
    before, hf._testing = hf._testing, Fake(_checked(mode))
    try:
        yield hf._testing
    finally:
        hf._testing = before


@contextmanager
def testing_all(mode: Mode) -> Iterator[Fake]:
    """The same for every Holdfast of the process."""
    before, fake = _app._testing_all, Fake(_checked(mode))
    _app._testing_all = fake
    try:
        yield fake
    finally:
        _app._testing_all = before


__all__ = ["Fake", "FakeJob", "testing", "testing_all"]
