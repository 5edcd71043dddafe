"""The test modes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast_queue import Cancel, Dead, Holdfast, HoldfastError, Job, JobDead, NotKept, Release, Retry, current_job
from holdfast_queue.testing import Fake

hf = Holdfast("unix:///nowhere")
seen: list[Any] = []


@hf.job(keep="1h")
def first(name: str, job: Job) -> str:
    seen.append((name, job.type, job.headers.get("tenant")))
    second.enqueue(name + "!")
    return name.upper()


@hf.job
async def second(name: str) -> None:
    assert current_job.type == "second"
    seen.append(name)


@hf.job(keep="1h")
def ends(how: str) -> None:
    raise {"retry": Retry("later", delay="1s"), "dead": Dead("no"), "cancel": Cancel(), "bug": KeyError("x")}[how]


@pytest.fixture(autouse=True)
def forget() -> None:
    seen.clear()


def test_fake_keeps_jobs() -> None:
    with hf.testing("fake") as q:
        ref = first.using(headers={"tenant": "7"}, delay="1h").enqueue("ada")
        assert q.jobs[0].args == {"name": "ada"} and q.jobs[0].type == "first"
        assert q.jobs[0].due == -3600000 and q.jobs[0].headers == {"tenant": "7"}
        assert ref.state() == "waiting" and seen == []
        assert q.run_all() == 2 and seen == [("ada", "first", "7"), "ada!"]
        assert ref.result() == "ADA" and len(q) == 0 and [job.type for job in q.done] == ["first", "second"]


def test_inline_runs_at_once() -> None:
    with hf.testing("inline") as q:
        assert first.enqueue("ada").result() == "ADA"
        assert [job.type for job in q.done] == ["first", "second"]

    async def main() -> None:
        with hf.testing("inline"):
            assert (await first.aenqueue("bob")).state() == "done"
            second.enqueue("eve")
    asyncio.run(main())
    assert seen[-1] == "eve"


def test_a_job_that_is_not_kept_has_no_result() -> None:
    with hf.testing("inline"), pytest.raises(NotKept):
        second.enqueue("ada").result()
    with hf.testing("inline"):  # by its type alone it is not known that it is not kept
        assert hf.send("first", {"name": "ada"}).result() == "ADA"


def test_ends() -> None:
    with hf.testing("fake") as q:
        refs = {how: ends.enqueue(how) for how in ("retry", "dead", "cancel")}
        q.run_all()
        assert {how: ref.state() for how, ref in refs.items()} == {
            "retry": "waiting", "dead": "dead", "cancel": "cancelled"}
        with pytest.raises(JobDead, match="no"):
            refs["dead"].result()
        ends.enqueue("bug")
        with pytest.raises(KeyError):
            q.run_all()


def test_a_job_that_asks_for_another_run_waits() -> None:
    own = Holdfast("unix:///nowhere")
    runs: list[tuple[int, int]] = []

    @own.job(max_attempts=2, keep="1h")
    def busy(job: Job) -> None:
        runs.append((job.attempt, job.max_attempts))
        raise Retry("busy", delay="30s")

    @own.job
    def not_yet(job: Job) -> None:
        runs.append((job.attempt, job.max_attempts))
        if len(runs) < 4:
            raise Release(delay="1m")

    with own.testing("fake") as q:
        ref = busy.enqueue()
        assert q.run_all() == 1 and q.jobs == [ref] and q.done == [] and ref.state() == "waiting"
        assert q.jobs[0].due == -30000 and q.jobs[0].attempts == 1
        assert q.run_all() == 1 and q.jobs == [] and q.done == [ref] and ref.state() == "dead"
        with pytest.raises(JobDead) as caught:
            ref.result()
        assert caught.value.text == "busy"
        other = not_yet.using(max_attempts=7).enqueue()
        assert q.run_all() == 1 and q.jobs == [other] and q.jobs[0].attempts == 0 and q.jobs[0].due == -60000
        assert q.run_all() == 1 and other.state() == "done"
    assert runs == [(1, 2), (2, 2), (1, 7), (1, 7)]


def test_arguments_go_through_json() -> None:
    with hf.testing("inline"), pytest.raises(ValueError, match="expected a text as 'name'"):
        first.enqueue(1)  # type: ignore[arg-type]


def test_unique_keys_and_ids() -> None:
    with hf.testing("fake") as q:
        a = second.using(unique="k").enqueue("a")
        b = second.using(unique="k").enqueue("b")
        c = second.using(id="x").enqueue("c")
        d = second.using(id="x").enqueue("d")
        assert (b.outcome, b.id, d.outcome, len(q)) == ("skipped", a.id, "exists", 2)
        assert c.cancel() and len(q) == 1


def test_the_fixture(holdfast_fake: Fake) -> None:
    other = Holdfast("unix:///elsewhere")
    other.send("t", {"a": 1})
    first.enqueue("ada")
    assert [job.type for job in holdfast_fake] == ["t", "first"] and holdfast_fake.of("t")[0].payload == b'{"a":1}'
    with pytest.raises(HoldfastError, match="test mode"):
        hf.ref("x").cancel()


def test_fake_job() -> None:
    job = Job.fake(attempt=2, headers={"a": "b"})
    job.progress(40, "row 17")
    job.log("row 17 is bad")
    assert job.checkpoint() is None and job.checkpoint(b"17") == b"17" and job.checkpoint() == b"17"
    assert (job.told_progress, job.told_log, job.attempt) == ([(40, "row 17")], ["row 17 is bad"], 2)
    with pytest.raises(Dead, match="at most 4096 bytes"):
        job.checkpoint(b"x" * 4097)
    with pytest.raises(Dead, match="at most 256 bytes"):
        job.progress(1, "x" * 257)
    with pytest.raises(ValueError):
        job.progress(101)
    with hf.testing("fake"):
        assert first("bob", job=Job.fake()) == "BOB"
    with pytest.raises(LookupError):
        current_job.id
