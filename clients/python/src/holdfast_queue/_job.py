"""The job that a handler runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, Protocol, cast

from .errors import Dead

RESULT_MAX = 64 * 1024
CHECKPOINT_MAX = 4096
NOTE_MAX = 256


class TooLarge(Dead):
    """A result, a checkpoint or a note is larger than Holdfast keeps: the job is dead, not retried."""

    def __init__(self, what: str, most: int, found: int):
        super().__init__(f"{what}: expected at most {most} bytes, found {found}")


class Channel(Protocol):
    """Where a run reports itself."""

    def progress(self, run: int, percent: int, note: str) -> None: ...
    def checkpoint(self, run: int, data: bytes) -> None: ...
    def log(self, run: int, data: bytes) -> None: ...


class _Notes:
    """The channel of a fake job: it keeps what was told."""

    def __init__(self, job: Job):
        self.job = job

    def progress(self, run: int, percent: int, note: str) -> None:
        self.job.told_progress.append((percent, note))

    def checkpoint(self, run: int, data: bytes) -> None:
        pass

    def log(self, run: int, data: bytes) -> None:
        self.job.told_log.append(data.decode(errors="replace").rstrip("\n"))


_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def _time(ms: int | None) -> datetime | None:
    return None if not ms else datetime.fromtimestamp(ms / 1000, timezone.utc)


class Job:
    """One run of a job. A handler gets it in its parameter with the annotation `Job`."""

    def __init__(self, *, id: str, type: str, queue: str = "default", attempt: int = 1,
                 max_attempts: int | None = None, fence: int = 0, timeout_ms: int | None = None,
                 created: int | None = None, scheduled: int | None = None,
                 headers: Mapping[str, str] | None = None, trace: str | None = None, payload: bytes = b"",
                 checkpoint: bytes | None = None, run: int = 0, channel: Channel | None = None):
        self.id = id
        self.type = type
        self.queue = queue
        self.attempt = attempt
        self.max_attempts = max_attempts
        self.fence = fence
        self.timeout_ms = timeout_ms
        self._created = created
        self._scheduled = scheduled
        self.headers: Mapping[str, str] = MappingProxyType(dict(headers)) if headers else _NO_HEADERS
        self.trace = trace
        self.payload = payload
        self._checkpoint = checkpoint
        self._run = run
        self._why: str | None = None
        self._channel: Channel
        if channel is not None:
            self._channel = channel
        else:
            self._channel = _Notes(self)
            self.told_progress: list[tuple[int, str]] = []
            self.told_log: list[str] = []

    @classmethod
    def fake(cls, id: str = "fake", type: str = "fake", **fields: Any) -> Job:
        """A job for a test of a handler. It keeps `told_progress` and `told_log`."""
        return cls(id=id, type=type, **fields)

    @property
    def created(self) -> datetime | None:
        """When the job was enqueued, if that is known."""
        return _time(self._created)

    @property
    def scheduled(self) -> datetime | None:
        """The tick of the schedule that made the job."""
        return _time(self._scheduled)

    @property
    def stopping(self) -> bool:
        """The run should end soon: it timed out, was cancelled, lost its lock, or the worker stops."""
        return self._why is not None

    @property
    def stop_reason(self) -> str | None:
        """timeout, cancelled, lost or stop."""
        return self._why

    def progress(self, percent: float, note: str = "") -> None:
        """Tells how far the run is: 0 to 100, and a note of at most 256 bytes."""
        if not 0 <= percent <= 100:
            raise ValueError(f"expected a percent from 0 to 100, found {percent!r}")
        size = len(note.encode(errors="replace"))
        if size > NOTE_MAX:
            raise TooLarge("note", NOTE_MAX, size)
        self._channel.progress(self._run, int(percent), note)

    def checkpoint(self, data: bytes | str | None = None) -> bytes | None:
        """Keeps up to 4 KiB for the next run of this job. b"" removes it. Without an argument: what an
        earlier run has kept, or None."""
        if data is not None:
            data = data.encode() if isinstance(data, str) else bytes(data)
            if len(data) > CHECKPOINT_MAX:
                raise TooLarge("checkpoint", CHECKPOINT_MAX, len(data))
            self._channel.checkpoint(self._run, data)
            self._checkpoint = data or None
        return self._checkpoint

    def log(self, text: str) -> None:
        """Adds lines to the log of this run (`holdfast job logs`)."""
        self._channel.log(self._run, text.encode(errors="backslashreplace"))

    def json(self) -> Any:
        """The payload as JSON."""
        return json.loads(self.payload)

    def __repr__(self) -> str:
        return f"<Job {self.type} {self.id} attempt {self.attempt}>"


_running: ContextVar[Job | None] = ContextVar("holdfast_job", default=None)


def running() -> Job | None:
    """The job of the present run, or None outside of a handler."""
    return _running.get()


class _CurrentJob:
    def __getattr__(self, name: str) -> Any:
        job = _running.get()
        if job is None:
            raise LookupError("there is no current job: this code does not run in a handler")
        return getattr(job, name)

    def __repr__(self) -> str:
        return repr(_running.get())


# The job of the present run. `job: Job = current_job` as the last parameter tells a type checker that
# the caller of `enqueue` does not pass it.
current_job: Job = cast(Job, _CurrentJob())
