"""Names, ids that rise with time, and the shard of an id."""

from __future__ import annotations

import binascii
import os
import re
import threading
import time

ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_LOW_END = 1 << 41  # the highest bit of the lower half marks ids of another kind


def check_name(value: object, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"expected as {what} 1 to 128 characters of A-Z a-z 0-9 . _ : -, found {value!r}")
    return value


def half(value: int) -> str:
    """The lower 42 bits as 7 characters, whose order is that of the numbers."""
    pairs = _PAIRS
    return (ALPHABET[value >> 36 & 63] + pairs[value >> 24 & 4095] + pairs[value >> 12 & 4095]
            + pairs[value & 4095])


class IdMaker:
    """Makes ids of 14 characters: Unix ms, then a number that begins at random in each ms and counts on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """After a fork: the child must not count on from the parent's place."""
        self._lock = threading.Lock()
        self._ms = 0
        self._low = 0
        self._upper = ""

    def _begin(self, ms: int) -> None:
        self._ms = ms
        self._low = int.from_bytes(os.urandom(6), "big") >> 7
        self._upper = half(ms)

    def next(self) -> str:
        now = time.time_ns() // 1000000
        with self._lock:
            if now == self._ms and self._low < _LOW_END - 2:
                self._low += 1
                return self._upper + half(self._low)
        return self.several(1)[0]

    def several(self, n: int) -> list[str]:
        now = time.time_ns() // 1000000
        with self._lock:
            if now > self._ms:
                self._begin(now)
            elif self._low + n + 1 >= _LOW_END:
                self._begin(self._ms + 1)
            if self._low + n + 1 >= _LOW_END:
                self._low >>= 1
            first = self._low + 1
            self._low += n
            upper = self._upper
        return [upper + half(low) for low in range(first, first + n)]


def shard_of(text: str, shards: int) -> int:
    """CRC-16 as Redis Cluster reckons it, modulo the number of shards."""
    return binascii.crc_hqx(text.encode(), 0) % shards
