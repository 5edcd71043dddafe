"""A job as Redis keeps it: a line of JSON, a newline, the payload (docs/keys.md, "The record").

The fields come in one order, so that all languages write the same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Union

HEADERS_MAX = 4096
Value = Union[int, str, Mapping[str, str]]

# Fields that any script accepts, then those that need `enqueue_with`.
PLAIN = ("max_attempts", "timeout", "keep")
OPTIONS = ("priority", "start_within", "expired", "on_dead", "awaited", "replace_dead", "unique_until",
           "on_conflict", "unique_for", "debounce", "max_wait", "throttle")
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')


def quoted(text: str) -> str:
    """A text between quotes of JSON; only what must be escaped is."""
    return '"' + _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + '"'


def has_options(fields: Mapping[str, Value]) -> bool:
    return "unique" in fields or any(name in fields for name in OPTIONS)


def check_headers(headers: Mapping[str, str]) -> None:
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers: expected a dict of texts, found {headers!r}")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"headers: expected texts, found {name!r}: {value!r}")
    size = len(object_of(headers).encode())
    if size > HEADERS_MAX:
        raise ValueError(f"headers: expected at most {HEADERS_MAX} bytes of JSON, found {size}")


def object_of(texts: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in texts.items()) + "}"


def line(type: str, created: int | None, fields: Mapping[str, Value]) -> bytes:
    """The line and its newline. created None: the id tells when the job was made."""
    parts = []
    if "unique" in fields:
        parts.append('"unique":' + quoted(str(fields["unique"])))
    parts.append(f'"type":"{type}"')
    if created is not None:
        parts.append(f'"created":{created}')
    for name in PLAIN + OPTIONS:
        value = fields.get(name)
        if isinstance(value, str):
            parts.append(f'"{name}":{quoted(value)}')
        elif value is not None:
            parts.append(f'"{name}":{value}')
    headers = fields.get("headers")
    if isinstance(headers, Mapping) and headers:
        parts.append('"headers":' + object_of(headers))
    return ("{" + ",".join(parts) + "}\n").encode()
