"""`Backend`: enqueues the tasks of Django as jobs, whose type is the path of the task's function."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core import checks
from django.db import connection, transaction
from django.utils import timezone

from .._app import PAYLOAD_MAX, Backoff, Call, Exceptions, Holdfast, JobFunction, _classes
from .._args import to_json
from .._durations import to_unix_ms
from .._ids import check_name
from .._options import Duration
from ..errors import Refused
from . import _results, _runs
from ._compat import (
    BaseTaskBackend, InvalidTask, InvalidTaskBackend, Task as BaseTask, TaskResult, TaskResultDoesNotExist,
    TaskResultStatus, task_at, task_enqueued,
)
from ._settings import READY, settings_of


@dataclass(frozen=True, kw_only=True)
class Task(BaseTask):
    """A task with options of its own: `@task(timeout="30s", max_attempts=5)`. They are those of `@hf.job`, and
    come before OPTIONS of the backend."""

    timeout: Duration | None = None
    max_attempts: int | None = None
    keep: Duration | None = None
    retry_on: Exceptions | None = None
    dead_on: Exceptions | None = None
    backoff: Backoff | None = None


def _options_of(task: Any) -> dict[str, Any]:
    return {name: read(getattr(task, name)) for name, read in READY.items() if getattr(task, name, None) is not None}


class _TaskCall(Call):
    """Keeps when its record was made, because that is what Redis tells about the job."""

    __slots__ = ("created",)

    def record(self, created: int | None) -> bytes:
        self.created = created
        return super().record(created)


class Backend(BaseTaskBackend):  # type: ignore[misc, unused-ignore]
    task_class = Task
    supports_defer = True
    supports_async_task = True
    supports_priority = True  # in three steps: below 0, 0, above 0

    def __init__(self, alias: str, params: dict[str, Any]):
        super().__init__(alias, params)
        self._settings = settings_of(self.options)
        self.supports_get_result = "keep" in self._settings.ready

    @property
    def hf(self) -> Holdfast:
        """What enqueues the tasks, for headers, hooks, middleware and schedules."""
        self._must_be_configured()
        return self._settings.hf()

    def _must_be_configured(self) -> None:
        for problem in self._settings.problems:
            raise InvalidTaskBackend(f"TASKS['{self.alias}']['OPTIONS']: {problem}")

    # ---- checks ----

    def check(self, **kwargs: Any) -> Iterable[Any]:
        for problem in self._settings.problems:
            yield checks.Error(f"TASKS['{self.alias}']['OPTIONS']: {problem}", id="holdfast_queue.E001")
        for queue in sorted(self.queues, key=repr):
            try:
                check_name(queue, "queue")
            except ValueError as error:
                yield checks.Error(f"TASKS['{self.alias}']['QUEUES']: {error}", id="holdfast_queue.E002")
        if not apps.is_installed("holdfast_queue.django"):
            yield checks.Error("The command `manage.py holdfast`, which runs the tasks, is not there.",
                               hint="Add 'holdfast_queue.django' to INSTALLED_APPS.", id="holdfast_queue.E003")

    def validate_task(self, task: Any) -> None:
        super().validate_task(task)
        try:
            check_name(task.queue_name, "queue")
            check_name(task.module_path, "type, which is the path of the task's function,")
            if task.run_after is not None:
                to_unix_ms(_aware(task.run_after), "run_after")
            _options_of(task)
            for name in ("retry_on", "dead_on"):
                if getattr(task, name, None) is not None:
                    _classes(getattr(task, name), name)
        except (TypeError, ValueError) as error:
            raise InvalidTask(str(error)) from None

    # ---- enqueueing ----

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        call, result = self._prepare(task, args, kwargs)
        if not self._defer(call, result):
            self._put(call)
            self._tell(call, result)
        return result

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        call, result = self._prepare(task, args, kwargs)
        # A transaction, and the receivers of signals, belong to the thread of the request.
        if not await sync_to_async(self._defer)(call, result):
            await _in_pool(self._put, call)
            await sync_to_async(self._tell)(call, result)
        return result

    def _prepare(self, task: Any, args: Any, kwargs: Any) -> tuple[_TaskCall, Any]:
        """All that can be wrong is found here, not when the transaction ends."""
        hf = self.hf
        self.validate_task(task)
        path = task.module_path
        found = task_at(path)
        if found is None or found.func != task.func:
            raise InvalidTask(f"expected the task under the name of its function, '{path}', where a worker finds it, "
                              "found something else there")
        if path not in hf.jobs:
            hf.jobs[path] = self.function_of(found)
        result = TaskResult(task=task, id=hf._ids.next(), status=TaskResultStatus.READY, enqueued_at=None,
                            started_at=None, last_attempted_at=None, finished_at=None, args=args, kwargs=kwargs,
                            backend=self.alias, errors=[], worker_ids=[])
        options: dict[str, Any] = {"id": result.id, "queue": task.queue_name}
        if task.priority:
            options["priority"] = "high" if task.priority > 0 else "low"
        if task.run_after is not None:
            options["at"] = _aware(task.run_after)
        payload = _results.payload_of(result)
        body = to_json(payload)
        if len(body) > PAYLOAD_MAX:
            raise ValueError(f"{path}: expected arguments of at most {PAYLOAD_MAX} bytes of JSON, found {len(body)}")
        bound = hf.jobs[path].using(**options)
        return _TaskCall(path, bound._plan, payload, body, hf.jobs[path]), result

    def _defer(self, call: _TaskCall, result: Any) -> bool:
        """Whether the job waits for the end of a transaction."""
        if not self._settings.enqueue_on_commit:
            return False
        if not connection.in_atomic_block and (connection.connection is None or connection.get_autocommit()):
            return False

        def on_commit() -> None:
            self._put(call)
            self._tell(call, result)
        transaction.on_commit(on_commit)
        return True

    def _put(self, call: _TaskCall) -> None:
        ref = self.hf._enqueue([call])[0]
        if ref.outcome == "exists":
            raise Refused(f"another job of the queue '{ref.queue}' has the id {ref.id}")

    def _tell(self, call: _TaskCall, result: Any) -> None:
        created = getattr(call, "created", None)
        at = timezone.now() if created is None else _results.time_of(created)
        object.__setattr__(result, "enqueued_at", at)
        task_enqueued.send(type(self), task_result=result)

    # ---- results ----

    def get_result(self, result_id: str) -> Any:
        hf = self.hf
        return self._result_of(result_id, hf._run(_results.look(hf, result_id, self.queues)))

    async def aget_result(self, result_id: str) -> Any:
        hf = self.hf
        found = await _in_pool(lambda: hf._run(_results.look(hf, result_id, self.queues)))
        return self._result_of(result_id, found)

    def _result_of(self, result_id: str, found: _results.Found | None) -> Any:
        result = None if found is None else _results.result_of(result_id, found)
        if result is None:
            raise TaskResultDoesNotExist(result_id)
        return result

    # ---- running ----

    def function_of(self, task: Any) -> JobFunction[Any, Any, Any]:
        """The handler of a task."""
        retry_on, dead_on = getattr(task, "retry_on", None), getattr(task, "dead_on", None)
        function: JobFunction[Any, Any, Any] = JobFunction(
            self.hf, _runs.handler_of(task, self), task.module_path, queue=task.queue_name,
            ready={**self._settings.ready, **_options_of(task)}, options={},
            retry_on=None if retry_on is None else _classes(retry_on, "retry_on"),
            dead_on=_classes(dead_on or (), "dead_on"), backoff=getattr(task, "backoff", None))
        return function

    def load(self) -> None:
        """Imports the modules that have tasks, and makes their handlers."""
        for task in _runs.find_tasks(self._settings.modules):
            self.hf.jobs.setdefault(task.module_path, self.function_of(task))


def _aware(time: Any) -> Any:
    return time if timezone.is_aware(time) else timezone.make_aware(time, timezone.get_default_timezone())


# Event loops come and go in Django, and a connection of asyncio belongs to one of them.
_pool: ThreadPoolExecutor | None = None


async def _in_pool(call: Any, *args: Any) -> Any:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(8, "holdfast")
    return await sync_to_async(call, thread_sensitive=False, executor=_pool)(*args)


def _after_fork() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_after_fork)
