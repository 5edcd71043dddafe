"""Durations and times. A bare number is refused: one reader means seconds, another one ms."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

DELAY_MAX_MS = 3155760000000  # 100 years of 365.25 days
TIME_MAX_MS = 253402300799999  # the end of the year 9999
UNITS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000}
_PART = re.compile(r"(\d{1,15})(ms|s|m|h|d)")
_WHOLE = re.compile(r"(?:\d{1,15}(?:ms|s|m|h|d))+")


def to_ms(value: str | timedelta, name: str, least: int = 0, most: int = DELAY_MAX_MS) -> int:
    """`"30s"`, `"1h30m"` or a timedelta, in ms."""
    if isinstance(value, timedelta):
        ms = value // timedelta(milliseconds=1)
    elif isinstance(value, str) and _WHOLE.fullmatch(value):
        parts = _PART.findall(value)
        factors = [UNITS[unit] for _, unit in parts]
        if factors != sorted(set(factors), reverse=True):
            raise ValueError(f"{name}: expected a duration such as '1h30m', the largest unit first, found {value!r}")
        ms = sum(int(digits) * UNITS[unit] for digits, unit in parts)
    elif isinstance(value, str):
        raise ValueError(f"{name}: expected a duration with its unit ('500ms', '30s', '1h30m'), found {value!r}")
    else:
        raise TypeError(f"{name}: expected a text such as '30s' or a timedelta, found {value!r}: "
                        "a bare number does not say its unit")
    if not least <= ms <= most:
        raise ValueError(f"{name}: expected a duration from {least} ms to {most} ms, found {ms} ms")
    return ms


def to_unix_ms(value: datetime | str, name: str) -> int:
    """A time with its zone, in Unix ms."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.removesuffix("Z") + "+00:00" if value.endswith("Z") else value)
        except ValueError:
            raise ValueError(f"{name}: expected a time such as '2030-01-31T08:00:00Z', found {value!r}") from None
    if not isinstance(value, datetime):
        raise TypeError(f"{name}: expected a datetime or a text such as '2030-01-31T08:00:00Z', found {value!r}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(f"{name}: expected a time with its zone (datetime.now(timezone.utc)), found {value.isoformat()}")
    ms = int(value.timestamp() * 1000)
    if not 0 <= ms <= TIME_MAX_MS:
        raise ValueError(f"{name}: expected a time from 1970 to 9999, found {value.isoformat()}")
    return ms
