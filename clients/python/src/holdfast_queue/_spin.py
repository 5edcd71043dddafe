"""Whether a process that runs one job at a time first polls for the next one for a short while, instead of sleeping at
once. The worker has the same rule for the other side (base/spin.h): while jobs are short, falling asleep and waking up
takes longer than the job. After each poll in vain twice as many are left out."""

from __future__ import annotations

import socket
from time import perf_counter_ns

_SPIN_NS = 50_000     # the longest
_RECENT_NS = 200_000  # how long after a frame was read it is begun
_GAP_MAX = 64         # times left out


class Spin:
    def __init__(self) -> None:
        self._read_ns = 0  # when the last frame was read
        self._gap = 0      # times to leave out after the last poll in vain
        self._skip = 0     # of those that are still to come

    def recv(self, sock: socket.socket, size: int) -> bytes:
        """As `sock.recv(size)` of a socket that blocks."""
        piece = self._poll(sock, size)
        if piece is None:
            piece = sock.recv(size)
        self._read_ns = perf_counter_ns()
        return piece

    def _poll(self, sock: socket.socket, size: int) -> bytes | None:
        """None: nothing came."""
        now = perf_counter_ns()
        if now - self._read_ns > _RECENT_NS:
            return None
        if self._skip > 0:
            self._skip -= 1
            return None
        until = now + _SPIN_NS
        while now < until:
            try:
                piece = sock.recv(size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                now = perf_counter_ns()
            else:
                self._gap = 0
                return piece
        self._gap = min(2 * self._gap + (self._gap == 0), _GAP_MAX)
        self._skip = self._gap
        return None
