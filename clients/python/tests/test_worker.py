"""A handler process, spoken with as the worker does: the sync mode and the event loop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parent import SRC, Parent

HERE = Path(__file__).parent


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return tmp_path / "events"


def noted(events: Path, text: str, n: int = 1) -> None:
    """Waits until the program has noted it so often."""
    until = time.monotonic() + 120
    while not events.exists() or events.read_text().count(text + "\n") < n:
        assert time.monotonic() < until, text
        time.sleep(0.01)


@pytest.fixture
def sync(events: Path) -> Iterator[Parent]:
    with Parent(HERE / "app_sync.py", "word", env={"EVENTS": str(events)}) as parent:
        assert parent.frame()[0]["t"] == "ready"
        yield parent


@pytest.fixture
def loop(events: Path) -> Iterator[Parent]:
    with Parent(HERE / "app_async.py", env={"EVENTS": str(events)}) as parent:
        assert parent.frame()[0] == {
            "t": "ready", "v": 1, "client": "python 0.2.0", "parallel": 8, "schedules": [], "types": [
                {"type": name, "queue": "default"}
                for name in ("add", "wait", "stubborn", "in_thread", "logs", "fails", "large")]}
        yield parent


def test_ready() -> None:
    with Parent(HERE / "app_sync.py") as parent:
        head, _ = parent.frame()
    assert (head["v"], head["parallel"], head["client"]) == (1, 1, "python 0.2.0")
    types = {each["type"]: each for each in head["types"]}
    assert types["email.send"] == {"type": "email.send", "queue": "mail", "timeout": 30000, "max_attempts": 5,
                                   "keep": 3600000, "on_dead": "email.failed"}
    assert types["give.often"]["queue"] == "slow"
    assert head["schedules"] == [
        {"id": "give.often", "cron": "0 3 * * 1-5", "tz": "Europe/Berlin", "jitter": 10000, "queue": "slow",
         "job": {"type": "give.often", "priority": "low", "payload": {"what": "int"}}},
        {"id": "tick", "every": 300000, "missed": "skip", "queue": "slow",
         "job": {"type": "give.often", "priority": "low", "payload": {"what": "none"}}}]


def test_a_job_and_its_result(sync: Parent, events: Path) -> None:
    run = sync.job("email.send", {"to": "ada"}, headers={"tenant": "7"}, attempt=3)
    head, body = sync.frame()
    assert head == {"t": "done", "run": run, "json": True, "n": len(body)}
    assert json.loads(body) == {"to": "ada", "subject": "hi", "id": "job-1", "attempt": 3, "tenant": "7"}
    sync.send({"t": "stop", "kill_in": 1000})
    assert sync.ends() == 0
    assert events.read_text().split("\n") == ["start", "before email.send", "after email.send", "stop",
                                              "returned word", ""]


def test_results(sync: Parent) -> None:
    for what, head, body in [("none", {}, b""), ("bytes", {"json": False, "n": 3}, b"\x00\n\xff"),
                             ("int", {"json": True, "n": 1}, b"7"), ("text", {"json": True, "n": 4}, '"é"'.encode())]:
        run = sync.job("give", {"what": what})
        assert sync.frame() == ({"t": "done", "run": run, **head}, body)
    for what, text in [("large", "result: expected at most 65536 bytes, found 65539"),
                       ("odd", "result: expected a value that JSON can express, found object"), ("nan", "result: ")]:
        run = sync.job("give", {"what": what})
        head, _ = sync.frame()
        assert (head["t"], head["run"]) == ("dead", run) and head["error"].startswith(text)
    sync.job("give", {"what": "env"})
    assert sync.frame()[1] == b"[]"


def test_verdicts_of_exceptions(sync: Parent) -> None:
    for how, expected in [
            ("retry", {"t": "retry", "in": 30000, "error": "later"}), ("dead", {"t": "dead", "error": "no such user"}),
            ("cancel", {"t": "cancel", "error": "not wanted"}), ("release", {"t": "release", "in": 5000}),
            ("os", {"t": "retry", "in": 20000, "error": "OSError: busy"}),
            ("refused", {"t": "dead", "error": "ConnectionRefusedError: gone"}),
            ("key", {"t": "dead", "error": "KeyError: 'x'"}), ("exit", {"t": "dead", "error": "SystemExit: 3"}),
            ("keep", {"t": "retry", "error": "Retry"})]:
        run = sync.job("fail", {"how": how}, attempt=2)
        head, body = sync.frame()
        head.pop("n", None)
        assert head == {**expected, "run": run}
    sync.job("fail", {"how": "surrogate"})
    assert sync.frame()[0]["error"].startswith("OSError: caf")
    sync.job("fail", {"how": "long"})
    assert 4000 < len(sync.frame()[0]["error"].encode()) <= 4096


def test_a_traceback_ends_in_the_handler(sync: Parent) -> None:
    sync.job("any_error")
    head, body = sync.frame()
    assert (head["t"], head["error"]) == ("retry", "RuntimeError: broken x")
    assert body.startswith(b"Traceback (most recent call last):\n  File ") and b"app_sync.py" in body
    assert b"_worker.py" not in body.split(b"app_sync.py")[0]
    sync.job("any_error", {"n": 40000})
    head, body = sync.frame()
    assert len(body) <= 16384 and body.endswith(b"xxx")
    sync.job("deep")
    assert "RecursionError" in sync.frame()[0]["error"]


def test_arguments_are_checked_and_converted(sync: Parent) -> None:
    good = {"a": 1, "b": 2, "c": {"x": 3}, "d": [1, 2], "e": "y", "f": 4}
    sync.job("types", good)
    assert json.loads(sync.frame()[1]) == [1, 2.0, 3, [1, 2], "y", 4]
    sync.job("types", {**good, "newer": True})
    assert sync.frame()[0]["t"] == "done"
    for change, text in [({"a": "1"}, "payload: expected a whole number as 'a', found \"1\""),
                         ({"c": {}}, "payload: missing 'c.x'"), ({"d": [1, "x"]}, "as 'd[1]', found \"x\""),
                         ({"e": "z"}, 'expected "x" or "y" as \'e\''), ({"f": "no"}, "expected int or null as 'f'"),
                         ({"a": True}, "a whole number as 'a', found true")]:
        sync.job("types", {**good, **change})
        head, _ = sync.frame()
        assert head["t"] == "dead" and text in head["error"]
    for payload, text in [(b"", "payload: missing 'a', 'b', 'c', 'd'"), (b"[1]", "an object with named members"),
                          (b"\xff", "expected JSON")]:
        sync.job("types", payload)
        head, _ = sync.frame()
        assert head["t"] == "dead" and text in head["error"]


def test_progress_logs_checkpoints(sync: Parent) -> None:
    run = sync.job("tells", c=2, checkpoint_bytes=b"17")
    assert sync.frame() == ({"t": "progress", "run": run, "percent": 40, "note": "row 17"}, b"")
    assert sync.frame() == ({"t": "log", "run": run, "n": 14}, b"row 17 is bad\n")
    assert sync.frame() == ({"t": "checkpoint", "run": run, "n": 3}, b"17!")
    assert sync.frame()[0] == {"t": "done", "run": run}
    assert sync.process.stdout is not None
    printed = os.read(sync.process.stdout.fileno(), 4096)  # before the verdict, not at the end of the process
    assert sorted(printed.split(b"\n")) == sorted(b"started\nby a system call\non standard output\n".split(b"\n"))
    sync.job("threads")
    assert sync.frame()[1] == b"from a thread\n"
    sync.frame()
    sync.job("logs")
    assert sync.frame()[1] == b'"job-3 logs"'


@pytest.mark.parametrize("how", ["sleep", "recv", "loop", "re", "tells"])
def test_a_cancel_ends_what_hangs(sync: Parent, events: Path, how: str) -> None:
    run = sync.job("hang", {"how": how})
    noted(events, "hangs " + how)
    sync.cancel(run)
    while (frame := sync.frame())[0]["t"] == "progress":  # within the time for a frame, and not in 600 s
        pass
    assert (frame[0]["t"], frame[0]["error"]) == ("retry", "timed out") and b"in hang" in frame[1]
    assert "finally " + how in events.read_text()
    sync.job("give", {"what": "int"})
    assert sync.frame()[0]["t"] == "done"


@pytest.mark.parametrize("why, word", [("cancelled", "cancel"), ("stop", "release"), ("lost", "release")])
def test_the_verdict_after_a_cancel(sync: Parent, events: Path, why: str, word: str) -> None:
    run = sync.job("hang", {"how": "sleep"})
    noted(events, "hangs sleep")
    sync.cancel(run, why)
    assert sync.frame()[0]["t"] == word


def test_a_handler_may_see_a_cancel_and_finish(sync: Parent, events: Path) -> None:
    run = sync.job("hang", {"how": "swallow"})
    noted(events, "hangs swallow")
    sync.cancel(run)
    assert sync.frame()[1] == b"stopping True timeout\n"
    assert sync.frame()[0] == {"t": "done", "run": run}


def test_term_alone_means_nothing(sync: Parent) -> None:
    for _ in range(3):
        sync.process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    run = sync.job("hang", {"how": "short"})
    for _ in range(5):
        time.sleep(0.05)
        sync.process.send_signal(signal.SIGTERM)
    assert sync.frame()[0] == {"t": "done", "run": run}
    sync.cancel(run)  # it crosses the verdict
    run = sync.job("hang", {"how": "short"})
    assert sync.frame()[0] == {"t": "done", "run": run}


def test_frames_behind_a_cancel_are_kept(sync: Parent, events: Path) -> None:
    run = sync.job("hang", {"how": "sleep"})
    noted(events, "hangs sleep")
    sync.socket.sendall(b"".join(json.dumps(head).encode() + b"\n" for head in (
        {"t": "ping"}, {"t": "cancel", "run": run, "why": "timeout", "kill_in": 1}, {"t": "stop", "kill_in": 9})))
    sync.process.send_signal(signal.SIGTERM)
    assert sync.frame()[0]["t"] == "retry"
    assert sync.frame()[0] == {"t": "pong"}
    assert sync.ends() == 0


def test_a_cancel_before_the_handler_is_called(sync: Parent) -> None:
    """The frames and the signal come while the process reads the job."""
    for _ in range(20):
        payload = json.dumps({"how": "sleep"}).encode()
        sync.run += 1
        sync.process.send_signal(signal.SIGTERM)
        sync.socket.sendall(json.dumps({"t": "job", "run": sync.run, "n": len(payload), "id": "x", "type": "hang"})
                            .encode() + b"\n" + payload
                            + json.dumps({"t": "cancel", "run": sync.run, "why": "timeout"}).encode() + b"\n")
        sync.process.send_signal(signal.SIGTERM)
        sync.process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
        sync.process.send_signal(signal.SIGTERM)
        assert sync.frame()[0]["t"] == "retry"


def test_stop_while_busy(sync: Parent) -> None:
    run = sync.job("hang", {"how": "short"})
    sync.send({"t": "stop", "kill_in": 9000})
    assert sync.frame()[0] == {"t": "done", "run": run}
    assert sync.ends() == 0


def test_the_end_of_the_worker(sync: Parent, events: Path) -> None:
    sync.socket.close()
    assert sync.ends() == 0 and "stop\n" in events.read_text()


def test_bytes_in_pieces(sync: Parent) -> None:
    payload = b'{"what":"int"}'
    line = json.dumps({"t": "job", "run": 5.0, "n": len(payload), "c": 0, "id": "x", "type": "give", "queue": "q",
                       "odd": {"n": [1e300, None]}}).encode() + b"\n" + payload
    for byte in line:
        sync.socket.sendall(bytes([byte]))
    assert sync.frame()[1] == b"7"
    sync.socket.sendall(b'{"t":"unheard","n":5,"c":2}\n{"t":"a' + b'{"t":"ping"}\r\n')
    assert sync.frame()[0] == {"t": "pong"}
    many = b"".join(b'{"t":"job","run":%d,"n":14,"id":"x","type":"give"}\n' % run + payload for run in range(10, 510))
    sync.socket.sendall(many)
    assert [sync.frame()[0]["run"] for _ in range(500)] == list(range(10, 510))


def test_a_payload_of_63_mib(sync: Parent) -> None:
    sync.job("email.send", {"to": "x" * (63 << 20), "subject": ""})
    assert "result: expected at most" in sync.frame(600)[0]["error"]


def test_a_child_of_a_handler_is_not_heard(sync: Parent) -> None:
    run = sync.job("forks")
    assert sync.frame() == ({"t": "done", "run": run, "json": True, "n": 1}, b"0")


def test_a_type_that_is_not_known(sync: Parent) -> None:
    run = sync.job("other")
    head, _ = sync.frame()
    assert (head["t"], head["run"], head["in"]) == ("release", run, 10000)


def test_where_it_hangs_is_told_on_usr2(sync: Parent, events: Path) -> None:
    sync.job("hang", {"how": "C"})
    noted(events, "hangs C")
    sync.process.send_signal(signal.SIGUSR2)
    assert sync.process.stderr is not None
    told = b""
    while b"in hang" not in told:
        piece = os.read(sync.process.stderr.fileno(), 4096)
        assert piece, told
        told += piece
    sync.process.kill()


@pytest.mark.parametrize("pipe, fd, text", [
    ("2 3", None, "expected the protocol pipe 1"), ("1", "99", "the number of a socket"), ("1", "x", "a socket"),
    ("1", "2", "a socket")])
def test_a_start_that_cannot_work(pipe: str, fd: str | None, text: str) -> None:
    with Parent(HERE / "app_sync.py", pipe=pipe, fd=fd) as parent:
        assert parent.ends() == 78
        assert parent.process.stderr is not None
        words = parent.process.stderr.read().decode()
        assert text in words and words.count("\n") == 1


# ---- the event loop ----

def test_many_at_a_time(loop: Parent, events: Path) -> None:
    runs = [loop.job("wait", {"seconds": 600}) for _ in range(4)] + [
        loop.job("in_thread", {"seconds": 600}) for _ in range(4)]
    noted(events, "before wait", 4)
    noted(events, "in a thread", 4)
    events.with_name("events.end").touch()
    ends = [loop.frame() for _ in range(12)]
    done = {head["run"]: body for head, body in ends if head["t"] == "done"}
    assert done == {run: f'"job-{run}"'.encode() for run in runs}
    assert {head["run"] for head, _ in ends if head["t"] == "progress"} == set(runs[4:])
    loop.send({"t": "stop", "kill_in": 1000})
    assert loop.ends() == 0
    lines = events.read_text().split("\n")
    assert lines[0] == "open" and lines[-3:] == ["close", "returned", ""] and lines.count("before wait") == 4


def test_cancel_in_the_loop(loop: Parent, events: Path) -> None:
    runs = [loop.job("wait", {"seconds": 600}) for _ in range(3)]
    other = loop.job("wait", {"seconds": 600})
    thread = loop.job("in_thread", {"seconds": 600})
    stubborn = loop.job("stubborn")
    noted(events, "before wait", 4)
    noted(events, "before stubborn")
    noted(events, "in a thread")
    for run, why, word in zip(runs, ("timeout", "cancelled", "stop"), ("retry", "cancel", "release")):
        loop.cancel(run, why, term=False)
        head, _ = loop.frame()
        assert (head["t"], head["run"]) == (word, run)
    loop.cancel(thread, term=False)  # a thread sees job.stopping
    assert loop.frame()[0]["t"] == "progress" and loop.frame()[0] == {"t": "done", "run": thread, "json": True, "n": 7}
    loop.cancel(stubborn, term=True)
    assert loop.frame()[1] == b'"timeout"'
    assert loop.silent()  # the other one goes on
    loop.cancel(other, "cancelled", term=False)
    assert (head := loop.frame()[0])["t"] == "cancel" and head["run"] == other
    # A cancel that comes with its job, before the task has made a step.
    payload = b'{"seconds":600}'
    loop.socket.sendall(b'{"t":"job","run":90,"n":15,"id":"x","type":"wait"}\n' + payload
                        + b'{"t":"cancel","run":90,"why":"timeout"}\n{"t":"cancel","run":91,"why":"timeout"}\n')
    assert loop.frame()[0]["run"] == 90


def test_logs_go_to_their_run(loop: Parent) -> None:
    runs = [loop.job("logs", {"text": text}) for text in ("a", "b")]
    frames = [loop.frame() for _ in range(8)]
    for run, text in zip(runs, "ab"):
        mine = [(head["t"], body) for head, body in frames if head["run"] == run]
        assert mine == [("log", f"{text} of job-{run}\n".encode()), ("progress", b""), ("checkpoint", b"17"),
                        ("done", b"")]


def stderr_at_end(parent: Parent) -> bytes:
    while parent.frame()[0]["t"] != "done":
        pass
    parent.send({"t": "stop", "kill_in": 10000})
    assert parent.ends() == 0
    assert parent.process.stderr is not None
    return parent.process.stderr.read()


def test_logs_reach_standard_error_of_a_program_that_configures_nothing(loop: Parent) -> None:
    loop.job("logs", {"text": "a"})
    assert stderr_at_end(loop) == b"job-1: a of job-1\n"


def test_logs_are_written_once_where_a_program_configures_them(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(f"import logging, sys\nsys.path.insert(0, {str(HERE)!r})\nlogging.basicConfig()\n"
                   "from app_async import hf\nhf.run()\n")
    with Parent(app, env={"EVENTS": str(tmp_path / "events")}) as parent:
        assert parent.frame()[0]["t"] == "ready"
        parent.job("logs", {"text": "a"})
        assert stderr_at_end(parent) == b"WARNING:app:a of job-1\n"


def test_the_loop_reads_while_it_writes(loop: Parent) -> None:
    run = loop.job("large", {"n": 200})  # 3 MiB, which nobody reads yet
    time.sleep(0.3)
    other = loop.job("add", {"a": 1})
    loop.send({"t": "ping"})
    kinds = [loop.frame()[0] for _ in range(203)]
    assert sum(head["t"] == "log" for head in kinds) == 200
    assert {head["run"] for head in kinds if head["t"] == "done"} == {run, other} and {"t": "pong"} in kinds


def test_stop_of_a_busy_loop(loop: Parent) -> None:
    run = loop.job("wait", {"seconds": 0.3})
    loop.send({"t": "stop", "kill_in": 9000})
    assert loop.frame()[0]["run"] == run and loop.ends() == 0


def test_a_busy_loop_ends_with_its_worker(loop: Parent, events: Path) -> None:
    loop.job("wait", {"seconds": 600})
    noted(events, "before wait")
    loop.socket.close()
    assert loop.ends() == 0 and "finally lost" in events.read_text()


def test_verdicts_in_the_loop(loop: Parent) -> None:
    loop.job("fails")
    assert loop.frame()[0] == {"t": "dead", "run": 1, "error": "no"}
    loop.job("add", {"a": "x"})
    assert loop.frame()[0]["t"] == "dead"


# ---- the program as the worker ----

def run_program(tmp_path: Path, *, env: dict[str, str], words: tuple[str, ...] = (),
                text: str = "hf.run()") -> Any:
    fake = tmp_path / "holdfast"
    fake.write_text('#!/bin/sh\nfor word; do echo "$word"; done\necho "REDIS_URL=$REDIS_URL"\n')
    fake.chmod(0o755)
    app = tmp_path / "app.py"
    app.write_text(f"from holdfast_queue import Holdfast\nhf = Holdfast({env.pop('ARGS', '')})\n"
                   f"@hf.job\ndef f(): ...\n{text}\n")
    environment = {k: v for k, v in os.environ.items() if k not in ("HOLDFAST_BIN", "REDIS_URL", "HOLDFAST")}
    return subprocess.run([sys.executable, "-B", str(app), *words], capture_output=True, text=True, timeout=300,
                          env={**environment, "PYTHONPATH": str(SRC), "PATH": f"{tmp_path}:{os.environ['PATH']}",
                               **env})


def test_the_program_becomes_the_worker(tmp_path: Path) -> None:
    done = run_program(tmp_path, env={}, words=("a", "b"))
    assert done.stdout.split("\n") == ["worker", "--", sys.executable, "-B", str(tmp_path / "app.py"), "a", "b",
                                       "REDIS_URL=redis://localhost:6379/0", ""]
    done = run_program(tmp_path, env={"REDIS_URL": "unix:///x", "ARGS": "namespace='n'"},
                       text="hf.run(queues=['a', 'b'], processes=3, config='w.yaml', logs=True)")
    assert done.stdout.split("\n")[:12] == ["worker", "-c", "w.yaml", "--queue", "a", "--queue", "b", "--processes",
                                            "3", "--logs", "--namespace", "n"]
    assert "REDIS_URL=unix:///x" in done.stdout
    done = run_program(tmp_path, env={}, text="@hf.job(queue='mail')\ndef g(): ...\nhf.run()")
    assert done.stdout.split("\n")[:2] == ["worker", "--"]  # it learns the queues from its processes
    assert "REDIS_URL=unix:///y" in run_program(tmp_path, env={"ARGS": "'unix:///y'"}).stdout


def test_mistakes_are_told_before_the_worker_starts(tmp_path: Path) -> None:
    done = run_program(tmp_path, env={}, text="@hf.job\ndef g(x: hf.__class__): ...\nhf.run()")
    assert done.returncode == 1 and "g: parameter 'x': expected an annotation" in done.stderr
    done = run_program(tmp_path, env={}, text="hf.jobs.clear()\nhf.run()")
    assert done.returncode == 78 and "expected functions with @hf.job before hf.run(), found none" in done.stderr
    done = run_program(tmp_path, env={"HOLDFAST_BIN": "/no/such"})
    assert done.returncode == 69 and "cannot execute /no/such" in done.stderr


def test_a_sync_process_imports_only_what_it_needs() -> None:
    """redis-py and asyncio take longer to import than the rest; each handler process would pay for them."""
    code = """if True:
        import sys
        from holdfast_queue import Holdfast
        hf = Holdfast("redis://localhost/0")
        hf.job("t")(lambda: None)
        import holdfast_queue._worker
        print({"asyncio", "redis", "shutil", "ssl"} & set(sys.modules))"""
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout == "set()\n", done.stdout + done.stderr
