"""When a process polls for its next job, and when it sleeps at once."""

from __future__ import annotations

import socket

import pytest
from holdfast_queue import _spin
from holdfast_queue._spin import Spin


class Socket:
    """A poll finds nothing while it is empty; whoever waits gets a frame. Its clock steps with each poll."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ns, self.empty, self.polls, self.waits = 1_000_000_000, True, 0, 0
        monkeypatch.setattr(_spin, "perf_counter_ns", lambda: self.ns)

    def recv(self, size: int, flags: int = 0) -> bytes:
        if flags == 0:
            self.waits += 1
            return b"waited"
        assert flags == socket.MSG_DONTWAIT
        self.ns += 10_000
        self.polls += 1
        if self.empty:
            raise BlockingIOError
        return b"polled"


def test_a_frame_that_comes_soon_is_polled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sock, spin = Socket(monkeypatch), Spin()
    assert spin.recv(sock, 9) == b"waited"  # type: ignore[arg-type]
    assert sock.polls == 0  # it was the first one
    sock.empty = False
    for _ in range(3):
        assert spin.recv(sock, 9) == b"polled"  # type: ignore[arg-type]
    assert (sock.polls, sock.waits) == (3, 1)


def test_after_a_long_job_it_sleeps_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sock, spin = Socket(monkeypatch), Spin()
    spin.recv(sock, 9)  # type: ignore[arg-type]
    sock.empty, sock.ns = False, sock.ns + 200_001
    assert spin.recv(sock, 9) == b"waited"  # type: ignore[arg-type]
    assert sock.polls == 0


def test_each_poll_in_vain_leaves_out_twice_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    sock, spin = Socket(monkeypatch), Spin()
    gaps: list[int] = []
    for _ in range(500):
        before = sock.polls
        spin.recv(sock, 9)  # type: ignore[arg-type]
        assert sock.polls - before in (0, 5), "a poll takes 50 µs at most"
        gaps = gaps[:-1] + [gaps[-1] + 1] if gaps and sock.polls == before else gaps + [0]
    assert gaps[1:8] == [1, 2, 4, 8, 16, 32, 64] and set(gaps[8:-1]) == {64}
    sock.empty = False
    while spin.recv(sock, 9) == b"waited":  # type: ignore[arg-type]
        pass
    sock.empty = True
    before = sock.polls
    assert spin.recv(sock, 9) == b"waited" and sock.polls - before == 5  # type: ignore[arg-type]
    assert spin.recv(sock, 9) == b"waited" and sock.polls - before == 5  # type: ignore[arg-type]
    assert spin.recv(sock, 9) == b"waited" and sock.polls - before == 10  # type: ignore[arg-type]
