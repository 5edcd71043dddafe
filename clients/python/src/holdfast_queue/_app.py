"""`Holdfast`: jobs as functions, and what enqueues them."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, Union, overload

from . import _link, _record, _trace
from ._args import Params, to_json
from ._durations import to_ms
from ._ids import IdMaker, check_name, shard_of
from ._job import Job
from ._link import Link, Sharded, Steps
from ._options import Duration, Options, count, due_of, fields_of
from ._ref import JobRef, Outcome
from ._run import is_async
from ._schedules import Schedule
from .errors import HoldfastError, NoAnswer, Refused

if TYPE_CHECKING:
    from typing_extensions import TypeVarTuple, Unpack

    Ts = TypeVarTuple("Ts")

    from ._link_async import AsyncLink
    from .testing import Fake

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Exceptions = Union[type[BaseException], tuple[type[BaseException], ...]]
Backoff = Callable[[int, BaseException], Union[Duration, None]]

JOBS_MAX = 10000  # of one call
BYTES_MAX = 64 << 20  # of its records
PAYLOAD_MAX = 63 << 20
_EXISTS, _LATE, _PLAIN_EXISTS = -1, -4, (-1, -6, -7)
_HOW: Mapping[bytes, Outcome] = {b"skipped": "skipped", b"replaced": "replaced", b"parked": "parked"}


class Plan:
    """The options of a call, read once."""

    __slots__ = ("queue", "id", "due", "fields", "optional", "head", "kept")

    def __init__(self, type: str, queue: str, options: Mapping[str, Any], kept: bool):
        self.fields = fields_of(options)
        self.queue = check_name(options.get("queue") or queue, "queue")
        self.id = check_name(options["id"], "id") if options.get("id") is not None else None
        self.due = due_of(options)
        self.optional = _record.has_options(self.fields)
        self.kept = kept or "keep" in self.fields
        # A made id tells when; without headers of a call all its records begin the same.
        self.head = _record.line(type, None, self.fields)


class Call:
    """One job that is not enqueued yet. Hooks of `on_enqueue` may change `args` and `headers`."""

    __slots__ = ("type", "args", "payload", "function", "plan", "_headers")

    def __init__(self, type: str, plan: Plan, args: dict[str, Any] | None, payload: bytes | None = None,
                 function: JobFunction[Any, Any, Any] | None = None):
        self.type = type
        self.plan = plan
        self.args = args
        self.payload = payload
        self.function = function
        self._headers: dict[str, str] | None = None

    @property
    def queue(self) -> str:
        return self.plan.queue

    @property
    def headers(self) -> dict[str, str]:
        if self._headers is None:
            headers = self.plan.fields.get("headers", {})
            assert isinstance(headers, dict)
            self._headers = dict(headers)
        return self._headers

    def record(self, created: int | None) -> bytes:
        body = self.payload
        if body is None:
            body = to_json(self.args)
        if len(body) > PAYLOAD_MAX:
            raise ValueError(f"{self.type}: expected a payload of at most {PAYLOAD_MAX} bytes, found {len(body)}")
        if created is None and self._headers is None:
            return self.plan.head + body
        fields = self.plan.fields
        if self._headers is not None:
            _record.check_headers(self._headers)
            fields = {**fields, "headers": self._headers}
        return _record.line(self.type, created, fields) + body

    def __repr__(self) -> str:
        return f"<Call {self.type} {self.args!r}>"


class Bound(Generic[Q]):
    """A job with options: what `using()` returns."""

    __slots__ = ("_function", "_plan")

    def __init__(self, function: JobFunction[Any, Q, Any], plan: Plan):
        self._function = function
        self._plan = plan

    def call(self, *args: Q.args, **kwargs: Q.kwargs) -> Call:
        function = self._function
        return Call(function.type, self._plan, function.params.pack(args, kwargs), None, function)

    def enqueue(self, *args: Q.args, **kwargs: Q.kwargs) -> JobRef:
        hf = self._function.hf
        return hf._enqueue([self.call(*args, **kwargs)])[0]

    async def aenqueue(self, *args: Q.args, **kwargs: Q.kwargs) -> JobRef:
        hf = self._function.hf
        return (await hf._aenqueue([self.call(*args, **kwargs)]))[0]


class JobFunction(Generic[P, Q, R]):
    """A function that is a job. Called, it is still the plain function."""

    def __init__(self, hf: Holdfast, fn: Callable[P, R], type: str, *, queue: str | None, ready: dict[str, Any],
                 options: Mapping[str, Any], retry_on: tuple[type[BaseException], ...] | None,
                 dead_on: tuple[type[BaseException], ...], backoff: Backoff | None):
        self.hf = hf
        self.fn = fn
        self.is_async = is_async(fn)
        self.type = check_name(type, "type")
        self.queue = check_name(queue if queue is not None else hf.queue, "queue")
        self.params = Params(fn, type)
        self.ready = ready
        self.retry_on = retry_on
        self.dead_on = dead_on
        self.backoff = backoff
        self._options = dict(options)
        self._plan = Plan(type, self.queue, options, "keep" in ready)
        self.__name__ = getattr(fn, "__name__", type)
        self.__qualname__ = getattr(fn, "__qualname__", type)
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job {self.type} of queue {self.queue}>"

    def using(self, **options: Unpack[Options]) -> Bound[Q]:
        """The same job with other options: `f.using(delay="10m", unique="ada").enqueue(...)`."""
        return Bound(self, Plan(self.type, self.queue, {**self._options, **options}, "keep" in self.ready))

    def call(self, *args: Q.args, **kwargs: Q.kwargs) -> Call:
        """A job for `enqueue_many`."""
        return Call(self.type, self._plan, self.params.pack(args, kwargs), None, self)

    def enqueue(self, *args: Q.args, **kwargs: Q.kwargs) -> JobRef:
        return self.hf._enqueue([Call(self.type, self._plan, self.params.pack(args, kwargs), None, self)])[0]

    async def aenqueue(self, *args: Q.args, **kwargs: Q.kwargs) -> JobRef:
        call = Call(self.type, self._plan, self.params.pack(args, kwargs), None, self)
        return (await self.hf._aenqueue([call]))[0]


class _Lane:
    """A name under which one request at a time is numbered, so that Redis executes it once."""

    __slots__ = ("producer", "number")

    def __init__(self) -> None:
        self.producer = "py" + os.urandom(10).hex()
        self.number = 0


class Holdfast:
    """The jobs of a program, and the Redis that has them.

    url        REDIS_URL, or redis://localhost:6379/0; rediss://, unix://, redis+sentinel://h1,h2/master and
               redis+cluster://h1,h2 as everywhere in Holdfast
    queue      of jobs that do not name one
    deadline   how long a call waits for Redis before it fails with NoAnswer
    remember   how long Redis remembers requests, so that one that comes twice is executed once; it is at
               least twice the deadline
    lifespan   a context manager, or an async one, that each handler process enters before its first job
    parallel   how many jobs a process with async handlers runs at a time
    redis      more arguments for the client of redis-py, such as ssl_ca_certs"""

    def __init__(self, url: str | None = None, *, namespace: str = "hf", queue: str = "default",
                 deadline: Duration = "5s", remember: Duration = "60s", parallel: int = 16,
                 lifespan: Callable[[Holdfast], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
                 | None = None, redis: Mapping[str, Any] | None = None):
        self.url_given = url is not None
        self.url = url or os.environ.get("REDIS_URL") or "redis://localhost:6379/0"
        self.namespace = check_name(namespace, "namespace")
        self.queue = check_name(queue, "queue")
        self.lifespan = lifespan
        self.parallel = count(parallel, "parallel", 1024)
        self.jobs: dict[str, JobFunction[Any, Any, Any]] = {}
        self.schedules: dict[str, Schedule] = {}
        self._deadline = to_ms(deadline, "deadline", 1) / 1000
        self._remember = max(to_ms(remember, "remember", 1), int(2000 * self._deadline))
        self._clock: tuple[int, float] | None = None  # Redis's at its last answer, and this machine's
        self._hooks: list[Callable[[Call], Any]] = []
        self._middleware: list[Callable[..., Any]] = []
        self._starts: list[Callable[[], Any]] = []
        self._stops: list[Callable[[], Any]] = []
        self._registered: set[str] = set()
        self._shards: dict[str, list[str]] = {}
        self._turn = 0
        self._ids = IdMaker()
        self._lanes: list[_Lane] = []
        self._testing: Fake | None = None
        self._redis = dict(redis or {})
        self._link = Link(_link.parse(self.url), self._redis, self._deadline)
        self._alink: AsyncLink | None = None
        self._making = threading.Lock()
        _all.add(self)

    # ---- jobs ----

    @overload
    def job(self, fn: Callable[Concatenate[Job, Q], R], /) -> JobFunction[Concatenate[Job, Q], Q, R]: ...
    @overload  # the language cannot take the last parameter away: what is before it is not checked
    def job(self, fn: Callable[[Unpack[Ts], Job], R], /) -> JobFunction[..., ..., R]: ...
    @overload
    def job(self, fn: Callable[P, R], /) -> JobFunction[P, P, R]: ...
    @overload
    def job(self, type: str | None = None, /, *, queue: str | None = None, timeout: Duration | None = None,
            max_attempts: int | None = None, keep: Duration | None = None, on_dead: str | None = None,
            priority: Literal["high", "normal", "low"] | None = None, start_within: Duration | None = None,
            expired: Literal["drop", "dead"] | None = None, retry_on: Exceptions | None = None,
            dead_on: Exceptions | None = None, backoff: Backoff | None = None) -> _Decorator: ...

    def job(self, type: Any = None, /, *, queue: str | None = None, timeout: Duration | None = None,
            max_attempts: int | None = None, keep: Duration | None = None, on_dead: str | None = None,
            priority: str | None = None, start_within: Duration | None = None, expired: str | None = None,
            retry_on: Exceptions | None = None, dead_on: Exceptions | None = None,
            backoff: Backoff | None = None) -> Any:
        """Makes a function a job. Its type is the function's name unless it is given.

        queue, timeout, max_attempts, keep, on_dead: docs/jobs.md; an operator's file comes before them
        retry_on     exceptions that are tried again; without it all are
        dead_on      exceptions after which the job is dead at once; they are looked at first
        backoff      `backoff(attempt, error)` gives the wait before the next attempt, or None"""
        if callable(type):
            return self._add(type, None)
        if type is not None:
            check_name(type, "type")
        ready: dict[str, Any] = {}
        if timeout is not None:
            ready["timeout"] = to_ms(timeout, "timeout", 1, 30 * 86400000)
        if max_attempts is not None:
            ready["max_attempts"] = count(max_attempts, "max_attempts")
        if keep is not None:
            ready["keep"] = to_ms(keep, "keep", 1)
        if on_dead is not None:
            ready["on_dead"] = check_name(on_dead, "on_dead")
        options = {"priority": priority, "start_within": start_within, "expired": expired}

        def decorate(fn: Callable[..., Any]) -> JobFunction[Any, Any, Any]:
            return self._add(fn, type, queue=queue, ready=ready, retry_on=retry_on, dead_on=dead_on, backoff=backoff,
                             options={name: value for name, value in options.items() if value is not None})
        return decorate

    def _add(self, fn: Callable[..., Any], type: str | None, *, queue: str | None = None,
             ready: dict[str, Any] | None = None, options: Mapping[str, Any] | None = None,
             retry_on: Exceptions | None = None, dead_on: Exceptions | None = None,
             backoff: Backoff | None = None) -> JobFunction[Any, Any, Any]:
        name = type if type is not None else fn.__name__
        if name in self.jobs:
            known = self.jobs[name].fn
            raise ValueError(f"expected one function for the type '{name}', found {known.__module__}."
                             f"{known.__qualname__} and {fn.__module__}.{fn.__qualname__}: give one of them another "
                             "type")
        job: JobFunction[Any, Any, Any] = JobFunction(
            self, fn, name, queue=queue, ready=ready or {}, options=options or {},
            retry_on=None if retry_on is None else _classes(retry_on, "retry_on"),
            dead_on=_classes(dead_on or (), "dead_on"), backoff=backoff)
        self.jobs[name] = job
        return job

    def every(self, period: Duration, /, *, id: str | None = None, args: Mapping[str, Any] | None = None,
              **rules: Any) -> Callable[[F], F]:
        """Enqueues the job again and again. It may stand above `@hf.job`, or above a plain function."""
        return self._schedule({"every": to_ms(period, "every", 1000)}, id, args, rules)

    def cron(self, expression: str, /, *, tz: str | None = None, id: str | None = None,
             args: Mapping[str, Any] | None = None, **rules: Any) -> Callable[[F], F]:
        """Enqueues the job at the times of a cron expression. rules: missed, catch_up, overlap, jitter, start,
        end, limit, as in docs/schedules.md."""
        when: dict[str, Any] = {"cron": expression}
        if tz is not None:
            when["tz"] = tz
        return self._schedule(when, id, args, rules)

    def _schedule(self, when: dict[str, Any], id: str | None, args: Mapping[str, Any] | None,
                  rules: dict[str, Any]) -> Callable[[F], F]:
        def decorate(fn: F) -> F:
            job = fn if isinstance(fn, JobFunction) else self._add(fn, None)
            schedule = Schedule.make(id or job.type, job, when, args, rules)
            if schedule.id in self.schedules:
                raise ValueError(f"expected one schedule with the id '{schedule.id}', found two: name one with id=")
            self.schedules[schedule.id] = schedule
            return job  # type: ignore[return-value]
        return decorate

    def on_enqueue(self, hook: Callable[[Call], Any]) -> Callable[[Call], Any]:
        """Calls `hook(call)` for each job before it is enqueued, for example to set `call.headers["tenant"]`."""
        self._hooks.append(hook)
        return hook

    def on_start(self, fn: F) -> F:
        """Calls `fn()`, which may be async, once in each handler process, before its first job."""
        self._starts.append(fn)
        return fn

    def on_stop(self, fn: F) -> F:
        """Calls `fn()`, which may be async, when a handler process ends."""
        self._stops.append(fn)
        return fn

    def middleware(self, fn: F) -> F:
        """Puts `fn(job, call)` around each run; `call()` runs the rest, and its value is the result. In an
        async function `await call()`. The first one is the outermost."""
        self._middleware.append(fn)
        return fn

    # ---- enqueueing ----

    def enqueue_many(self, calls: Iterable[Call]) -> list[JobRef]:
        """Enqueues up to 10,000 jobs of one queue with one request: all of them, or none."""
        return self._enqueue(list(calls))

    async def aenqueue_many(self, calls: Iterable[Call]) -> list[JobRef]:
        return await self._aenqueue(list(calls))

    def send(self, type: str, payload: Any = None, /, **options: Unpack[Options]) -> JobRef:
        """Enqueues a job whose function is not known here. A payload of bytes goes as it is; anything else as
        JSON."""
        return self._enqueue([self._named(type, payload, options)])[0]

    async def asend(self, type: str, payload: Any = None, /, **options: Unpack[Options]) -> JobRef:
        return (await self._aenqueue([self._named(type, payload, options)]))[0]

    def ref(self, id: str, queue: str | None = None) -> JobRef:
        """A job that was enqueued elsewhere."""
        return JobRef(self, check_name(id, "id"), check_name(queue or self.queue, "queue"), "exists")

    def _named(self, type: str, payload: Any, options: Mapping[str, Any]) -> Call:
        check_name(type, "type")
        body = bytes(payload) if isinstance(payload, (bytes, bytearray)) else b"" if payload is None \
            else to_json(payload)
        return Call(type, Plan(type, self.queue, options, kept=True), None, body)  # perhaps: its function knows

    def _enqueue(self, calls: list[Call]) -> list[JobRef]:
        if self._hooks or _trace.is_there():
            self._call_hooks(calls)
        fake = self._testing or _testing_all
        if fake is not None:
            return fake.take(self, calls)
        return self._link.run(self._accept(calls)) if calls else []

    async def _aenqueue(self, calls: list[Call]) -> list[JobRef]:
        if self._hooks or _trace.is_there():
            self._call_hooks(calls)
        fake = self._testing or _testing_all
        if fake is not None:
            return await fake.atake(self, calls)
        return await self._async_link().run(self._accept(calls)) if calls else []

    def _call_hooks(self, calls: list[Call]) -> None:
        for call in calls:
            _trace.inject(call)
            for hook in self._hooks:
                hook(call)

    def _run(self, steps: Steps[T]) -> T:
        self._must_be_real()
        return self._link.run(steps)

    async def _arun(self, steps: Steps[T]) -> T:
        self._must_be_real()
        return await self._async_link().run(steps)

    def _async_link(self) -> AsyncLink:
        if self._alink is None:
            from ._link_async import AsyncLink  # and asyncio, with async code alone
            with self._making:
                if self._alink is None:
                    self._alink = AsyncLink(self._link.address, self._redis, self._deadline)
        return self._alink

    def _must_be_real(self) -> None:
        if (self._testing or _testing_all) is not None:
            raise HoldfastError("expected a job in Redis: in a test mode look at its list of jobs")

    def _prefix(self, tag: str) -> str:
        return f"{self.namespace}:{{{tag}}}:"

    @staticmethod
    def _word() -> str:
        return "py" + os.urandom(9).hex()

    @staticmethod
    def _is_later(error: Exception) -> bool:
        return _link._is_later(error)

    def _register(self, queue: str) -> Steps[None]:
        answer = yield from _link.send("register", self._prefix("/"), queue, deadline=self._deadline)
        self._note_time(answer)
        self._registered.add(queue)

    def _note_time(self, answer: list[Any]) -> None:
        self._clock = (answer[1], time.monotonic())

    def _known_until(self) -> int:
        """Until when Redis will remember a request that is sent now; earlier if this machine was suspended."""
        if self._clock is None:
            return 0
        at, since = self._clock
        return at + int((time.monotonic() - since) * 1000) + self._remember

    def _accept(self, calls: list[Call]) -> Steps[list[JobRef]]:
        plan = calls[0].plan
        queue, optional, chosen = plan.queue, False, 0
        if len(calls) > JOBS_MAX:
            raise ValueError(f"expected at most {JOBS_MAX} jobs in one call, found {len(calls)}")
        for call in calls:
            plan = call.plan
            if plan.queue != queue:
                raise ValueError(f"expected jobs of one queue, which are accepted all or none, found '{queue}' and "
                                 f"'{plan.queue}'")
            optional = optional or plan.optional
            chosen += plan.id is not None
        started = time.monotonic()
        if queue not in self._registered:
            yield from self._register(queue)
        tag = queue
        if queue in self._shards:
            tag = self._shard(queue, calls)
        lane = self._lanes.pop() if self._lanes else _Lane()
        try:
            for _ in range(8):
                ids = self._ids.several(len(calls)) if len(calls) > 1 else [self._ids.next()]
                words = self._words(calls, ids, chosen)
                waited = int((time.monotonic() - started) * 1000)
                lane.number += 1
                try:
                    answer = yield from _link.send(
                        "enqueue_with" if optional else "enqueue", self._prefix(tag), lane.producer, lane.number, 0,
                        self._remember, waited, *words, deadline=self._deadline, known_until=self._known_until())
                except Sharded as sharded:
                    self._shards[queue] = sharded.tags
                    tag = self._shard(queue, calls)
                    continue
                self._note_time(answer)
                if answer[0] == 0:
                    if len(answer) < 5 and not answer[3]:  # all are new
                        return [JobRef(self, id, queue, "new", tag, call.plan.kept) for id, call in zip(ids, calls)]
                    return self._refs(calls, ids, tag, answer)
                if answer[0] == _LATE:
                    raise NoAnswer("Redis has not answered at first, and its clock was set forward since then")
                if answer[0] != _EXISTS:
                    raise Refused(f"Redis answered {answer[0]}")  # of a made id another job exists: others
        finally:
            self._lanes.append(lane)
        raise Refused("all ids that were made are in use: is the clock of this machine set far back?")

    def _words(self, calls: list[Call], ids: list[str], chosen: int) -> list[Any]:
        words: list[Any] = []
        made = "n"
        size = 0
        if not chosen:
            for call, id in zip(calls, ids):
                record = call.record(None)
                size += len(record)
                words += (id, call.plan.due, record)
        else:
            now, made = time.time_ns() // 1000000, ""
            for k, call in enumerate(calls):
                if call.plan.id is None:
                    record, made = call.record(None), made + "n"
                else:
                    ids[k], record, made = call.plan.id, call.record(now), made + "c"
                size += len(record)
                words += (ids[k], call.plan.due, record)
        if size > BYTES_MAX:
            raise ValueError(f"expected at most {BYTES_MAX} bytes of jobs in one call, found {size}")
        words.append(made[0].upper() + made[1:])  # checked here: the script need not look at each character
        return words

    def _shard(self, queue: str, calls: list[Call]) -> str:
        tags = self._shards[queue]
        wanted = set()
        for call in calls:
            text = call.plan.fields.get("unique", call.plan.id)
            if text is not None:
                wanted.add(shard_of(str(text), len(tags)))
        if len(wanted) > 1:
            raise ValueError(f"expected jobs of one shard of queue '{queue}', which are accepted all or none: their "
                             "ids and unique keys belong to several")
        self._turn += 1
        return tags[wanted.pop() if wanted else self._turn % len(tags)]

    def _refs(self, calls: list[Call], ids: list[str], tag: str, answer: list[Any]) -> list[JobRef]:
        codes = answer[3] if len(answer) > 3 else ()
        refs = []
        for k, (call, id) in enumerate(zip(calls, ids)):
            outcome: Outcome = "exists" if codes and codes[k] in _PLAIN_EXISTS else "new"
            refs.append(JobRef(self, id, call.plan.queue, outcome, tag, call.plan.kept or outcome == "exists"))
        met = answer[4] if len(answer) > 4 else ()
        for place, how, other, _ in zip(met[::4], met[1::4], met[2::4], met[3::4]):
            ref = refs[int(place) - 1]
            ref.outcome = _HOW[bytes(how)]
            ref._kept = ref._kept or ref.outcome == "skipped"
            if ref.outcome != "parked":
                ref.id = other.decode()
        awaited = answer[5] if len(answer) > 5 else ()
        for place, accepted in zip(awaited[::2], awaited[1::2]):
            refs[int(place) - 1]._accepted = str(int(accepted))
        return refs

    # ---- the rest ----

    def testing(self, mode: Literal["fake", "inline"]) -> AbstractContextManager[Fake]:
        """For tests: "fake" keeps jobs in a list, "inline" runs each at once. Neither needs Redis."""
        from .testing import testing
        return testing(self, mode)

    def run(self, *, queues: Iterable[str] | None = None, processes: int | None = None,
            config: str | None = None, logs: bool = False) -> None:
        """Makes this program the worker: it executes `holdfast worker`, which starts copies of this program as
        handlers. In such a copy it runs jobs, and returns when the worker wants it to end. `logs` keeps what they
        print in Redis."""
        from ._worker import run
        run(self, list(queues) if queues is not None else None, processes, config, logs)

    def close(self) -> None:
        """Closes the connections of blocking calls. A later call opens new ones."""
        self._link.close()

    async def aclose(self) -> None:
        """Closes the connections of this event loop."""
        if self._alink is not None:
            await self._alink.aclose()

    def _forget(self) -> None:
        """In the child of a fork: the numbers and connections of the parent are the parent's."""
        self._lanes = []
        self._ids.forget()
        self._link.forget()
        self._alink = None
        self._making = threading.Lock()


class _Decorator:
    """What `hf.job(...)` returns, for type checkers."""

    @overload
    def __call__(self, fn: Callable[Concatenate[Job, Q], R], /) -> JobFunction[Concatenate[Job, Q], Q, R]: ...
    @overload
    def __call__(self, fn: Callable[[Unpack[Ts], Job], R], /) -> JobFunction[..., ..., R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> JobFunction[P, P, R]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Any:
        raise NotImplementedError


def _classes(value: Exceptions | tuple[()], name: str) -> tuple[type[BaseException], ...]:
    classes = value if isinstance(value, tuple) else (value,)
    for each in classes:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            raise TypeError(f"{name}: expected exception classes, found {each!r}")
    return classes


_all: weakref.WeakSet[Holdfast] = weakref.WeakSet()
_testing_all: Fake | None = None  # the pytest fixture's


def _after_fork() -> None:
    for hf in list(_all):
        hf._forget()


os.register_at_fork(after_in_child=_after_fork)
