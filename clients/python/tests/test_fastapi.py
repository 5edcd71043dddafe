"""examples/web_fastapi.py: the service with its jobs in a list, and with Redis and the worker."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Server
from fastapi.testclient import TestClient

from holdfast_queue.testing import Fake
from parent import SRC

EXAMPLE = Path(__file__).parents[3] / "examples" / "web_fastapi.py"
ADA = {"email": "ada@example.com", "name": "Ada"}


def service(url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("REDIS_URL", url)
    spec = importlib.util.spec_from_file_location("web_fastapi", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_service_alone(holdfast_fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    module = service("redis://localhost:1", monkeypatch)
    with TestClient(module.app) as client:
        assert client.post("/signups", json={"email": "ada@example.com"}).status_code == 422
        answer = client.post("/signups", json=ADA)
        assert answer.status_code == 202 and [job.id for job in holdfast_fake] == [answer.json()["id"]]
        assert holdfast_fake.jobs[0].args == {"signup": ADA}
        holdfast_fake.run_all()
        assert holdfast_fake.done[0].value == "ada@example.com: Welcome, Ada!"
    assert not module.mailer.is_open


def test_with_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    command = os.environ.get("HOLDFAST")
    if not command:
        pytest.skip("no command holdfast: HOLDFAST names it")
    server = Server()
    module = service(server.url, monkeypatch)
    worker = subprocess.Popen([sys.executable, str(EXAMPLE)], env={
        **os.environ, "PYTHONPATH": str(SRC), "HOLDFAST_BIN": command, "REDIS_URL": server.url})
    try:
        with TestClient(module.app) as client:
            assert client.get("/signups/nothing").status_code == client.get("/signups/no name").status_code == 404
            id = client.post("/signups", json=ADA).json()["id"]
            until = time.monotonic() + 300
            while (answer := client.get(f"/signups/{id}").json())["state"] != "done":
                assert time.monotonic() < until, answer
                time.sleep(0.05)
            assert answer["sent"] == "ada@example.com: Welcome, Ada!"
    finally:
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(300)
        server.end()
    assert code == 0
