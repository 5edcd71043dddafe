"""The whole way: a program becomes the worker, which starts copies of it; jobs, results, ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import app_whole
from conftest import Server
from holdfast_queue import Holdfast, JobCancelled, JobDead
from parent import SRC

APP = Path(__file__).parent / "app_whole.py"



@pytest.fixture(scope="module", params=["sync", "async"])
def app(request: pytest.FixtureRequest) -> Iterator[Holdfast]:
    command = os.environ.get("HOLDFAST", "")
    if not command or b"-- COMMAND" not in subprocess.run([command, "worker", "--help"], capture_output=True).stdout:
        pytest.skip("this command has no worker -- COMMAND")
    server = Server()
    log = open(f"{server.dir}/worker.log", "wb")
    worker = subprocess.Popen([sys.executable, str(APP), request.param], stderr=log, stdout=log, env={
        **os.environ, "PYTHONPATH": str(SRC), "HOLDFAST_BIN": command, "REDIS_URL": server.url})
    hf = app_whole.hf
    real, hf._link = hf._link, Holdfast(server.url, deadline="60s")._link
    hf._registered.clear()
    try:
        yield hf
    finally:
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(300)
        log.close()
        text = Path(f"{server.dir}/worker.log").read_text()
        hf._link = real
        server.end()
        print(text)  # pytest shows it where a test has failed
        assert code == 0


def test_results(app: Holdfast) -> None:
    assert app_whole.add.enqueue(1, b=2).result(timeout=300) == 3
    refs = app.enqueue_many(app_whole.add.call(k) for k in range(100))
    assert [ref.result(timeout=300) for ref in refs] == list(range(1, 101))
    assert app_whole.third_time.enqueue().result(timeout=300) == 3
    assert app_whole.tenant.using(headers={"tenant": "7"}).enqueue("ada").result(timeout=300) == "ada 7 new"


def test_deaths(app: Holdfast) -> None:
    with pytest.raises(JobDead, match="RuntimeError: the reason") as caught:
        app_whole.broken.enqueue().result(timeout=300)
    assert "Traceback" in caught.value.text and "in broken" in caught.value.text
    bad = app.send("add", {"a": "one"}, keep="1h")
    with pytest.raises(JobDead, match="payload: expected a whole number as 'a', found \"one\""):
        bad.result(timeout=300)


def test_a_time_out(app: Holdfast) -> None:
    with pytest.raises(JobDead, match="timed out"):
        app_whole.hangs.enqueue(20).result(timeout=300)


def test_cancel_of_a_running_job(app: Holdfast) -> None:
    ref = app_whole.waits.enqueue()
    until = time.monotonic() + 300
    while ref.state() != "running":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert ref.cancel()
    with pytest.raises(JobCancelled):
        ref.result(timeout=300)
