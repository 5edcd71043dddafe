"""Handlers for test_worker.py, all of them sync."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, Literal

from holdfast_queue import Cancel, Dead, Holdfast, Job, Release, Retry, current_job

hf = Holdfast("unix:///nowhere", queue="mail")
log = logging.getLogger("app")
events = os.environ.get("EVENTS")


def note(text: str) -> None:
    if events:
        with open(events, "a") as file:
            print(text, file=file)


@dataclass
class Point:
    x: int
    y: int = 0


@hf.job("email.send", timeout="30s", max_attempts=5, keep="1h", on_dead="email.failed")
def send_email(to: str, subject: str = "hi", *, job: Job) -> Any:
    return {"to": to, "subject": subject, "id": job.id, "attempt": job.attempt, "tenant": job.headers.get("tenant")}


@hf.job
def give(what: str) -> Any:
    return {"none": None, "bytes": b"\x00\n\xff", "int": 7, "text": "é", "large": "x" * 65537, "odd": object(),
            "nan": float("nan"), "pid": os.getpid(), "env": sorted(k for k in os.environ if k in ("HOLDFAST_FD", "HOLDFAST_PIPE")),
            }[what]


@hf.job(retry_on=(OSError, TimeoutError), dead_on=ConnectionError, backoff=lambda attempt, error: f"{attempt * 10}s")
def fail(how: str) -> None:
    if how == "keep":
        raise Retry
    errors: dict[str, BaseException] = {
        "retry": Retry("later", delay="30s"), "dead": Dead("no such user"), "cancel": Cancel("not wanted"),
        "release": Release(delay="5s"), "os": OSError("busy"), "refused": ConnectionRefusedError("gone"),
        "key": KeyError("x"), "exit": SystemExit(3), "surrogate": OSError("caf\udce9"), "long": OSError("é" * 5000)}
    raise errors[how]


@hf.job
def any_error(n: int = 1) -> None:
    raise RuntimeError("broken " + "x" * n)


@hf.job
def deep() -> None:
    deep.fn()


@hf.job
def types(a: int, b: float, c: Point, d: list[int], e: Literal["x", "y"] = "x", f: int | None = None) -> Any:
    assert isinstance(c, Point) and isinstance(b, float)
    return [a, b, c.x, d, e, f]


@hf.job
def tells(job: Job) -> None:
    job.progress(40, "row 17")
    job.log("row 17 is bad")
    job.checkpoint((job.checkpoint() or b"") + b"!")
    print("on standard output")
    os.write(1, b"by a system call\n")


@hf.job
def hang(how: str, job: Job) -> None:
    try:
        if how != "swallow":
            note("hangs " + how)
        if how == "sleep":
            time.sleep(600)
        elif how == "recv":
            pair = socket.socketpair()
            pair[0].recv(1)
        elif how == "loop":
            while True:
                pass
        elif how == "re":
            re.match(r"(a+)+$", "a" * 40 + "b")
        elif how == "swallow":
            try:
                note("hangs swallow")
                time.sleep(600)
            except BaseException:
                job.log(f"stopping {job.stopping} {job.stop_reason}")
        elif how == "short":
            time.sleep(0.5)
        elif how == "tells":
            while True:
                job.progress(1)
        elif how == "C":
            sum(range(3 * 10 ** 8))
    finally:
        note("finally " + how)


@hf.job
def forks() -> int:
    pid = os.fork()
    if pid == 0:
        current_job.progress(99, "from a child")
        return 1  # it comes back into the library
    return os.waitpid(pid, 0)[1]


@hf.job
def threads(job: Job) -> None:
    thread = threading.Thread(target=lambda: job.log("from a thread"))
    thread.start()
    thread.join()


@hf.job
def logs() -> str:
    record = log.makeRecord("n", logging.INFO, "f", 1, "m", (), None)
    log.warning("a warning")
    return f"{record.job_id} {record.job_type}"  # type: ignore[attr-defined]


@hf.every("5m", args={"what": "none"}, id="tick", missed="skip")
@hf.cron("0 3 * * 1-5", tz="Europe/Berlin", jitter="10s", args={"what": "int"})
@hf.job("give.often", queue="slow", priority="low")
def give_often(what: str) -> None: ...


@hf.middleware
def around(job: Job, call: Any) -> Any:
    note("before " + job.type)
    try:
        return call()
    finally:
        note("after " + job.type)


@hf.on_start
def start() -> None:
    note("start")
    print("started", flush=True)


@hf.on_stop
def stop() -> None:
    note("stop")


if __name__ == "__main__":
    hf.run()
    note("returned " + " ".join(sys.argv[1:]))
