"""Runs jobs in an event loop, many at a time. Sync handlers run in threads of it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from . import _pipe, _run
from ._job import Job, _running
from ._run import End
from ._worker import Child, flush

if TYPE_CHECKING:
    from ._app import JobFunction


def run(child: Child) -> None:
    asyncio.run(_Loop(child).run())


class _RunLog(logging.Handler):
    """Sends the records of a run to its log. A program that has not configured logging finds them on standard error
    as well, as in any Python program."""

    def __init__(self, send: Callable[[bytes], None]):
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            job = _running.get()
            if job is not None:
                self._send(_pipe.log(job._run, text.encode(errors="backslashreplace")))
            if logging.getLogger().handlers == [self]:
                print(text if job is None else f"{job.id}: {text}", file=sys.stderr)
        except Exception:
            self.handleError(record)


class _Loop:
    """The same in an event loop: many runs at a time."""

    def __init__(self, child: Child):
        self.child = child
        self.hf = child.hf
        self.runs: dict[int, tuple[asyncio.Task[None], Job, bool]] = {}
        self.begun: set[int] = set()  # cancelling a task before its first step would swallow its verdict
        self.backlog = bytearray()
        self.stopping = False

    async def run(self) -> None:
        hf, child = self.hf, self.child
        sock = child.socket
        assert sock is not None
        sock.setblocking(False)
        self.sock = sock
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.ended = asyncio.Event()
        self.loop.set_default_executor(ThreadPoolExecutor(hf.parallel, "holdfast"))
        signal.signal(signal.SIGTERM, lambda number, frame: None)  # the socket is read in any case
        child.send = self.send  # type: ignore[method-assign]
        logging.getLogger().addHandler(_RunLog(self.send))
        async with contextlib.AsyncExitStack() as stack:
            if child.lifespan is not None and hasattr(child.lifespan, "__aenter__"):
                await stack.enter_async_context(child.lifespan)
            elif child.lifespan is not None:
                stack.enter_context(child.lifespan)
            for start in hf._starts:
                await _maybe(start())
            for stop in hf._stops:
                stack.push_async_callback(_call_maybe, stop)
            self.send(child.ready(hf.parallel))
            self.loop.add_reader(sock.fileno(), self._on_readable)
            try:
                await self.ended.wait()
                await self._finish()
            except asyncio.CancelledError:  # ^C in a program that was started by hand
                for _, job, _ in self.runs.values():
                    job._why = "stop"
                raise
            finally:
                self.loop.remove_reader(sock.fileno())
        await hf.aclose()

    async def _finish(self) -> None:
        """What is left to write goes out; the worker reads always."""
        self.loop.remove_writer(self.sock.fileno())
        with contextlib.suppress(ConnectionError):
            while self.backlog:
                await self.loop.sock_sendall(self.sock, bytes(self.backlog))
                self.backlog.clear()

    # ---- reading ----

    def _on_readable(self) -> None:
        frames = self.child.frames
        try:
            piece = self.sock.recv(frames.wanted())
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionError:
            piece = b""
        if not piece:
            self._end_now()
            return
        frames.feed(piece)
        while (frame := frames.next()) is not None:
            self._take(frame)

    def _take(self, frame: _pipe.Frame) -> None:
        head = frame.head
        kind = head.get("t")
        if kind == "job":
            self._start(self.child.job_of(frame))
        elif kind == "cancel":
            entry = self.runs.get(head.get("run", -1))
            if entry is not None:
                task, job, in_thread = entry
                job._why = head.get("why") or "cancelled"
                if not in_thread and job._run in self.begun:  # a thread cannot be ended: it sees job.stopping
                    task.cancel()
        elif kind == "ping":
            self.send(_pipe.PONG)
        elif kind == "stop":
            self.stopping = True
            if not self.runs:
                self.ended.set()

    def _end_now(self) -> None:
        """The worker is gone."""
        self.loop.remove_reader(self.sock.fileno())
        if not self.runs:
            self.ended.set()
            return
        for task, job, in_thread in self.runs.values():
            job._why = "lost"
            if not in_thread and job._run in self.begun:
                task.cancel()
        self.stopping = True
        self.loop.call_later(1.0, os._exit, 1)

    # ---- running ----

    def _start(self, job: Job) -> None:
        function = self.hf.jobs.get(job.type)
        if function is None:
            self.send(_pipe.verdict(job._run, self.child.unknown(job)))
            return
        task = self.loop.create_task(self._answer(function, job))
        self.runs[job._run] = (task, job, not function.is_async)

    async def _answer(self, function: JobFunction[Any, Any, Any], job: Job) -> None:
        _running.set(job)  # the context is the task's own
        self.begun.add(job._run)
        try:
            if job._why is not None:
                raise asyncio.CancelledError
            args = function.params.unpack(job.payload, job)
            if function.is_async and not self.hf._middleware:
                value = await function.fn(**args)
            else:
                value = await _run.call_async(self.hf._middleware, job, function.fn, args, run_in_thread)
            end = _run.end_of_value(value)
        except BaseException as error:
            end = _run.end_of_error(function, job, error)
            if self.child.ends(error):
                end = End("release")
                self.stopping = True
        flush()
        del self.runs[job._run]
        self.begun.discard(job._run)
        self.send(_pipe.verdict(job._run, end))
        if self.stopping and not self.runs:
            self.ended.set()

    # ---- writing ----

    def send(self, data: bytes) -> None:
        """From any thread. It never waits: reading goes on meanwhile."""
        if threading.get_ident() != self.thread:
            self.loop.call_soon_threadsafe(self._write, data)
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self.child.socket is None:  # in a child of a fork
            return
        if not self.backlog:
            try:
                sent = self.sock.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except ConnectionError:
                return
            if sent == len(data):
                return
            data = data[sent:]
            self.loop.add_writer(self.sock.fileno(), self._on_writable)
        self.backlog += data

    def _on_writable(self) -> None:
        try:
            sent = self.sock.send(self.backlog[:1 << 18])
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionError:
            self.backlog.clear()
            sent = 0
        del self.backlog[:sent]
        if not self.backlog:
            self.loop.remove_writer(self.sock.fileno())


async def _maybe(value: Any) -> None:
    if inspect.isawaitable(value):
        await value


async def _call_maybe(fn: Callable[[], Any]) -> None:
    await _maybe(fn())


async def run_in_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(contextvars.copy_context().run, call)
