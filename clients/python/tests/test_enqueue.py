"""Enqueueing: what is in Redis, and what the caller is told."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

import pytest
import redis

from holdfast_queue import Call, Holdfast, Job, JobCancelled, JobDead, JobRef, JobUnknown, NoAnswer, NotKept, Refused

from conftest import Server


def record(r: redis.Redis, id: str, queue: str = "default") -> tuple[dict[str, Any], bytes]:
    raw: Any = r.hget(f"hf:{{{queue}}}:jobs", id)
    line, _, payload = raw.partition(b"\n")
    return json.loads(line), payload


def test_a_job_is_one_line_and_its_arguments(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job("email.send")
    def send_email(to: str, subject: str, job: Job) -> None: ...

    ref = send_email.enqueue(to="ada@example.com", subject="hé")
    assert r.hget("hf:{default}:jobs", ref.id) == '{"type":"email.send"}\n{"to":"ada@example.com","subject":"hé"}'.encode()
    assert (len(ref.id), ref.queue, ref.outcome) == (14, "default", "new")
    assert r.smembers("hf:{/}:queues") == {b"default"}


def test_ids_rise_and_the_command_can_read_their_time(hf: Holdfast) -> None:
    ids = hf._ids.several(100) + [hf._ids.next() for _ in range(100)] + hf._ids.several(3)
    assert ids == sorted(set(ids))
    alphabet = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    ms = 0
    for c in ids[0][:7]:
        ms = ms * 64 + alphabet.index(c)
    assert abs(ms - time.time() * 1000) < 2000
    assert alphabet.index(ids[0][7]) < 32  # the highest bit is that of a bulk file's ids


def test_bare_decorator_and_names(hf: Holdfast) -> None:
    @hf.job
    def resize(image: int) -> None: ...

    assert resize.type == "resize"
    with pytest.raises(ValueError, match="expected one function for the type 'resize'"):
        hf.job("resize")(lambda: None)
    with pytest.raises(ValueError, match="as type"):
        hf.job("no good")
    with pytest.raises(TypeError, match="parameters with names"):
        @hf.job
        def wrong(*args: int) -> None: ...


def test_a_function_is_still_a_function(hf: Holdfast) -> None:
    @hf.job
    def add(a: int, b: int = 2, *, job: Job | None = None) -> int:
        return a + b
    assert add(1) == 3 and add(1, b=5, job=Job.fake()) == 6


def test_arguments_must_be_those_of_the_function(hf: Holdfast) -> None:
    @hf.job
    def send(to: str, subject: str = "", job: Job = Job.fake()) -> None: ...

    for args, kwargs, text in [((), {}, "missing the argument 'to'"), (("a",), {"too": 1}, "unexpected argument 'too'"),
                               (("a", "b", "c"), {}, "at most 2 positional"), (("a",), {"to": "b"}, "two values"),
                               (("a",), {"job": 1}, "unexpected argument 'job'")]:
        with pytest.raises(TypeError, match=text):
            send.enqueue(*args, **kwargs)  # type: ignore[arg-type]


def test_values_that_json_does_not_know(hf: Holdfast, r: redis.Redis) -> None:
    class Colour(Enum):
        RED = "red"

    @dataclass
    class Point:
        x: int

    @hf.job
    def any_of(value: Any) -> None: ...

    for value, text in [(Colour.RED, '"red"'), (Point(1), '{"x":1}'), (b"\xff", '"/w=="'), ({1}, "[1]"),
                        (datetime(2030, 1, 31, tzinfo=timezone.utc), '"2030-01-31T00:00:00+00:00"'),
                        (timedelta(seconds=90), "90.0")]:
        assert record(r, any_of.enqueue(value).id)[1].decode() == '{"value":' + text + "}"
    itself: list[Any] = []
    itself.append(itself)
    for value in [object(), float("nan"), "\udce9", itself]:
        with pytest.raises((TypeError, ValueError)):
            any_of.enqueue(value)


def test_options_are_fields_of_the_record(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job(queue="mail", priority="high", timeout="30s", keep="1h")
    def send(to: str) -> None: ...

    ref = send.enqueue("a")
    assert record(r, ref.id, "mail")[0] == {"type": "send", "priority": "high"}  # the rest is the worker's to know
    ref = send.using(queue="other", timeout="1m30s", max_attempts=3, keep=timedelta(minutes=1), priority="normal",
                     headers={"tenant": "7", "quote": '"\\\n'}).enqueue("a")
    assert record(r, ref.id, "other")[0] == {
        "type": "send", "timeout": 90000, "max_attempts": 3, "keep": 60000,
        "headers": {"tenant": "7", "quote": '"\\\n'}}


def test_when_a_job_is_due(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job
    def send(to: str) -> None: ...

    later = send.using(delay="10m").enqueue("a")
    at = send.using(at=datetime(2030, 1, 31, 8, tzinfo=timezone.utc)).enqueue("a")
    text = send.using(at="2030-01-31T08:00:00Z").enqueue("a")
    assert abs(float(r.zscore("hf:{default}:schedule", later.id) or 0) - time.time() * 1000 - 600000) < 5000
    assert r.zscore("hf:{default}:schedule", at.id) == r.zscore("hf:{default}:schedule", text.id) == 1896076800000


@pytest.mark.parametrize("options, text", [
    ({"timeout": 30}, "bare number"), ({"delay": 1.5}, "bare number"), ({"keep": "10"}, "with its unit"),
    ({"timeout": "30m1h"}, "largest unit first"), ({"timeout": "31d"}, "from 1 ms"), ({"delay": "-1s"}, "unit"),
    ({"at": "2030-01-31T08:00:00"}, "with its zone"), ({"at": 17}, "a datetime"), ({"at": "soon"}, "such as"),
    ({"delay": "1s", "at": "2030-01-31T08:00:00Z"}, "found both"), ({"retries": 3}, "one of the options"),
    ({"priority": "urgent"}, "high or normal or low"), ({"unique_for": "1s"}, "needs unique"),
    ({"unique": ""}, "1 to 256"), ({"unique": "k" * 257}, "1 to 256"), ({"max_attempts": 0}, "from 1"),
    ({"max_attempts": True}, "from 1"), ({"expired": "dead"}, "start_within"), ({"id": "a b"}, "as id"),
    ({"queue": "{x}"}, "as queue"), ({"headers": {"a": 1}}, "texts"), ({"headers": {"a": "x" * 4096}}, "4096"),
    ({"headers": [1]}, "a dict"), ({"unique": "k", "debounce": "1s"}, "max_wait"),
    ({"unique": "k", "throttle": "1s", "on_conflict": "replace"}, "with throttle"), ({"awaited": 1}, "True"),
    ({"unique": "k", "debounce": "1s", "max_wait": "1m", "delay": "1s"}, "with debounce"),
])
def test_a_wrong_option_is_refused_before_anything_is_sent(options: dict[str, Any], text: str) -> None:
    hf = Holdfast("unix:///nowhere")

    @hf.job
    def send() -> None: ...

    with pytest.raises((TypeError, ValueError), match=text):
        send.using(**options).enqueue()


def test_what_became_of_it(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job
    def send(to: str) -> None: ...

    first = send.using(unique="ada").enqueue("a")
    skipped = send.using(unique="ada").enqueue("b")
    parked = send.using(unique="ada", on_conflict="next").enqueue("c")
    replaced = send.using(unique="ada", on_conflict="next").enqueue("d")
    assert [ref.outcome for ref in (first, skipped, parked, replaced)] == ["new", "skipped", "parked", "replaced"]
    assert skipped.id == first.id and replaced.id == parked.id != first.id
    chosen = send.using(id="x").enqueue("a")
    again = send.using(id="x").enqueue("b")
    assert (chosen.outcome, again.outcome) == ("new", "exists")
    assert record(r, "x")[1] == b'{"to":"a"}'
    assert abs(record(r, "x")[0]["created"] - time.time() * 1000) < 5000


def test_many_are_accepted_all_or_none(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job
    def add(a: int) -> None: ...

    refs = hf.enqueue_many(add.call(k) for k in range(1000))
    assert len({ref.id for ref in refs}) == 1000 and [ref.id for ref in refs] == sorted(ref.id for ref in refs)
    assert r.zcard("hf:{default}:schedule") == 1000
    assert hf.enqueue_many([]) == []
    with pytest.raises(TypeError):
        hf.enqueue_many([add.call(1), add.call(object())])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="of one queue"):
        hf.enqueue_many([add.call(1), add.using(queue="other").call(2)])
    with pytest.raises(ValueError, match="at most 10000"):
        hf.enqueue_many([add.call(1)] * 10001)
    assert r.zcard("hf:{default}:schedule") == 1000
    mixed = hf.enqueue_many([add.using(id="a").call(1), add.call(2), add.using(id="a").call(3),
                             add.using(priority="high").call(4)])
    assert [ref.outcome for ref in mixed] == ["new", "new", "exists", "new"]


def test_hooks_change_headers(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job
    def send(to: str) -> None: ...

    @hf.on_enqueue
    def tenant(call: Call) -> None:
        call.headers["tenant"] = "7"
        assert call.type == "send" and call.args == {"to": "a"} and call.queue == "default"

    ref = send.using(headers={"locale": "de"}).enqueue("a")
    assert record(r, ref.id)[0]["headers"] == {"locale": "de", "tenant": "7"}


def test_a_type_that_is_not_known_here(hf: Holdfast, r: redis.Redis) -> None:
    ref = hf.send("report.make", {"year": 2026}, queue="slow", delay="1s")
    assert record(r, ref.id, "slow") == ({"type": "report.make"}, b'{"year":2026}')
    assert record(r, hf.send("raw", b"\x00\xff").id)[1] == b"\x00\xff"
    assert record(r, hf.send("empty").id)[1] == b""


def test_cancel_requeue_and_state(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job(keep="1h")
    def send(to: str) -> None: ...

    ref = send.using(delay="1h").enqueue("a")
    assert ref.state() == "waiting"
    assert ref.requeue() and float(r.zscore("hf:{default}:schedule", ref.id) or 0) <= time.time() * 1000 + 100
    assert ref.cancel() and ref.state() == "cancelled" and not ref.cancel() and not ref.requeue()
    with pytest.raises(JobCancelled):
        ref.result(timeout=60)
    with pytest.raises(JobUnknown):
        hf.ref("never").result(timeout=60)


def test_a_result_needs_keep_and_has_a_time(hf: Holdfast) -> None:
    @hf.job
    def send(to: str) -> None: ...

    with pytest.raises(NotKept):
        send.enqueue("a").result(timeout=60)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        send.using(keep="1h").enqueue("a").result(timeout=0.3)
    assert 0.25 < time.monotonic() - started < 30


def test_a_result_that_is_there(hf: Holdfast, r: redis.Redis) -> None:
    """As `keep` writes it."""
    now = int(time.time() * 1000)
    for id, kind, result, value in [("j", "json", b'{"rows":20}', {"rows": 20}), ("b", "bytes", b"\x00\n", b"\x00\n"),
                                    ("n", None, b"", None)]:
        line = {"type": "t", "attempts": 0, "ran": 1, "worker": "w", **({"result": kind} if kind else {})}
        r.zadd("hf:{default}:done", {id: now})
        r.zadd("hf:{default}:kept", {id: now + 60000})
        r.hset("hf:{default}:results", id, json.dumps(line).encode() + b"\n" + result)
    r.hset("hf:{default}:meta", "uses", "k")
    assert hf.ref("j").result(60) == {"rows": 20}
    assert hf.ref("b").result(60) == b"\x00\n"
    assert hf.ref("n").result(60) is None


def test_asyncio(server: Server, r: redis.Redis) -> None:
    async def main() -> None:
        hf = Holdfast(server.url, deadline="60s")

        @hf.job(keep="1h")
        async def add(a: int) -> int:
            return a

        refs = await asyncio.gather(*(add.aenqueue(k) for k in range(100)))
        refs += await hf.aenqueue_many([add.call(k) for k in range(100)])
        assert len({ref.id for ref in refs}) == 200 and r.zcard("hf:{default}:schedule") == 200
        assert await refs[0].acancel() and await refs[0].astate() == "cancelled"
        with pytest.raises(TimeoutError):
            await refs[1].aresult(timeout=0.2)
        await hf.aclose()
    asyncio.run(main())


def test_threads_share_it(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job
    def add(a: int) -> None: ...

    threads = [threading.Thread(target=lambda: [add.enqueue(k) for k in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert r.zcard("hf:{default}:schedule") == 400


def test_a_child_of_a_fork_has_another_name(hf: Holdfast, r: redis.Redis) -> None:
    """With the parent's numbers Redis would take the child's jobs for repeated ones, and lose them."""
    @hf.job
    def add(a: int) -> None: ...

    add.enqueue(0)
    pids = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                for k in range(20):
                    add.enqueue(k)
            finally:
                os._exit(0)
        pids.append(pid)
    for k in range(20):
        add.enqueue(k)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    assert r.zcard("hf:{default}:schedule") == 81


def test_a_request_that_comes_twice_is_executed_once(hf: Holdfast, r: redis.Redis, monkeypatch: Any) -> None:
    """The answer is lost, the job has run since then, and the request is sent again."""
    @hf.job
    def add(a: int) -> None: ...

    add.enqueue(0)
    link, lost = hf._link, []
    execute = link.execute

    def lose(command: Any) -> Any:
        answer = execute(command)
        if not lost:
            lost.append(1)
            r.delete("hf:{default}:jobs", "hf:{default}:schedule")  # it is done
            raise redis.ConnectionError("lost")
        return answer
    monkeypatch.setattr(link, "execute", lose)
    assert add.enqueue(1).outcome == "new"
    assert lost and r.zcard("hf:{default}:schedule") == 0


def test_a_request_is_not_executed_again_after_a_step_forward(hf: Holdfast, r: redis.Redis, monkeypatch: Any) -> None:
    """The step ends what Redis remembers of the producer, so nobody can tell."""
    @hf.job
    def add(a: int) -> None: ...

    link, lost = hf._link, []
    execute = link.execute

    def lose(command: Any) -> Any:
        answer = execute(command)
        if command.words[0] == "EVALSHA" and command.key == "hf:{/}:":
            answer[1] -= 3600000  # an hour, until the first answer is lost
        elif command.words[0] == "EVALSHA" and not lost:
            lost.append(1)
            r.delete("hf:{default}:jobs", "hf:{default}:schedule", *r.keys("hf:{default}:seen:*"))  # it is done
            raise redis.ConnectionError("lost")
        return answer
    monkeypatch.setattr(link, "execute", lose)
    with pytest.raises(NoAnswer):
        add.enqueue(0)
    assert r.zcard("hf:{default}:schedule") == 0
    assert add.enqueue(1).outcome == "new"


def test_scripts_are_loaded_again(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job
    def add(a: int) -> None: ...

    add.enqueue(0)
    r.script_flush()
    assert add.enqueue(1).outcome == "new"


def test_redis_that_restarts(own_server: Server) -> None:
    hf = Holdfast(own_server.url, deadline="120s")

    @hf.job
    def add(a: int) -> None: ...

    add.enqueue(0)
    own_server.stop()
    timer = threading.Timer(0.5, own_server.start)
    timer.start()
    add.enqueue(1)
    timer.join()
    assert own_server.client.zcard("hf:{default}:schedule") == 2


def test_no_redis_is_told_in_time() -> None:
    hf = Holdfast("redis://localhost:1", deadline="300ms")

    @hf.job
    def add(a: int) -> None: ...

    started = time.monotonic()
    with pytest.raises(NoAnswer, match="no answer from Redis in 0.3 s"):
        add.enqueue(0)
    assert time.monotonic() - started < 30
    with pytest.raises(ConnectionError):
        add.enqueue(0)


def test_what_redis_refuses(hf: Holdfast, r: redis.Redis) -> None:
    @hf.job
    def add(a: int) -> None: ...

    r.set("hf:{default}:jobs", "no hash")
    with pytest.raises(Refused, match="WRONGTYPE"):
        add.enqueue(0)


def test_a_queue_with_shards(hf: Holdfast, r: redis.Redis) -> None:
    tags = [f"wide/{i}-0" for i in range(4)]
    r.hset("hf:{wide}:meta", mapping={"uses": "s", "shards": "4 " + " ".join(tags)})

    @hf.job(queue="wide")
    def add(a: int) -> None: ...

    refs = [add.enqueue(k) for k in range(8)]
    assert [r.zcard(f"hf:{{{tag}}}:schedule") for tag in tags] == [2, 2, 2, 2]
    assert all(ref.state() == "waiting" for ref in refs)
    assert all(hf.ref(ref.id, "wide").state() == "waiting" for ref in refs)
    hf.enqueue_many([add.call(k) for k in range(10)])
    assert sorted(int(r.zcard(f"hf:{{{tag}}}:schedule")) for tag in tags) == [2, 2, 2, 12]
    assert add.using(id="x").enqueue(1).outcome == "new"
    assert hf.ref("x", "wide").cancel() and hf.ref(refs[3].id, "wide").cancel()
    with pytest.raises(ValueError, match="one shard"):
        hf.enqueue_many([add.using(id=f"id-{k}").call(k) for k in range(20)])


def die(r: redis.Redis, ref: JobRef) -> None:
    """As a worker does it, of a job that is awaited."""
    p = f"hf:{{{ref.queue}}}:"
    waits: Any = r.hget(p + "waits", ref.id)
    r.hdel(p + "waits", ref.id)
    r.zrem(p + "schedule", ref.id)
    r.set(f"{p}ended:@{waits.split()[0].decode()}:{ref.id}", "1700000000000 dead *")
    r.hset(p + "jobs", ref.id, '{"type":"t","error":"no such user"}\n')
    r.zadd(p + "dead", {ref.id: 1700000000000})


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_a_retry_begins_a_new_life(hf: Holdfast, r: redis.Redis, outside: bool, told: bool) -> None:
    ref = hf.send("t", keep="1h", awaited=True)
    die(r, ref)
    if told:
        with pytest.raises(JobDead, match="no such user"):
            ref.result(timeout=60)
    assert (hf.ref(ref.id) if outside else ref).requeue()
    with pytest.raises(TimeoutError):
        ref.result(timeout=0.2)
    assert ref.state() == "waiting"


def test_a_dead_job_that_is_gone(hf: Holdfast, r: redis.Redis) -> None:
    ref = hf.send("t", keep="1h", awaited=True)
    die(r, ref)
    r.zrem("hf:{default}:dead", ref.id)
    r.hdel("hf:{default}:jobs", ref.id)
    with pytest.raises(JobDead, match="removed since then"):
        ref.result(timeout=60)
    early = hf.send("t", awaited=True, delay="1h")
    assert early.requeue() and early._accepted != "0"  # it was not dead: the same life


def test_the_keep_of_another_job_is_not_known(hf: Holdfast) -> None:
    hf.send("t", keep="1h", id="x", unique="k")
    for ref in (hf.send("t", id="x"), hf.send("t", unique="k")):
        with pytest.raises(TimeoutError):
            ref.result(timeout=0.2)


@pytest.mark.parametrize("url, text", [
    ("http://x", "found http"), ("localhost:6379", "found localhost"), ("redis+sentinel://a,b", "/master"),
])
def test_addresses(url: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Holdfast(url)


def test_addresses_that_are_good() -> None:
    from holdfast_queue._link import parse
    at = parse("rediss+sentinel://app:s%40x@10.0.0.1,10.0.0.2:26380,[::1]:7/mymaster/3")
    assert at.nodes == [("10.0.0.1", 26379), ("10.0.0.2", 26380), ("::1", 7)] and at.master == "mymaster"
    assert at.options == {"username": "app", "password": "s@x", "ssl": True, "db": 3}
    assert parse("redis+cluster://h1,h2:7000").nodes == [("h1", 6379), ("h2", 7000)]
    options = "?socket_timeout=3&health_check_interval=2&socket_keepalive=no&ssl_cert_reqs=none&client_name=a%20b"
    for url in ("redis+cluster://h1,h2", "redis+sentinel://h1/m", "rediss+sentinel://h1/m"):
        assert parse(url + options).options == {
            "socket_timeout": 3.0, "health_check_interval": 2, "socket_keepalive": False, "ssl_cert_reqs": "none",
            "client_name": "a b", **({"ssl": True} if url.startswith("rediss") else {}),
        }
