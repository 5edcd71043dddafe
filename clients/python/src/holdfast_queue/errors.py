"""What can go wrong, and what a handler raises to choose a verdict."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from ._durations import to_ms

if TYPE_CHECKING:
    from ._ref import JobRef


class HoldfastError(Exception):
    """The parent of all errors of this package that are not mistakes of the caller."""


class Refused(HoldfastError):
    """Redis or a script has refused a request. Nothing was changed."""


class NoAnswer(HoldfastError, ConnectionError):
    """Redis has not answered in time. The request may have been executed all the same."""


class JobError(HoldfastError):
    """A job has no result. `text` says why."""

    def __init__(self, ref: JobRef, text: str):
        super().__init__(f"{ref.id}: {text}")
        self.ref = ref
        self.text = text


class NotKept(JobError):
    """The job is not kept when it is done, so it has no result: give it `keep`."""


class JobDead(JobError):
    """The job is dead; `text` is its last error with its stack."""


class JobCancelled(JobError):
    """The job was cancelled or deleted."""


class JobExpired(JobError):
    """The job did not start in time."""


class JobUnknown(JobError):
    """Redis knows no such job: it is done and is kept no longer, or it never was."""


class Verdict(Exception):
    """A handler raises one of its children to say how its run ends."""

    def __init__(self, error: str = "", *, delay: str | timedelta | None = None):
        super().__init__(error)
        self.error = error
        self.delay = None if delay is None else to_ms(delay, "delay")


class Retry(Verdict):
    """A failed attempt. The job runs again after `delay`, or after its back-off."""


class Release(Verdict):
    """Not a failed attempt. The job runs again after `delay`, or when its turn comes."""


class Dead(Verdict):
    """The job will not run again until a user retries it."""

    def __init__(self, error: str = ""):
        super().__init__(error)


class Cancel(Verdict):
    """The job is not wanted any more: it is removed, and counts as cancelled."""

    def __init__(self, error: str = ""):
        super().__init__(error)


class Interrupted(BaseException):
    """The worker ends this run. `why`: timeout, cancelled, lost or stop.

    It is raised inside a sync handler, wherever that is. It is no Exception, so an `except Exception`
    does not stop it; `finally` blocks and `with` blocks run."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why = why
