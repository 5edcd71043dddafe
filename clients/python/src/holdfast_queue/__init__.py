"""Holdfast for Python: jobs as functions, on a queue in Redis whose jobs are held by locks."""

from ._app import Call, Holdfast, JobFunction
from ._job import Job, TooLarge, current_job
from ._ref import JobRef
from .errors import (
    Cancel, Dead, HoldfastError, Interrupted, JobCancelled, JobDead, JobError, JobExpired, JobUnknown, NoAnswer,
    NotKept, Refused, Release, Retry,
)

__all__ = [
    "Call", "Cancel", "Dead", "Holdfast", "HoldfastError", "Interrupted", "Job", "JobCancelled", "JobDead", "JobError",
    "JobExpired", "JobFunction", "JobRef", "JobUnknown", "NoAnswer", "NotKept", "Refused", "Release", "Retry",
    "TooLarge", "current_job",
]
__version__ = "0.2.0"
