"""A job that was enqueued: its outcome, its result, its end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ._link import Command, Sharded, Sleep, Steps, send
from ._ids import shard_of
from .errors import JobCancelled, JobDead, JobExpired, JobUnknown, NotKept

if TYPE_CHECKING:
    from ._app import Holdfast

Outcome = Literal["new", "exists", "skipped", "replaced", "parked"]
State = Literal["waiting", "running", "dead", "parked", "done", "cancelled", "deleted", "expired", "unknown"]
_STATES: Mapping[str, State] = {
    "schedule": "waiting", "schedule:h": "waiting", "schedule:l": "waiting", "running": "running", "dead": "dead",
    "parked": "parked", "done": "done",
}
_WORDS: Mapping[str, State] = {"cancelled": "cancelled", "deleted": "deleted", "expired": "expired",
                               "replaced": "cancelled", "done": "done", "dead": "dead"}
_OK, _RUNS = 0, -6
_LOOK_S = 2.0  # Redis reports the end; a message that is lost costs this


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class JobRef:
    """`id` and `queue` of a job, and what happened to its enqueueing:

    new       it was accepted under a new id, or under the id that was chosen
    exists    a job with the chosen id has not ended, or is dead
    skipped   another job holds its unique key; `id` is that job's
    replaced  that job has taken its payload and options; `id` is that job's
    parked    it waits until that job has ended"""

    __slots__ = ("id", "queue", "outcome", "_hf", "_tag", "_kept", "_accepted")

    def __init__(self, hf: Holdfast, id: str, queue: str, outcome: Outcome = "new", tag: str | None = None,
                 kept: bool = True):
        self.id = id
        self.queue = queue
        self.outcome: Outcome = outcome
        self._hf = hf
        self._tag = tag
        self._kept = kept
        self._accepted = "0"  # which life of the id is meant: when it was accepted; 0: the present one

    def __repr__(self) -> str:
        return f"JobRef(id={self.id!r}, queue={self.queue!r}, outcome={self.outcome!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobRef) and (self.id, self.queue) == (other.id, other.queue)

    def __hash__(self) -> int:
        return hash((self.id, self.queue))

    # ---- calls ----

    def result(self, timeout: float | None = None) -> Any:
        """Waits up to `timeout` seconds for the end of the job, and returns what its handler returned.
        Without `timeout` a job whose type no worker handles is waited for for ever.

        NotKept at once if the job is not kept; else JobDead, JobCancelled, JobExpired, JobUnknown or
        TimeoutError."""
        self._must_be_kept()
        return self._hf._run(self._result(timeout))

    async def aresult(self, timeout: float | None = None) -> Any:
        self._must_be_kept()
        return await self._hf._arun(self._result(timeout))

    def cancel(self) -> bool:
        """Removes a waiting job; asks the worker of a running one to end it, which hears it when it next renews
        the lock, within about a third of the lease. False: it has ended already."""
        return self._hf._run(self._cancel())

    async def acancel(self) -> bool:
        return await self._hf._arun(self._cancel())

    def requeue(self) -> bool:
        """Runs a waiting job now, and a dead one again like a new one. False: there is no such job, or it
        runs, or another job holds its unique key."""
        return self._hf._run(self._requeue())

    async def arequeue(self) -> bool:
        return await self._hf._arun(self._requeue())

    def state(self) -> State:
        """What is known of the job now. `unknown`: it is done and not kept, or it never was."""
        return self._hf._run(self._state())

    async def astate(self) -> State:
        return await self._hf._arun(self._state())

    def _must_be_kept(self) -> None:
        if not self._kept:
            raise NotKept(self, "it has no `keep`, so nothing is left of it when it is done")

    # ---- steps ----

    def _on_its_shard(self, name: str, *args: Any) -> Steps[list[Any]]:
        """The answer of the shard that has the job; of a queue without shards, that of the queue."""
        hf = self._hf
        if self._tag is None:
            try:
                answer: list[Any] = yield from send(name, hf._prefix(self.queue), *args, deadline=hf._deadline)
                return answer
            except Sharded as sharded:
                tags = sharded.tags
        else:
            tags = [self._tag]
        first = shard_of(self.id, len(tags))
        answer = []
        for tag in tags[first:] + tags[:first]:
            answer = yield from send(name, hf._prefix(tag), *args, deadline=hf._deadline)
            gone = answer[0] == -3 if name != "requeue" else answer[0] == 0 and answer[2][0] == -3
            if not gone or (len(answer) > 4 and _text(answer[4])):
                self._tag = tag
                break
        return answer

    def _cancel(self) -> Steps[bool]:
        word = self._hf._word()
        answer = yield from self._on_its_shard("cancel", f"0 {word}", self.id)
        return answer[0] in (_OK, _RUNS)

    def _requeue(self) -> Steps[bool]:
        word = self._hf._word()
        answer = yield from self._on_its_shard("requeue", f"0 {word}", 0, 0, 0, 0, self.id)
        if answer[0] != _OK or answer[2][0] != _OK:
            return False
        if self._accepted != "0":  # if it was dead, this life is over
            yield from self._look("job", 0)
        return True

    def _look(self, name: str, whole: int, *more: Any) -> Steps[list[Any]]:
        """Asks for the job. A life that has ended as dead is not asked for again: a retry begins another one,
        which is the answer if there is one already."""
        accepted = self._accepted
        answer = yield from self._on_its_shard(name, self.id, whole, accepted, 0, *more)
        if accepted == "0":
            return answer
        there = answer[0] == _OK
        if there and _text(answer[2]) == "dead":
            self._accepted = "0"
        if there or _text(answer[4]) != "dead":
            return answer
        self._accepted = "0"
        now = yield from self._on_its_shard(name, self.id, whole, 0, 0, *more)
        return now if now[0] == _OK else answer

    def _state(self) -> Steps[State]:
        answer = yield from self._look("job", 0)
        if answer[0] == _OK:
            return _STATES.get(_text(answer[2]), "unknown")
        return _WORDS.get(_text(answer[4]), "unknown")

    def _end(self, answer: list[Any]) -> tuple[bool, Any]:
        """Whether the job has ended, and its result."""
        if answer[0] != _OK:
            word = _text(answer[4])
            if word in ("cancelled", "deleted", "replaced"):
                raise JobCancelled(self, "it was " + word)
            if word == "expired":
                raise JobExpired(self, "it did not start in time")
            if word == "done":
                raise NotKept(self, "it is done, and was not kept")
            if word == "dead":
                raise JobDead(self, "it died, and was removed since then")
            raise JobUnknown(self, "Redis does not know it: it is done and is kept no longer, or it never was")
        where = _text(answer[2])
        if where == "done":
            head, _, body = answer[4].partition(b"\n")
            kind = json.loads(head).get("result")
            return True, json.loads(body) if kind == "json" else bytes(body) if kind == "bytes" else None
        if where == "dead":
            head = json.loads(answer[4].partition(b"\n")[0] or b"{}")
            raise JobDead(self, str(head.get("error") or head.get("reason") or "it is dead"))
        return False, None

    def _result(self, timeout: float | None) -> Steps[Any]:
        client = "py" + os.urandom(9).hex()
        until = None if timeout is None else time.monotonic() + timeout
        waiting = False
        while True:
            answer = yield from self._look("await", 1, client, 1)
            ended, value = self._end(answer)
            if ended:
                return value
            waiting = True
            if len(answer) > 12 and answer[12]:
                self._accepted = str(answer[12])
            left = _LOOK_S if until is None else until - time.monotonic()
            if left <= 0:
                break
            key = self._hf._prefix(self._tag or self.queue) + "told:" + client
            try:
                yield Command(key, ("BLPOP", key, f"{max(0.01, min(left, _LOOK_S)):.3f}"))
            except OSError:
                raise
            except Exception as error:
                if not self._hf._is_later(error):
                    raise
                yield Sleep(0.1)
        if waiting:
            yield from self._on_its_shard("await", self.id, 0, self._accepted, 0, client, 0)
        raise TimeoutError(f"{self.id}: it has not ended within {timeout:g} s")
