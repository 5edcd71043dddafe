"""A Redis of its own for the tests of a session, and for those that stop it one each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from holdfast_queue import Holdfast


class Server:
    def __init__(self, *more: str):
        self.dir = tempfile.mkdtemp(prefix="hf-py-")
        self.socket = f"{self.dir}/redis.sock"
        self.url = f"unix://{self.socket}"
        self.more = more
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.dir, "--save", "",
             *self.more], stdout=subprocess.DEVNULL)
        self.client = redis.Redis(unix_socket_path=self.socket)
        until = time.monotonic() + 120
        while True:
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def stop(self) -> None:
        assert self.process is not None
        self.client.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server in PATH")
    server = Server()
    yield server
    server.end()


@pytest.fixture
def own_server() -> Iterator[Server]:
    server = Server("--appendonly", "yes", "--appendfsync", "always")
    yield server
    server.end()


@pytest.fixture
def r(server: Server) -> redis.Redis:
    server.client.flushall()
    return server.client


@pytest.fixture
def hf(server: Server, r: redis.Redis) -> Iterator[Holdfast]:
    hf = Holdfast(server.url, deadline="60s")
    yield hf
    hf.close()


@pytest.fixture
def holdfast() -> str:
    """The command."""
    path = os.environ.get("HOLDFAST") or shutil.which("holdfast")
    if path is None:
        pytest.skip("no command holdfast: HOLDFAST names it")
    return str(Path(path).resolve())
