"""A program as users write it, for test_whole.py."""

from __future__ import annotations

import asyncio
import sys
import time

from holdfast_queue import Holdfast, Job, Retry, current_job

hf = Holdfast()


@hf.job("add", keep="1h")
def add(a: int, b: int = 1) -> int:
    return a + b


@hf.job(keep="1h", queue="second", timeout="300ms", max_attempts=1)
def hangs(seconds: float) -> None:
    time.sleep(seconds)


@hf.job(keep="1h", max_attempts=3)
def third_time(job: Job) -> int:
    if job.attempt < 3:
        raise Retry(f"attempt {job.attempt}", delay="10ms")
    return job.attempt


@hf.job(keep="1h", max_attempts=1)
def broken() -> None:
    raise RuntimeError("the reason")


@hf.job(keep="1h")
def waits(job: Job) -> None:
    job.progress(10, "waiting")
    time.sleep(600)


@hf.job(keep="1h")
def tenant(name: str) -> str:
    third = add.using(headers={"tenant": "8"}).enqueue(1, 2)
    return f"{name} {current_job.headers.get('tenant')} {third.outcome}"


if "async" in sys.argv:
    @hf.job(keep="1h")
    async def also() -> str:
        return "async"

    @hf.job(keep="1h")
    async def also_waits(job: Job) -> None:
        job.progress(10, "waiting")
        await asyncio.sleep(600)

if __name__ == "__main__":
    hf.run(processes=2)
