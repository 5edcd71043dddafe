"""OPTIONS of a backend, read once for all threads: a thread has a backend object of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from .._app import Holdfast
from .._durations import to_ms
from .._options import TIMEOUT_MAX_MS, count
from ._compat import InvalidTaskBackend

OF_HOLDFAST = ("url", "namespace", "deadline", "remember", "parallel", "redis")
NAMES = ("holdfast", *OF_HOLDFAST, "keep", "max_attempts", "timeout", "enqueue_on_commit", "modules")
KEEP, MAX_ATTEMPTS = "1d", 1


def _keep(value: Any) -> int:
    return to_ms(value, "keep", 1)


def _timeout(value: Any) -> int:
    return to_ms(value, "timeout", 1, TIMEOUT_MAX_MS)


def _max_attempts(value: Any) -> int:
    return count(value, "max_attempts")


def _enqueue_on_commit(value: Any) -> bool:
    if value is not True and value is not False:
        raise TypeError(f"enqueue_on_commit: expected True or False, found {value!r}")
    return bool(value)


def _modules(value: Any) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"modules: expected a list of the names of modules, found {value!r}")
    return list(value)


def _holdfast(value: Any) -> str:
    if not isinstance(value, str) or "." not in value:
        raise TypeError(f"holdfast: expected the path of a Holdfast, such as 'mysite.jobs.hf', found {value!r}")
    return value


READERS: Mapping[str, Callable[[Any], Any]] = {
    "keep": _keep, "timeout": _timeout, "max_attempts": _max_attempts, "enqueue_on_commit": _enqueue_on_commit,
    "modules": _modules, "holdfast": _holdfast,
}
READY = {"timeout": _timeout, "max_attempts": _max_attempts, "keep": _keep}


class Settings:
    """Checked options. `problems` are sentences: each is an error of `manage.py check`, and the first one that of
    an enqueue."""

    def __init__(self, options: Any):
        self.problems: list[str] = []
        self.enqueue_on_commit = True
        self.modules: list[str] = []
        self.ready: dict[str, Any] = {}  # for tasks that say nothing else
        self._path: str | None = None
        self._hf: Holdfast | None = None
        if not isinstance(options, Mapping):
            self.problems.append(f"expected a dict, found {options!r}")
            return
        values = {"keep": KEEP, "max_attempts": MAX_ATTEMPTS, **options}
        for name in values:
            if name not in NAMES:
                self.problems.append(f"expected one of {', '.join(NAMES)}, found {name!r}")
        for name, read in READERS.items():
            if values.get(name) is not None:
                self._take(name, read, values[name])
        self._make({name: values[name] for name in OF_HOLDFAST if values.get(name) is not None})

    def _take(self, name: str, read: Callable[[Any], Any], value: Any) -> None:
        try:
            value = read(value)
        except (TypeError, ValueError) as error:
            self.problems.append(str(error))
            return
        if name in READY:
            self.ready[name] = value
        elif name == "holdfast":
            self._path = value
        else:
            setattr(self, name, value)

    def _make(self, given: dict[str, Any]) -> None:
        if self._path is not None:
            if given:
                self.problems.append(f"expected holdfast alone, found {', '.join(given)} beside it, which the Holdfast "
                                     "has itself")
            return
        try:
            self._hf = Holdfast(**given)
        except (TypeError, ValueError) as error:
            self.problems.append(str(error))

    def hf(self) -> Holdfast:
        """What enqueues; the one of `holdfast` is imported at its first use, when its module can be."""
        if self._hf is None:
            path = self._path or ""
            module, _, name = path.rpartition(".")
            try:
                found = getattr(import_module(module), name)
            except (ImportError, AttributeError) as error:
                raise InvalidTaskBackend(f"holdfast: expected the path of a Holdfast, found '{path}': "
                                         f"{error}") from None
            if not isinstance(found, Holdfast):
                raise InvalidTaskBackend(f"holdfast: expected the path of a Holdfast, found {found!r} at '{path}'")
            self._hf = found
        return self._hf


_lock = threading.Lock()
_known: dict[str, Settings] = {}


def settings_of(options: Any) -> Settings:
    key = repr(sorted(options.items(), key=repr) if isinstance(options, Mapping) else options)
    found = _known.get(key)
    if found is None:
        with _lock:
            found = _known.setdefault(key, Settings(options))
    return found
