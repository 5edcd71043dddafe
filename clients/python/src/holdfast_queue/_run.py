"""One run of a handler, and the verdict that its end means. The worker and the test modes share it."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ._args import Misfit, to_json
from ._durations import to_ms
from ._job import RESULT_MAX, Job
from .errors import Cancel, Dead, Interrupted, Release, Verdict

if TYPE_CHECKING:
    from ._app import JobFunction

ERROR_MAX = 4096
BODY_MAX = 16 * 1024
Middleware = Sequence[Callable[..., Any]]


class End(NamedTuple):
    """A verdict: the word, the wait, the error, the bytes that follow the frame, whether they are JSON."""

    word: str
    wait: int | None = None
    error: str = ""
    body: bytes | None = None
    json: bool = False


_NOTHING = End("done")


def is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(fn)) or inspect.iscoroutinefunction(
        getattr(fn, "__call__", None))


# ---- middleware ----

def call_sync(middleware: Middleware, job: Job, fn: Callable[..., Any], args: dict[str, Any]) -> Any:
    if not middleware:
        return fn(**args)

    def step(i: int) -> Any:
        if i == len(middleware):
            return fn(**args)
        return middleware[i](job, lambda: step(i + 1))
    return step(0)


async def call_async(middleware: Middleware, job: Job, fn: Callable[..., Any], args: dict[str, Any],
                     in_thread: Callable[[Callable[[], Any]], Any]) -> Any:
    """A sync function runs in a thread, with the sync middleware that is next to it."""
    inner = len(middleware)
    threaded = not is_async(fn)
    if threaded:
        while inner > 0 and not is_async(middleware[inner - 1]):
            inner -= 1

    async def step(i: int) -> Any:
        if i == inner:
            if threaded:
                return await in_thread(lambda: call_sync(middleware[inner:], job, fn, args))
            return await fn(**args)
        value = middleware[i](job, lambda: step(i + 1))
        return await value if inspect.isawaitable(value) else value
    return await step(0)


# ---- verdicts ----

def end_of_value(value: Any) -> End:
    """The handler has returned."""
    if value is None:
        return _NOTHING
    if isinstance(value, (bytes, bytearray, memoryview)):
        body, is_json = bytes(value), False
    else:
        try:
            body, is_json = to_json(value), True
        except (TypeError, ValueError) as error:
            return End("dead", error=f"result: {error}")
    if len(body) > RESULT_MAX:
        return End("dead", error=f"result: expected at most {RESULT_MAX} bytes, found {len(body)}")
    return End("done", body=body, json=is_json)


def text_of(error: BaseException) -> str:
    name = type(error).__qualname__
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be made)"
    return cut(f"{name}: {text}" if text else name)


def cut(text: str) -> str:
    """At most 4 KiB of whole characters."""
    raw = text.encode(errors="backslashreplace")
    return raw[:ERROR_MAX].decode(errors="ignore")


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_HERE)


_HERE = __file__[:__file__.rindex("/") + 1]


def stack_of(error: BaseException) -> bytes:
    """The traceback without the frames of this package before the handler; its end is kept."""
    lines = traceback.TracebackException.from_exception(error)
    frames = lines.stack
    while len(frames) > 1 and _is_ours(frames[0]):
        del frames[0]
    raw = "".join(lines.format()).rstrip("\n").encode(errors="backslashreplace")
    if len(raw) > BODY_MAX:
        raw = raw[-BODY_MAX:].decode(errors="ignore").encode()
    return raw


def end_of_error(function: JobFunction[Any, Any, Any] | None, job: Job, error: BaseException) -> End:
    """The handler has raised."""
    if isinstance(error, Verdict):
        word = "dead" if isinstance(error, Dead) else "cancel" if isinstance(error, Cancel) \
            else "release" if isinstance(error, Release) else "retry"
        text = error.error or ("" if word in ("release", "cancel") else type(error).__name__)
        body = stack_of(error.__cause__) if error.__cause__ is not None else None
        return End(word, error.delay, cut(text), body)
    if isinstance(error, Misfit):
        return End("dead", error=cut(str(error)))
    if job.stop_reason is not None and (isinstance(error, Interrupted) or _is_cancelled(error)):
        return interrupted(job.stop_reason, error)
    text, body = text_of(error), stack_of(error)
    if function is None:
        return End("retry", None, text, body)
    retried = isinstance(error, function.retry_on) if function.retry_on is not None else True
    if isinstance(error, function.dead_on) or not retried:
        return End("dead", None, text, body)
    wait = None
    if function.backoff is not None:
        try:
            duration = function.backoff(job.attempt, error)
            wait = None if duration is None else to_ms(duration, "backoff")
        except Exception as fault:
            body += b"\n\nand the backoff of this job failed:\n" + stack_of(fault)
    return End("retry", wait, text, body)


def interrupted(why: str, error: BaseException) -> End:
    if why == "cancelled":
        return End("cancel", error="cancelled")
    if why == "timeout":
        return End("retry", None, "timed out", stack_of(error))
    return End("release", error="")


def _is_cancelled(error: BaseException) -> bool:
    asyncio = sys.modules.get("asyncio")  # the program has it, or nothing was cancelled
    return asyncio is not None and isinstance(error, asyncio.CancelledError)
