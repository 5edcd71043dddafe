"""The options of a job, checked and turned into fields of its record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, Union

from . import _record
from ._durations import to_ms, to_unix_ms
from ._ids import check_name

Duration = Union[str, timedelta]
COUNT_MAX = 1000000
TIMEOUT_MAX_MS = 30 * 86400000


class Options(TypedDict, total=False):
    """What `using()` takes; docs/jobs.md explains each."""

    queue: str
    id: str
    delay: Duration
    at: Union[datetime, str]
    headers: Mapping[str, str]
    max_attempts: int
    timeout: Duration
    keep: Duration
    priority: Literal["high", "normal", "low"]
    start_within: Duration
    expired: Literal["drop", "dead"]
    on_dead: str
    unique: str
    unique_until: Literal["end", "start", "done"]
    unique_for: Duration
    on_conflict: Literal["skip", "replace", "next", "cancel"]
    debounce: Duration
    max_wait: Duration
    throttle: Duration
    awaited: bool
    replace_dead: bool


_DURATIONS = ("keep", "start_within", "unique_for", "debounce", "max_wait", "throttle")
_CHOICES = {
    "priority": ("high", "normal", "low"), "expired": ("drop", "dead"), "unique_until": ("end", "start", "done"),
    "on_conflict": ("skip", "replace", "next", "cancel"),
}
_DEFAULTS = {"priority": "normal", "expired": "drop", "unique_until": "end", "on_conflict": "skip"}
_NEED_UNIQUE = ("unique_until", "unique_for", "on_conflict", "debounce", "max_wait", "throttle")
NAMES = frozenset(Options.__annotations__)


def count(value: Any, name: str, most: int = COUNT_MAX) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"{name}: expected a whole number from 1 to {most}, found {value!r}")
    return value


def fields_of(options: Mapping[str, Any]) -> dict[str, _record.Value]:
    """The fields of the record; queue, id, delay and at are none."""
    fields: dict[str, _record.Value] = {}
    for name, value in options.items():
        if name not in NAMES:
            raise TypeError(f"expected one of the options {', '.join(sorted(NAMES))}, found '{name}'")
        if value is None or name in ("queue", "id", "delay", "at"):
            continue
        if name == "headers":
            _record.check_headers(value)
            fields[name] = dict(value)
        elif name == "max_attempts":
            fields[name] = count(value, name)
        elif name == "timeout":
            fields[name] = to_ms(value, name, 1, TIMEOUT_MAX_MS)
        elif name in _DURATIONS:
            fields[name] = to_ms(value, name, 1)
        elif name in _CHOICES:
            if value not in _CHOICES[name]:
                raise ValueError(f"{name}: expected {' or '.join(_CHOICES[name])}, found {value!r}")
            if value != _DEFAULTS[name]:
                fields[name] = value
        elif name == "on_dead":
            fields[name] = check_name(value, name)
        elif name == "unique":
            if not isinstance(value, str) or not 1 <= len(value.encode(errors="replace")) <= 256:
                raise ValueError(f"unique: expected a text of 1 to 256 bytes, found {value!r}")
            fields[name] = value
        elif value is not True and value is not False:
            raise TypeError(f"{name}: expected True or False, found {value!r}")
        elif value:
            fields[name] = 1
    _check_together(options, fields)
    return fields


def _check_together(options: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    if "unique" not in fields:
        for name in _NEED_UNIQUE:
            if name in fields:
                raise ValueError(f"{name} needs unique")
    if "expired" in fields and "start_within" not in fields:
        raise ValueError("expired='dead' needs start_within")
    if ("debounce" in fields) != ("max_wait" in fields):
        raise ValueError("debounce and max_wait need each other")
    if options.get("delay") is not None and options.get("at") is not None:
        raise ValueError("expected delay or at, found both")
    if "debounce" in fields:
        for name in ("unique_until", "unique_for", "on_conflict", "throttle"):
            if name in fields:
                raise ValueError(f"expected no {name} with debounce")
        if options.get("delay") is not None or options.get("at") is not None:
            raise ValueError("expected no delay and no time with debounce")
    if "throttle" in fields:
        if "unique_for" in fields or fields.get("on_conflict", "next") != "next":
            raise ValueError("expected no unique_for, and no on_conflict but skip and next, with throttle")


def due_of(options: Mapping[str, Any]) -> int:
    """0: now; a time in Unix ms; or minus a delay."""
    if options.get("delay") is not None:
        return -to_ms(options["delay"], "delay")
    if options.get("at") is not None:
        return max(1, to_unix_ms(options["at"], "at"))
    return 0
