"""Tasks for test_django.py."""

from __future__ import annotations

import os
import time
from typing import Any

from django.db import connection

from holdfast_queue import Dead, Retry, current_job
from holdfast_queue.django._compat import task_finished, task_started

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

told: list[Any] = []


def tell(sender: Any, task_result: Any, **more: Any) -> None:
    told.append([task_result.id, str(task_result.status), len(task_result.errors)])


task_started.connect(tell)
task_finished.connect(tell)


@task
def add(a: int, b: int = 1) -> int:
    return a + b


@task(takes_context=True, max_attempts=3, backoff=lambda attempt, error: "5ms")
def third_time(context: Any) -> Any:
    if context.attempt < 3:
        raise ConnectionError(f"attempt {context.attempt}")
    result = context.task_result
    return [context.attempt, result.id, len(result.worker_ids), [e.exception_class_path for e in result.errors]]


class Odd(Exception):
    """An error whose class has a path."""


@task
def odd() -> None:
    raise Odd("of\nmany lines")


@task
def leaves() -> None:
    raise SystemExit("it leaves")


@task
def chained() -> None:
    raise ValueError(ValueError("inner"))


@task
def no_json() -> Any:
    return lambda: True


@task
def large(size: int) -> str:
    return "x" * size


@task
def takes(text: str) -> int:
    return len(text)


@task(timeout="300ms")
def hangs() -> None:
    time.sleep(20)


@task(dead_on=KeyError, max_attempts=5)
def dead_at_once(how: str) -> None:
    raise Dead("it says so") if how == "says" else KeyError(how)


@task(max_attempts=5)
def again() -> int:
    if current_job.attempt == 1:
        raise Retry("busy", delay="5ms")
    return current_job.attempt


@task
def looks_at_database() -> list[Any]:
    """Whether a connection is left of an earlier run, and the process."""
    before = connection.connection is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return [before, os.getpid()]


@task
def crashes() -> None:
    os.kill(os.getpid(), 9)


@task
def what_was_told(id: str) -> list[Any]:
    return [entry[1:] for entry in told if entry[0] == id]


@task
def waits() -> None:
    time.sleep(60)


if os.environ.get("SITE_ASYNC"):
    import asyncio

    @task
    async def aadd(a: int, b: int = 1) -> int:
        await asyncio.sleep(0)
        return a + b

    @task(takes_context=True, max_attempts=2, backoff=lambda attempt, error: "5ms")
    async def asecond_time(context: Any) -> Any:
        if context.attempt < 2:
            raise Odd("once")
        return [e.exception_class_path for e in context.task_result.errors]

    @task(timeout="300ms")
    async def ahangs() -> None:
        await asyncio.sleep(20)

    @task
    async def afails() -> None:
        raise Odd("async")
