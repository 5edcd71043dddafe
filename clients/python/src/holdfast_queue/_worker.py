"""`hf.run()`: becomes the worker, or runs jobs for one.

A sync handler runs in the main thread, one at a time, so that a signal ends `sleep`, `recv`, regular expressions and
loops. If any handler is async all run in one event loop, and sync ones in threads of it."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import inspect
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import _pipe, _run
from ._job import Job, _running
from ._run import End
from .errors import Interrupted

if TYPE_CHECKING:
    from ._app import Holdfast, JobFunction

_log = logging.getLogger("holdfast_queue")
_NO_VALUE = object()


def run(hf: Holdfast, queues: list[str] | None, processes: int | None, config: str | None,
        logs: bool = False) -> None:
    if not hf.jobs:
        _pipe.refuse("expected functions with @hf.job before hf.run(), found none: import the modules that have them")
    for job in hf.jobs.values():
        job.params.prepare()
    path = os.environ.get("HOLDFAST_SOCKET")
    if "HOLDFAST_FD" in os.environ:
        _Child(hf, _pipe.take_socket()).run()
    elif path:
        _Child(hf, _pipe.join_socket(path), joined=True).run()
    else:
        _become_worker(hf, queues or [], processes, config, logs)


# ---- the worker ----

def command() -> str:
    """The command holdfast: HOLDFAST_BIN, that of the wheel, or the one in PATH."""
    named = os.environ.get("HOLDFAST_BIN")
    bundled = Path(__file__).parent / "bin" / "holdfast"
    found = named or (str(bundled) if bundled.is_file() else shutil.which("holdfast"))
    if not found:
        print("holdfast: expected the command holdfast in PATH, or its file in HOLDFAST_BIN, found neither",
              file=sys.stderr)
        raise SystemExit(69)
    return found


def _become_worker(hf: Holdfast, queues: list[str], processes: int | None, config: str | None,
                   logs: bool) -> NoReturn:
    path = command()
    words = [path, "worker"]
    if config is not None:
        words += ["-c", config]
    for queue in queues:
        words += ["--queue", queue]
    if processes is not None:
        words += ["--processes", str(processes)]
    if logs:
        words.append("--logs")
    if hf.namespace != "hf":
        words += ["--namespace", hf.namespace]
    if hf.url_given or (config is None and "REDIS_URL" not in os.environ):
        os.environ["REDIS_URL"] = hf.url
    words += ["--", sys.executable or sys.orig_argv[0], *sys.orig_argv[1:]]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(path, words)
    except OSError as error:
        print(f"holdfast: cannot execute {path}: {error.strerror}", file=sys.stderr)
        raise SystemExit(69) from None


# ---- logging ----

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


def _name_jobs_in_records() -> None:
    make = logging.getLogRecordFactory()

    def with_job(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        job = _running.get()
        record.job_id = job.id if job is not None else ""
        record.job_type = job.type if job is not None else ""
        return record
    logging.setLogRecordFactory(with_job)


# ---- one handler process ----

class _Child:
    """This process runs jobs. It is the channel of their progress, checkpoints and logs."""

    def __init__(self, hf: Holdfast, sock: socket.socket, joined: bool = False):
        self.hf = hf
        self.socket: socket.socket | None = sock
        self.joined = joined  # a user has started it by hand
        self.quit: BaseException | None = None  # and ends it so
        self.frames = _pipe.Frames()
        lifespan = hf.lifespan(hf) if hf.lifespan is not None else None
        self.lifespan: Any = lifespan
        functions = [job.fn for job in hf.jobs.values()]
        self.is_async = hasattr(lifespan, "__aenter__") and not hasattr(lifespan, "__enter__") or any(
            map(_run.is_async, [*functions, *hf._middleware, *hf._starts, *hf._stops]))
        self._sending = threading.Lock()
        # Of the sync mode: the run whose handler is being called, if a signal may end it now.
        self._armed: Job | None = None
        self._holding = 0  # the main thread writes a frame, which must stay whole
        self._term_came = False
        self._stop = False
        self._waiting: list[_pipe.Frame] = []  # frames that a signal handler has read
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """A child of a handler has no part in the talk with the worker."""
        sock, self.socket = self.socket, None
        self._armed = None
        if sock is not None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            sock.close()

    def run(self) -> None:
        _name_jobs_in_records()
        with contextlib.suppress(ValueError, RuntimeError, OSError):  # standard error may be closed
            faulthandler.register(signal.SIGUSR2, all_threads=True, chain=False)
        if not self.joined:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            if self.is_async:
                asyncio.run(_Loop(self).run())
            else:
                self._run_sync()
        finally:
            if self.joined and self.socket is not None:  # this process may live on
                self.socket.close()
        if self.quit is not None:
            raise self.quit

    def ends(self, error: BaseException) -> bool:
        """^C or the end of a debugger: the job goes back, and the program ends."""
        if self.joined and (isinstance(error, KeyboardInterrupt) or type(error).__name__ == "BdbQuit"):
            self.quit = error
        return self.quit is error

    def ready(self, parallel: int) -> bytes:
        types: list[dict[str, Any]] = [{"type": job.type, "queue": job.queue, **job.ready}
                                       for job in self.hf.jobs.values()]
        from . import __version__
        return _pipe.ready("python " + __version__, parallel, types,
                           [schedule.frame for schedule in self.hf.schedules.values()])

    def job_of(self, frame: _pipe.Frame) -> Job:
        head, payload, checkpoint = frame
        get = head.get
        return Job(id=head["id"], type=head["type"], queue=get("queue", "default"), attempt=get("attempt", 1),
                   max_attempts=get("max_attempts"), fence=int(get("fence") or 0), timeout_ms=get("timeout"),
                   created=get("created"), scheduled=get("scheduled"), headers=get("headers"), trace=get("trace"),
                   payload=payload, checkpoint=checkpoint, run=int(head["run"]), channel=self)

    def unknown(self, job: Job) -> End:
        return End("release", 10000, f"this process has no handler for the type '{job.type}'")

    # ---- writing ----

    def send(self, data: bytes) -> None:
        """Blocks until the worker has taken it, which it does at once."""
        in_main = threading.current_thread() is threading.main_thread()
        if in_main:
            self._holding += 1
        try:
            with self._sending:
                if self.socket is not None:
                    self.socket.sendall(data)
        finally:
            if in_main:
                self._holding -= 1
        if in_main and self._term_came and self._armed is not None and not self._holding:
            self._look()

    def progress(self, run: int, percent: int, note: str) -> None:
        self.send(_pipe.progress(run, percent, note))

    def checkpoint(self, run: int, data: bytes) -> None:
        self.send(_pipe.checkpoint(run, data))

    def log(self, run: int, data: bytes) -> None:
        frames = _pipe.log(run, data)
        if frames:
            self.send(frames)

    # ---- sync ----

    def _on_term(self, number: int, frame: Any) -> None:
        """TERM says no more than "read the socket"."""
        self._term_came = True
        if self._armed is not None and not self._holding:
            self._look()

    def _look(self) -> None:
        """Raises if the worker has cancelled the present run."""
        job = self._armed
        sock = self.socket
        self._term_came = False
        if job is None or sock is None:
            return
        with contextlib.suppress(BlockingIOError):
            while True:
                piece = sock.recv(1 << 16, socket.MSG_DONTWAIT)
                if not piece:
                    break
                self.frames.feed(piece)
        while (found := self.frames.next()) is not None:
            if found.head.get("t") == "cancel" and found.head.get("run") == job._run:
                job._why = found.head.get("why") or "cancelled"
            else:
                self._waiting.append(found)
        if job._why is not None:
            self._armed = None
            raise Interrupted(job._why)

    def _next_frame(self) -> _pipe.Frame | None:
        """None: the worker has closed its end."""
        if self._waiting:
            return self._waiting.pop(0)
        frames, sock = self.frames, self.socket
        while (frame := frames.next()) is None:
            if sock is None:
                return None
            try:
                piece = sock.recv(frames.wanted())
            except ConnectionError:
                return None
            if not piece:
                return None
            frames.feed(piece)
        return frame

    def _run_sync(self) -> None:
        hf = self.hf
        signal.signal(signal.SIGTERM, self._on_term)
        with contextlib.ExitStack() as stack:
            if self.lifespan is not None:
                stack.enter_context(self.lifespan)
            for start in hf._starts:
                start()
            for stop in hf._stops:
                stack.callback(stop)
            self.send(self.ready(1))
            while (frame := self._next_frame()) is not None:
                kind = frame.head.get("t")
                if kind == "job":
                    self._answer(self.job_of(frame))
                    if self.socket is None:  # a child of a fork came back from the handler
                        os._exit(0)
                    if self.quit is not None:
                        break
                elif kind == "stop":
                    break
                elif kind == "ping":
                    self.send(_pipe.PONG)

    def _answer(self, job: Job) -> None:
        function = self.hf.jobs.get(job.type)
        end = self.unknown(job) if function is None else self._call(function, job)
        _flush()
        data = _pipe.verdict(job._run, end)
        with self._sending:
            if self.socket is not None:
                try:
                    self.socket.sendall(data)
                except ConnectionError:  # the worker is gone: the next read says so
                    pass

    def _call(self, function: JobFunction[Any, Any, Any], job: Job) -> End:
        token = _running.set(job)
        value: Any = _NO_VALUE
        try:
            try:
                args = function.params.unpack(job.payload, job)
                self._armed = job
                if self._term_came:
                    self._look()
                value = _run.call_sync(self.hf._middleware, job, function.fn, args)
            finally:
                self._armed = None
        except BaseException as error:
            if self.ends(error):
                return End("release")
            if value is _NO_VALUE:  # else the signal came behind the handler's last step
                return _run.end_of_error(function, job, error)
        finally:
            _running.reset(token)
        return _run.end_of_value(value)


def _flush() -> None:
    """What was printed reaches the worker before the verdict, so it is in the log of the right run."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed, or none
        pass


# ---- asyncio ----

class _Loop:
    """The same in an event loop: many runs at a time."""

    def __init__(self, child: _Child):
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
                value = await _run.call_async(self.hf._middleware, job, function.fn, args, _run.run_in_thread)
            end = _run.end_of_value(value)
        except BaseException as error:
            end = _run.end_of_error(function, job, error)
            if self.child.ends(error):
                end = End("release")
                self.stopping = True
        _flush()
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
