"""A task's result: from what Redis keeps of its job, and into that.

The payload of a job is {"args": [...], "kwargs": {...}}, with "task" for what differs from Django's defaults. Of a
job that is done its result alone is left, so that has the arguments too, and when it ran."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Collection
from datetime import datetime, timedelta, timezone as zones
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import timezone
from redis.exceptions import RedisError

from .._app import Holdfast
from .._ids import check_name
from .._link import Command, Steps
from .._ref import JobRef
from ..errors import Interrupted, NoAnswer
from ._compat import TaskError, TaskResult, TaskResultStatus, task_at

_EPOCH = datetime(1970, 1, 1, tzinfo=zones.utc)
_CLASS = re.compile(r"([A-Za-z_][\w.]*)(?:: |$)")
_STATUS = {"running": TaskResultStatus.RUNNING, "dead": TaskResultStatus.FAILED, "done": TaskResultStatus.SUCCESSFUL}
NOT_RAISED = "holdfast_queue.errors.JobDead"  # the class of an end that no exception made
UNKNOWN_WORKER = "unknown"  # of attempts before the last ten
HISTORY_CUT = 250  # an error in the history may be cut if it is this long
_INTERRUPTED = f"{Interrupted.__module__}.{Interrupted.__qualname__}"


def time_of(ms: int | None) -> datetime | None:
    if ms is None:
        return None
    time = _EPOCH + timedelta(milliseconds=ms)
    return time if settings.USE_TZ else timezone.make_naive(time)


# ---- the payload ----

def payload_of(result: Any) -> dict[str, Any]:
    task = result.task
    more: dict[str, Any] = {}
    if task.backend != "default":
        more["backend"] = task.backend
    if task.priority:
        more["priority"] = task.priority
    if task.run_after is not None:
        more["run_after"] = task.run_after.isoformat()
    payload = {"args": result.args, "kwargs": result.kwargs}
    return {**payload, "task": more} if more else payload


def is_payload(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("args"), list) and isinstance(value.get("kwargs"), dict) \
        and isinstance(value.get("task", {}), dict)


def make(task: Any, id: str, queue: str, status: Any, payload: dict[str, Any], history: History,
         created: int | None, finished: int | None) -> Any:
    more = payload.get("task", {})
    run_after = more.get("run_after")
    backend = more.get("backend", "default")
    task = task.using(priority=more.get("priority", 0), queue_name=queue, backend=backend,
                      run_after=None if run_after is None else datetime.fromisoformat(run_after))
    least = created or 0  # the clocks are those of two machines
    started, last = ([None if at is None else max(at, least) for at in (history.started, history.last)])
    finished = None if finished is None else max(finished, last or least)
    return TaskResult(
        task=task, id=id, status=status, enqueued_at=time_of(created), started_at=time_of(started),
        last_attempted_at=time_of(last), finished_at=time_of(finished),
        args=payload["args"], kwargs=payload["kwargs"], backend=backend, worker_ids=list(history.workers),
        errors=[TaskError(exception_class_path=path, traceback=text) for path, text in history.errors])


# ---- errors ----

def path_of(error: BaseException) -> str:
    """As a traceback names it."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def error_of(text: str) -> tuple[str, str]:
    """The class and the traceback of a job's error, which is a line and the end of a traceback."""
    line, _, trace = text.partition("\n")
    found = _CLASS.match(line)
    name = found[1] if found is not None else ""
    known = getattr(builtins, name, None)
    if line.startswith("timed out") or name == _INTERRUPTED:
        return "builtins.TimeoutError", text + "\n"
    if isinstance(known, type) and issubclass(known, BaseException):
        name = "builtins." + name
    elif "." not in name:
        return NOT_RAISED, text + "\n"
    return name, (trace or line) + "\n"


def _old_error_of(text: str) -> tuple[str, str]:
    """The same of the end of an error, which is what the history has: the last line names the class."""
    if len(text.encode()) < HISTORY_CUT:
        return error_of(text)
    text = text.partition("\n")[2] or text  # the first line has lost its beginning
    return error_of(text.rpartition("\n")[2])[0], text + "\n"


