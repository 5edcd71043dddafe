"""The types of `holdfast conform` (docs/pipe.md). With the word `async` the handlers are async."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from holdfast_queue import Dead, Holdfast, Job, Retry

hf = Holdfast("unix:///nowhere", parallel=4)


def text(job: Job) -> str:
    return job.payload.decode(errors="replace")


def echo(job: Job) -> bytes:
    return job.payload


def sleep(job: Job) -> None:
    time.sleep(int(job.payload) / 1000)


def fail(job: Job) -> None:
    raise Retry(text(job))


def dead(job: Job) -> None:
    raise Dead(text(job))


def print_(job: Job) -> None:
    print(text(job))


def exit_(job: Job) -> None:
    os._exit(int(job.payload))


def fork(job: Job) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def progress(job: Job) -> None:
    job.progress(50, job.payload[:80].decode(errors="replace"))


def log(job: Job) -> None:
    job.log(text(job))


def checkpoint(job: Job) -> bytes | None:
    earlier = job.checkpoint()
    job.checkpoint(job.payload)
    return earlier


def headers(job: Job) -> Any:
    return dict(job.headers)


async def sleep_async(job: Job) -> None:
    import asyncio  # the sync mode, which is started by the hundred, needs none of it
    await asyncio.sleep(int(job.payload) / 1000)


def as_async(fn: Any) -> Any:
    async def handler(job: Job) -> Any:
        return fn(job)
    return handler


for fn in (echo, sleep, fail, dead, print_, exit_, fork, progress, log, checkpoint, headers):
    name = fn.__name__.rstrip("_")
    if "async" in sys.argv:
        hf.job(name)(sleep_async if fn is sleep else as_async(fn))
    else:
        hf.job(name)(fn)

if __name__ == "__main__":
    hf.run()
