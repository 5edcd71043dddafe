"""What type checkers must accept, and what they must find. mypy and pyright read this file; nothing runs it."""

from __future__ import annotations

from typing import Any

from holdfast_queue import Holdfast, Job, JobRef, current_job

hf = Holdfast()


@hf.job("email.send", timeout="30s", max_attempts=5, retry_on=OSError)
def send_email(to: str, subject: str, *, job: Job = current_job) -> int:
    return len(to)


@hf.job
def first(job: Job, to: str, n: int = 1) -> str:
    return to


@hf.job
def last(to: str, subject: str, job: Job) -> int:
    return 1


@hf.job("any")
def any_last(to: str, value: Any) -> int:
    return 1


@hf.job
def plain(data: dict[str, Any], n: int = 1) -> int:
    return n


@hf.job
async def resize(image: int) -> None: ...


async def good() -> None:
    ref: JobRef = send_email.enqueue(to="ada@example.com", subject="hi")
    send_email.using(delay="10m", unique="ada").enqueue("ada@example.com", subject="later")
    first.enqueue("ada", n=2)
    await first.aenqueue(to="ada")
    await resize.aenqueue(image=1)
    last.enqueue(to="ada@example.com", subject="hi")
    last.using(delay="10m").enqueue("ada@example.com", subject="hi")
    one: int = last("a", "b", job=Job.fake())
    any_last.enqueue("a", 1)
    any_last.enqueue(to="a", value=1)
    plain.enqueue({"a": 1}, n=2)
    print(one)
    hf.enqueue_many([send_email.call("a", "b"), first.using(queue="q").call("a")])
    size: int = send_email("a", "b")
    name: str = first(Job.fake(), "a")
    await resize(1)
    ref.result(timeout=1)
    print(size, name)


def bad() -> None:
    send_email.enqueue(to=1, subject="hi")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send_email.enqueue("a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    send_email.call("a", subjet="b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    first.enqueue(Job.fake(), "a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send_email.using(delya="1m")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    send_email.using(delay=10)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    plain.enqueue(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    resize.using(queue="a").enqueue("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
