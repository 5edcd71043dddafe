"""A cluster of two nodes: the node of each queue is asked, MOVED is followed, ASK never."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.crc import key_slot

from holdfast_queue import Holdfast


def is_free(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) != 0


def free_port() -> int:
    """Below those that the kernel gives to connections, to which it would be lost before a server listens. The bus of
    the node has the port that is 10,000 higher."""
    while True:
        port = random.randrange(10000, 22000)
        if is_free(port) and is_free(port + 10000):
            return port


class Node:
    def __init__(self) -> None:
        self.dir = tempfile.mkdtemp(prefix="hf-py-")
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.dir, "--save", "",
             "--cluster-enabled", "yes"], stdout=subprocess.DEVNULL)
        self.client: Any = redis.Redis(port=self.port)
        until = time.monotonic() + 120
        while True:
            try:
                self.id = self.client.execute_command("CLUSTER MYID").decode()
                return
            except redis.ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def end(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Node]]:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server in PATH")
    nodes = [Node(), Node()]
    nodes[0].client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
    nodes[1].client.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
    nodes[0].client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
    until = time.monotonic() + 120
    while not all(b"cluster_state:ok" in node.client.execute_command("CLUSTER", "INFO")
                  and len(node.client.execute_command("CLUSTER", "SLOTS")) == 2 for node in nodes):
        assert time.monotonic() < until
        time.sleep(0.05)
    yield nodes
    for node in nodes:
        node.end()


def queue_of(node: int, after: int = 0) -> tuple[str, int]:
    k = after
    while True:
        slot = key_slot(f"hf:{{q{k}}}:".encode())
        if (slot > 8191) == (node == 1):
            return f"q{k}", slot
        k += 1


def give(nodes: list[Node], slot: int) -> None:
    nodes[1].client.execute_command("CLUSTER", "BUMPEPOCH")  # else the other one may take it back
    for node in nodes[::-1]:
        node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", nodes[1].id)


def client(nodes: list[Node]) -> Holdfast:
    return Holdfast(f"redis+cluster://127.0.0.1:{nodes[0].port},127.0.0.1:{nodes[1].port}", deadline="60s")


def test_each_queue_has_its_node(nodes: list[Node]) -> None:
    hf = client(nodes)
    for place, node in enumerate(nodes):
        queue, _ = queue_of(place)
        ref = hf.send("t", queue=queue)
        assert node.client.zcard(f"hf:{{{queue}}}:schedule") == 1
        assert ref.state() == "waiting" and ref.cancel()

    async def main() -> None:
        hf = client(nodes)
        for place in (0, 1):
            ref = await hf.asend("t", queue=queue_of(place)[0])
            assert await ref.astate() == "waiting" and await ref.acancel()
        await hf.aclose()
    asyncio.run(main())
    hf.close()


def test_moved_is_followed(nodes: list[Node]) -> None:
    hf = client(nodes)
    hf.send("t", queue=queue_of(0)[0])
    queue, slot = queue_of(0, 100)
    give(nodes, slot)
    assert hf.send("t", queue=queue).outcome == "new"
    assert nodes[1].client.zcard(f"hf:{{{queue}}}:schedule") == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_ask_is_waited_for(nodes: list[Node], mode: str) -> None:
    queue, slot = queue_of(0, 200 if mode == "sync" else 300)
    nodes[1].client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", nodes[0].id)
    nodes[0].client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", nodes[1].id)

    timer = threading.Timer(0.7, give, (nodes, slot))
    started = time.monotonic()
    timer.start()
    hf = client(nodes)
    if mode == "sync":
        assert hf.send("t", queue=queue).outcome == "new"
    else:
        async def main() -> None:
            assert (await hf.asend("t", queue=queue)).outcome == "new"
            await hf.aclose()
        asyncio.run(main())
    timer.join()
    assert time.monotonic() - started > 0.6
    assert nodes[1].client.zcard(f"hf:{{{queue}}}:schedule") == 1
    assert "cmdstat_asking" not in nodes[1].client.info("commandstats")
