"""The protocol `pipe 1` (docs/pipe.md): frames between the worker and this process, on one socket."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from typing import Any, NamedTuple, NoReturn

from ._run import End

VERSION = "1"
LOG_MAX = 16 * 1024
_PIECE = 1 << 16


_raw_decode = json.JSONDecoder().raw_decode


def _read(line: str) -> dict[str, Any]:
    """json.loads guesses an encoding first and looks behind the object, which costs as much as reading it."""
    head = _raw_decode(line)[0] if line.startswith("{") else json.loads(line)
    if type(head) is not dict:
        raise ValueError("expected an object on each line")
    return head


class Frame(NamedTuple):
    head: dict[str, Any]
    payload: bytes
    checkpoint: bytes | None


class Frames:
    """Makes frames of bytes, in whatever pieces they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._at = 0
        self._head: dict[str, Any] | None = None
        self._n = self._c = 0

    def feed(self, piece: bytes) -> None:
        self._bytes += piece

    def wanted(self) -> int:
        """How many bytes to ask for."""
        if self._head is None:
            return _PIECE
        return max(_PIECE, min(1 << 22, self._n + self._c + self._at - len(self._bytes)))

    def next(self) -> Frame | None:
        head = self._head
        if head is None:
            end = self._bytes.find(b"\n", self._at)
            if end < 0:
                return None
            head = _read(self._bytes[self._at:end].decode())
            self._at = end + 1
            self._head = head
            self._n, self._c = int(head.get("n") or 0), int(head.get("c") or 0)
        n, c, at = self._n, self._c, self._at
        if len(self._bytes) - at < n + c:
            return None
        if n < _PIECE:
            payload = bytes(self._bytes[at:at + n])
        else:  # without a second copy
            with memoryview(self._bytes) as view:
                payload = bytes(view[at:at + n])
        checkpoint = bytes(self._bytes[at + n:at + n + c]) if c else None
        frame = Frame(head, payload, checkpoint)
        self._head = None
        self._at = at + n + c
        if self._at == len(self._bytes):
            self._bytes.clear()
            self._at = 0
        elif self._at > _PIECE:
            del self._bytes[:self._at]
            self._at = 0
        return frame


def refuse(text: str) -> NoReturn:
    """The worker started this process in a way that it cannot work with."""
    print(f"holdfast: {text}", file=sys.stderr, flush=True)
    raise SystemExit(78)


def take_socket() -> socket.socket:
    """The end of this process. Its variables leave the environment: no child shall take them for its own."""
    text = os.environ.pop("HOLDFAST_FD", "")
    versions = os.environ.pop("HOLDFAST_PIPE", "")
    if VERSION not in versions.split():
        refuse(f"expected the protocol pipe {VERSION} among those of the worker, found '{versions}': "
               "the package and the worker are of different ages")
    try:
        fd = int(text)
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            raise ValueError
    except (ValueError, OSError):
        refuse(f"expected in HOLDFAST_FD the number of a socket, found '{text}'")
    os.set_inheritable(fd, False)
    return socket.socket(fileno=fd)


def join_socket(path: str) -> socket.socket:
    """To a worker with --listen. The variable stays: a debugger may run this program again in the same process."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError as error:
        sock.close()
        refuse(f"expected a worker with --listen at the path in HOLDFAST_SOCKET, '{path}', found none: {error}")
    return sock


# ---- what this process writes ----

def ready(client: str, parallel: int, types: list[dict[str, Any]], schedules: list[dict[str, Any]]) -> bytes:
    head = {"t": "ready", "v": 1, "client": client, "parallel": parallel, "types": types, "schedules": schedules}
    return json.dumps(head, separators=(",", ":")).encode() + b"\n"


def verdict(run: int, end: End) -> bytes:
    word, wait, error, body, is_json = end
    if word == "done":
        if body is None:
            return b'{"t":"done","run":%d}\n' % run
        return b'{"t":"done","run":%d,"json":%s,"n":%d}\n' % (run, b"true" if is_json else b"false", len(body)) + body
    head: dict[str, Any] = {"t": word, "run": run}
    if wait is not None and word in ("retry", "release"):
        head["in"] = wait
    if error:
        head["error"] = error
    if body:
        head["n"] = len(body)
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + (body or b"")


def progress(run: int, percent: int, note: str) -> bytes:
    head: dict[str, Any] = {"t": "progress", "run": run, "percent": percent}
    if note:
        head["note"] = note
    return json.dumps(head, separators=(",", ":")).encode() + b"\n"


def checkpoint(run: int, data: bytes) -> bytes:
    return b'{"t":"checkpoint","run":%d,"n":%d}\n' % (run, len(data)) + data


def log(run: int, data: bytes) -> bytes:
    """Whole lines, in frames of at most 16 KiB."""
    if not data:
        return b""
    if not data.endswith(b"\n"):
        data += b"\n"
    frames = []
    while data:
        end = len(data)
        if end > LOG_MAX:
            end = data.rfind(b"\n", 0, LOG_MAX) + 1 or LOG_MAX
        frames.append(b'{"t":"log","run":%d,"n":%d}\n' % (run, end) + data[:end])
        data = data[end:]
    return b"".join(frames)


PONG = b'{"t":"pong"}\n'
