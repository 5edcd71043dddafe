"""`hf.run()`: becomes the worker, or runs jobs for one.

A sync handler runs in the main thread, one at a time, so that a signal ends `sleep`, `recv`, regular expressions and
loops. If any handler is async all run in one event loop, and sync ones in threads of it."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import _pipe, _run
from ._job import Job, _running
from ._run import End
from ._spin import Spin
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
        Child(hf, _pipe.take_socket()).run()
    elif path:
        Child(hf, _pipe.join_socket(path), joined=True).run()
    else:
        _become_worker(hf, queues or [], processes, config, logs)


# ---- the worker ----

def command() -> str:
    """The command holdfast: HOLDFAST_BIN, that of the wheel, or the one in PATH."""
    import shutil  # takes longer to import than the rest, and handler processes need no command
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

class Child:
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
        self._spin = Spin()
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
                from . import _loop  # and asyncio, which takes longer to import than the rest
                _loop.run(self)
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
                piece = self._spin.recv(sock, frames.wanted())
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
        flush()
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


def flush() -> None:
    """What was printed reaches the worker before the verdict, so it is in the log of the right run."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed, or none
        pass
