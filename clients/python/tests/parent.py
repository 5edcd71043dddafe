"""A worker for tests: it starts a program and speaks `pipe 1` with it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SRC = Path(__file__).parents[1] / "src"


class Parent:
    def __init__(self, app: Path, *words: str, pipe: str = "1", fd: str | None = None, env: dict[str, str] | None = None,
                 python: str = sys.executable):
        self.socket, child = socket.socketpair()
        self.socket.settimeout(120)  # on a busy machine
        os.set_inheritable(child.fileno(), True)
        environment = {**os.environ, "PYTHONPATH": str(SRC), "HOLDFAST_PIPE": pipe,
                       "HOLDFAST_FD": fd if fd is not None else str(child.fileno()), **(env or {})}
        self.process = subprocess.Popen([python, str(app), *words], pass_fds=[child.fileno()], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        child.close()
        self.bytes = b""
        self.run = 0

    def __enter__(self) -> Parent:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None and self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        self.socket.sendall(json.dumps(head).encode() + b"\n" + body)

    def job(self, type: str, args: Any = None, /, **head: Any) -> int:
        self.run += 1
        checkpoint = head.pop("checkpoint_bytes", b"")
        payload = args if isinstance(args, bytes) else json.dumps(args if args is not None else {}).encode()
        self.send({"t": "job", "run": self.run, "n": len(payload), "id": f"job-{self.run}", "type": type,
                   "queue": "default", "attempt": 1, "fence": "1790000000000000", "created": 1790000000000, **head},
                  payload + checkpoint)
        return self.run

    def cancel(self, run: int, why: str = "timeout", term: bool = True) -> None:
        self.send({"t": "cancel", "run": run, "why": why, "kill_in": 5000})
        if term:
            self.process.send_signal(signal.SIGTERM)

    def frame(self, timeout: float = 120) -> tuple[dict[str, Any], bytes]:
        until = time.monotonic() + timeout
        while b"\n" not in self.bytes:
            self._more(until)
        line, _, self.bytes = self.bytes.partition(b"\n")
        head = json.loads(line)
        n = head.get("n", 0)
        while len(self.bytes) < n:
            self._more(until)
        body, self.bytes = self.bytes[:n], self.bytes[n:]
        return head, body

    def _more(self, until: float) -> None:
        if not select.select([self.socket], [], [], max(0, until - time.monotonic()))[0]:
            raise TimeoutError("no frame")
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise EOFError(self.process.stderr.read().decode() if self.process.stderr else "")
        self.bytes += piece

    def silent(self, seconds: float = 0.2) -> bool:
        return not self.bytes and not select.select([self.socket], [], [], seconds)[0]

    def ends(self, timeout: float = 120) -> int:
        return self.process.wait(timeout)
