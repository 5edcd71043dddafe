"""A program that was started by hand, perhaps under a debugger, joins a worker with --listen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from conftest import Server
from holdfast_queue import Holdfast, JobRef
from parent import SRC

APP = Path(__file__).parent / "app_whole.py"
LINE = 1 + APP.read_text().split("\n").index("    return a + b")


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def worker(server: Server, r: redis.Redis, holdfast: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([holdfast, "worker", "--dev", "--listen", f"{server.dir}/join", "--redis", server.url],
                                   stderr=log)
    until(lambda: os.path.exists(f"{server.dir}/join"))
    yield process
    process.terminate()
    code = process.wait(300)
    print((tmp_path / "log").read_text())  # pytest shows it where a test has failed
    assert code == 0


def join(server: Server, *words: str, debugger: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *debugger, str(APP), *words], text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={
                                **os.environ, "PYTHONPATH": str(SRC), "PYTHONUNBUFFERED": "1", "REDIS_URL": server.url,
                                "HOLDFAST_SOCKET": f"{server.dir}/join"})


def send(hf: Holdfast, type: str, **args: object) -> JobRef:
    return hf.send(type, args, keep="1h")


@pytest.mark.parametrize("words", [(), ("async",)])
def test_it_runs_jobs_until_the_worker_ends(server: Server, worker: subprocess.Popen[bytes], hf: Holdfast,
                                            words: tuple[str, ...]) -> None:
    program = join(server, *words)
    assert send(hf, "add", a=1, b=2).result(timeout=300) == 3
    worker.terminate()
    out, _ = program.communicate(timeout=300)
    assert (program.returncode, out) == (0, "")


def test_under_pdb(server: Server, worker: subprocess.Popen[bytes], hf: Holdfast) -> None:
    program = join(server, debugger=("-m", "pdb", "-c", f"break {LINE}", "-c", "continue"))
    assert program.stdin is not None and program.stdout is not None
    ref = send(hf, "add", a=1, b=2)
    seen = ""
    while "return a + b" not in seen:
        seen += program.stdout.readline()
    time.sleep(0.5)  # longer than nothing: no time-out ends it
    assert ref.state() == "running"
    program.stdin.write("p a + 40\ncontinue\n")
    program.stdin.flush()
    assert "41" in program.stdout.readline()
    assert ref.result(timeout=300) == 3
    # In another run the debugger is left: the job goes back, and no attempt is counted.
    ref = send(hf, "add", a=5)
    while "return a + b" not in program.stdout.readline():
        pass
    out, _ = program.communicate("quit\n", timeout=300)
    until(lambda: ref.state() == "waiting")
    program = join(server)
    assert ref.result(timeout=300) == 6
    worker.terminate()
    program.communicate(timeout=300)


@pytest.mark.parametrize("words", [(), ("async",)])
def test_ctrl_c_gives_the_job_back(server: Server, worker: subprocess.Popen[bytes], hf: Holdfast,
                                   words: tuple[str, ...]) -> None:
    type = "also_waits" if words else "waits"
    program = join(server, *words)
    ref = send(hf, type)
    until(lambda: ref.state() == "running" and server.client.hlen("hf:{default}:progress") == 1)
    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=300)
    assert program.returncode != 0 and "KeyboardInterrupt" in out
    until(lambda: ref.state() == "waiting")
    assert b'"attempts"' not in (server.client.hget("hf:{default}:jobs", ref.id) or b"")


def test_it_says_that_there_is_no_worker(server: Server) -> None:
    program = join(server)
    out, _ = program.communicate(timeout=300)
    assert program.returncode == 78
    assert out == (f"holdfast: expected a worker with --listen at the path in HOLDFAST_SOCKET, '{server.dir}/join', "
                   "found none: [Errno 2] No such file or directory\n")
