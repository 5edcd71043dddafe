"""Schedules that are written in code. They travel to the worker in the frame `ready`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ._args import to_json
from ._durations import to_ms, to_unix_ms
from ._ids import check_name
from ._options import count, fields_of

if TYPE_CHECKING:
    from ._app import JobFunction

_CHOICES = {"missed": ("once", "all", "skip"), "overlap": ("skip", "allow", "cancel")}


class Schedule(NamedTuple):
    id: str
    frame: dict[str, Any]
    job: JobFunction[Any, Any, Any]
    args: dict[str, Any]

    @classmethod
    def make(cls, id: str, job: JobFunction[Any, Any, Any], when: dict[str, Any], args: Mapping[str, Any] | None,
             rules: dict[str, Any]) -> Schedule:
        frame: dict[str, Any] = {"id": check_name(id, "id"), **when}
        options = {}
        for name, value in rules.items():
            if name in _CHOICES:
                if value not in _CHOICES[name]:
                    raise ValueError(f"{name}: expected {' or '.join(_CHOICES[name])}, found {value!r}")
                frame[name] = value
            elif name in ("catch_up", "jitter"):
                frame[name] = to_ms(value, name, 1)
            elif name in ("start", "end"):
                frame[name] = to_unix_ms(value, name)
            elif name == "limit":
                frame[name] = count(value, name)
            else:
                options[name] = value
        packed = job.params.pack((), dict(args or {}))
        fields = fields_of({**job._options, **options})
        if "unique" in fields or "headers" in fields:
            raise ValueError("expected no unique keys and no headers for the jobs of a schedule")
        frame["queue"] = check_name(options.get("queue") or job.queue, "queue")
        frame["job"] = {"type": job.type, **fields, "payload": json.loads(to_json(packed))}
        return cls(id, frame, job, packed)
