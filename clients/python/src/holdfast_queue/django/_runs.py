"""The handler of a task: Django's signals, its context, its database connections around each run."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Iterable
from datetime import timedelta
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections, reset_queries
from django.utils.module_loading import autodiscover_modules

from .. import _run
from .._args import Misfit, to_json
from .._job import RESULT_MAX, Job, TooLarge
from .._link import Steps
from .._ref import JobRef
from ..errors import Cancel, Dead, Interrupted, Release, Retry
from . import _results
from ._compat import (
    Task, TaskContext, TaskError, TaskResultStatus, normalize_json, task_at, task_finished, task_started,
)

_UNDECIDED = (Release, Cancel)
_WORKER = f"{socket.gethostname()}-{os.getppid()}"  # as the worker's id begins


def find_tasks(modules: Iterable[str]) -> list[Any]:
    """All tasks of the module `tasks` of each app, of what the URLs need, and of `modules`."""
    autodiscover_modules("tasks")
    for name in modules:
        import_module(name)
    if getattr(settings, "ROOT_URLCONF", None):
        import_module(settings.ROOT_URLCONF)
    # Not isinstance: it would ask a lazy object for its class, which evaluates it.
    paths = {value.module_path for module in list(sys.modules.values())
             for value in list(getattr(module, "__dict__", {}).values()) if issubclass(type(value), Task)}
    found = [task_at(path) for path in sorted(paths)]
    return [task for task in found if task is not None]


def handler_of(task: Any, backend: Any) -> Any:
    """The function of a JobFunction. Its one parameter is the job, so nothing converts the payload."""
    if iscoroutinefunction(task.func):
        async def arun(job: Job) -> Any:
            run = _TaskRun(task, backend, job)
            await sync_to_async(_renew_connections)()
            try:
                if job.attempt > 1:
                    run.take_history(await run.hf._arun(run.look()))
                await sync_to_async(run.begin)()
                value = run.kept(await task.func(*run.args, **run.kwargs))
            except BaseException as error:
                verdict = run.verdict(error)
                if run.finished is not None:
                    await asyncio.shield(sync_to_async(run.tell)())
                if verdict is error:
                    raise
                raise verdict from error
            finally:
                await asyncio.shield(sync_to_async(close_old_connections)())
            await sync_to_async(run.tell)()
            return value
        return arun

    def run_sync(job: Job) -> Any:
        run = _TaskRun(task, backend, job)
        _renew_connections()
        try:
            if job.attempt > 1:
                run.take_history(run.hf._run(run.look()))
            run.begin()
            value = run.kept(task.func(*run.args, **run.kwargs))
        except BaseException as error:
            verdict = run.verdict(error)
            if run.finished is not None:
                run.tell()
            if verdict is error:
                raise
            raise verdict from error
        finally:
            close_old_connections()
        run.tell()
        return value
    return run_sync


def _renew_connections() -> None:
    """What a request of Django begins with: no connection that the server has closed meanwhile, no old queries."""
    reset_queries()
    close_old_connections()


class _TaskRun:
    """One run of a task."""

    def __init__(self, task: Any, backend: Any, job: Job):
        try:
            payload = json.loads(job.payload)
        except ValueError:
            payload = None
        if not _results.is_payload(payload):
            raise Misfit('payload: expected {"args": [...], "kwargs": {...}}, '
                         f"found {len(job.payload)} bytes of something else")
        self.task = task
        self.backend = backend
        self.hf = backend.hf
        self.job = job
        self.payload: dict[str, Any] = payload
        self.history = _results.History()
        self.finished: Any = None  # the status
        self.error: BaseException | None = None
        self.keeps = "keep" in self.hf.jobs[job.type].ready

    def look(self) -> Steps[Any]:
        return JobRef(self.hf, self.job.id, self.job.queue)._on_its_shard("job", self.job.id, 0, "0", 0)

    def take_history(self, answer: Any) -> None:
        self.history = _results.history_of(answer)

    def begin(self) -> None:
        job, history = self.job, self.history
        missing = job.attempt - 1 - len(history.workers)
        history.workers = [_results.UNKNOWN_WORKER] * missing + history.workers
        history.begin(int(time.time() * 1000), _WORKER)
        created = None if job.created is None else int(job.created.timestamp() * 1000)
        self.result = _results.make(self.task, job.id, job.queue, TaskResultStatus.RUNNING, self.payload, history,
                                    created, None)
        self.args, self.kwargs = self.result.args, self.result.kwargs
        if self.task.takes_context:
            self.args = [TaskContext(task_result=self.result), *self.args]
        task_started.send(type(self.backend), task_result=self.result)

    def kept(self, value: Any) -> Any:
        """The result of the job: what `get_result` needs, and None if it will not be asked for."""
        value = normalize_json(value)
        kept = None
        if self.keeps:
            kept = _results.kept_of(self.payload, value, self.history, int(time.time() * 1000))
            if len(to_json(kept)) > RESULT_MAX:
                kept.update(args=[], kwargs={})  # the value matters more
                size = len(to_json(kept))
                if size > RESULT_MAX:
                    raise TooLarge("result", RESULT_MAX, size)
        self.finished = TaskResultStatus.SUCCESSFUL
        object.__setattr__(self.result, "_return_value", value)
        return kept

    def verdict(self, error: BaseException) -> BaseException:
        """What to raise instead: the same end, whose error begins with the path of the class."""
        job = self.job
        self.finished, self.error = None, error
        end = _run.end_of_error(self.hf.jobs.get(job.type), job, error)
        last = job.max_attempts is not None and job.attempt >= job.max_attempts
        if end.word == "dead" or end.word == "retry" and last:
            self.finished = TaskResultStatus.FAILED
        if isinstance(error, (Misfit, *_UNDECIDED)) or isinstance(error, (Interrupted, asyncio.CancelledError)) \
                and job.stop_reason is not None:
            return error
        text = str(error).partition("\n")[0]  # the trace behind it has the rest
        text = _results.path_of(error) + (f": {text}" if text else "")
        return Dead(text) if end.word == "dead" else Retry(
            text, delay=None if end.wait is None else timedelta(milliseconds=end.wait))

    def tell(self) -> None:
        """The signal of the end. The task has run: an error of a receiver must not run it again."""
        if not hasattr(self, "result"):
            return
        error = self.error
        if error is not None:
            timed_out = isinstance(error, (Interrupted, asyncio.CancelledError))
            path = "TimeoutError" if timed_out else _results.path_of(error)
            self.result.errors.append(TaskError(
                exception_class_path=path if "." in path else f"builtins.{path}",
                traceback=_run.stack_of(error).decode(errors="replace") + "\n"))
        object.__setattr__(self.result, "status", self.finished)
        object.__setattr__(self.result, "finished_at", _results.time_of(int(time.time() * 1000)))
        task_finished.send_robust(type(self.backend), task_result=self.result)
