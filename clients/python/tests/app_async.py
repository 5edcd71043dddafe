"""Handlers for test_worker.py, some of them async."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from holdfast_queue import Dead, Holdfast, Job, current_job

events = os.environ.get("EVENTS")


def note(text: str) -> None:
    if events:
        with open(events, "a") as file:
            print(text, file=file)


@contextlib.asynccontextmanager
async def lifespan(hf: Holdfast) -> AsyncIterator[None]:
    note("open")
    yield
    note("close")


def is_told_to_end() -> bool:
    return events is not None and os.path.exists(events + ".end")


hf = Holdfast("unix:///nowhere", lifespan=lifespan, parallel=8)
log = logging.getLogger("app")


@hf.job
async def add(a: int, b: int = 1) -> int:
    await asyncio.sleep(0)
    return a + b


@hf.job
async def wait(seconds: float, job: Job) -> str:
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until and not is_told_to_end():
            await asyncio.sleep(0.01)
    finally:
        note(f"finally {job.stop_reason}")
    return current_job.id


@hf.job
async def stubborn(job: Job) -> str:
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        pass
    return str(job.stop_reason)


@hf.job
def in_thread(seconds: float) -> str:
    note("in a thread")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not current_job.stopping and not is_told_to_end():
        time.sleep(0.01)
    current_job.progress(50, "half")
    return current_job.id


@hf.job
async def logs(text: str, job: Job) -> None:
    log.warning("%s of %s", text, job.id)
    print("printed")
    job.progress(10)
    job.checkpoint(b"17")


@hf.job
async def fails() -> None:
    raise Dead("no")


@hf.job
async def large(n: int) -> None:
    for _ in range(n):
        current_job.log("x" * 16000)


@hf.middleware
async def around(job: Job, call: Any) -> Any:
    note("before " + job.type)
    return await call()


if __name__ == "__main__":
    hf.run()
    note("returned")