class History:
    """The attempts of a job: where they ran, what they raised, when the first and the last began."""

    __slots__ = ("workers", "errors", "started", "last")

    def __init__(self) -> None:
        self.workers: list[str] = []
        self.errors: list[tuple[str, str]] = []
        self.started: int | None = None
        self.last: int | None = None

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> History:
        self = cls()
        failed = record.get("history") or []
        failed = failed if isinstance(failed, list) else []  # a script writes an empty list as {}
        self.workers = [UNKNOWN_WORKER] * (int(record.get("attempts", 0)) - len(failed))
        for entry in failed:
            self.begin(int(entry["at"]) - int(entry.get("ran", 0)), entry.get("worker") or UNKNOWN_WORKER)
            self.errors.append(_old_error_of(str(entry.get("error", ""))))
        error = record.get("error")
        if error is None:
            return self
        if failed and failed[-1]["at"] in (record.get("failed"), record.get("died")):
            self.errors.pop()  # the history has its end alone
        self.errors.append(error_of(str(error)))
        return self

    def begin(self, at: int, worker: str) -> None:
        self.workers.append(worker)
        self.started = at if self.started is None else self.started
        self.last = at


# ---- what Redis keeps ----

class Found(NamedTuple):
    queue: str
    answer: list[Any]


def look(hf: Holdfast, id: str, queues: Collection[str]) -> Steps[Found | None]:
    """Ids are unique in a queue: each of the backend's is asked."""
    try:
        check_name(id, "id")
    except ValueError:
        return None
    names = sorted(queues)
    if not names:  # all are allowed
        key = hf._prefix("/") + "queues"
        try:
            names = sorted(name.decode() for name in (yield Command(key, ("SMEMBERS", key))))
        except RedisError as error:
            raise NoAnswer(f"no answer from Redis: {error}") from error
    for name in names:
        answer = yield from JobRef(hf, id, name)._on_its_shard("job", id, 1, "0", 0)
        if answer[0] == 0:
            return Found(name, answer)
    return None


def _split(record: bytes) -> tuple[dict[str, Any], Any]:
    """The line and the payload; a payload of something else is None."""
    line, _, body = record.partition(b"\n")
    try:
        return json.loads(line), json.loads(body)
    except ValueError:
        return json.loads(line), None


def history_of(answer: list[Any]) -> History:
    return History.of_record(_split(answer[4])[0]) if answer[0] == 0 else History()


def result_of(id: str, found: Found) -> Any:
    """None: it is the job of something else than a task."""
    answer = found.answer
    where = answer[2].decode()
    record, payload = _split(answer[4])
    task = task_at(record["type"]) if is_payload(payload) else None
    if task is None:
        return None
    created = record.get("created") or None
    if where == "done":
        return _done(task, id, found.queue, record, payload, created)
    history = History.of_record(record)
    finished = None
    if where == "running":
        worker, _, fence = answer[6].decode().rpartition(":")
        history.begin(int(fence) // 1000, worker)  # the fence is the time of the claim
    elif where == "dead":
        finished = record.get("died")
        if not history.errors:
            history.errors.append((NOT_RAISED, f"{record.get('reason', 'dead')}\n"))
    return make(task, id, found.queue, _STATUS.get(where, TaskResultStatus.READY), payload, history, created, finished)


# ---- what a run leaves ----

def kept_of(payload: dict[str, Any], value: Any, history: History, finished: int) -> dict[str, Any]:
    return {"value": value, **payload, "started": history.started, "last": history.last, "finished": finished,
            "workers": history.workers[:-1], "errors": history.errors}


def _done(task: Any, id: str, queue: str, record: dict[str, Any], kept: dict[str, Any], created: int | None) -> Any:
    history = History()
    history.workers = [*kept.get("workers", []), record.get("worker") or UNKNOWN_WORKER]
    history.errors = [(str(path), str(text)) for path, text in kept.get("errors", [])]
    history.started, history.last = kept.get("started"), kept.get("last")
    result = make(task, id, queue, TaskResultStatus.SUCCESSFUL, kept, history, created, kept.get("finished"))
    object.__setattr__(result, "_return_value", kept.get("value"))
    return result
