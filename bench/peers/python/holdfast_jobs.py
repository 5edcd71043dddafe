"""holdfast_jobs.py - Holdfast among the queues that ../README.md describes: holdfast_jobs.py VERB [JOBS].

serve, serve-async: a pool of a worker; its handler does nothing
starts: the same; its process makes the file PEER_STARTS, its handler writes mark and time of each start to it
fill: enqueues this many jobs, 100 in a call
enqueue: enqueues one by one and 100 in a call, in turns with a program that has only redis-py, and says how fast"""
import hashlib
import os
import statistics
import sys
import time

import redis
from holdfast_queue import Holdfast, Job
from peer import SOCKET, TEXT, say

ROUNDS, MANY = 7, 100
verb, jobs = sys.argv[1], int((sys.argv[2:] or [0])[0])
hf = Holdfast("unix://" + SOCKET, parallel=16)

if verb == "serve-async":
    @hf.job("peer")
    async def nothing(text: str):
        pass
elif verb == "starts":
    @hf.on_start
    def begin():
        global starts
        starts = os.open(os.environ["PEER_STARTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @hf.job("peer")
    def nothing(job: Job):
        now = time.monotonic_ns()
        os.write(starts, f"{job.payload[:20].decode()} {now}\n".encode())
else:
    @hf.job("peer")
    def nothing(text: str):
        pass


def enqueue_many():
    hf.enqueue_many([nothing.call(TEXT) for _ in range(MANY)])


class Bare:
    """Sends the script of an enqueue with the same arguments, by redis-py alone; ids count up."""

    def __init__(self):
        self.client = redis.Redis(unix_socket_path=SOCKET, single_connection_client=True)
        with open(os.path.join(os.environ["HOLDFAST_LUA"], "enqueue.lua"), "rb") as file:
            text = file.read()
        self.sha = hashlib.sha1(text).hexdigest()
        self.client.script_load(text)
        self.record = b'{"type":"peer"}\n{"text":"%s"}' % TEXT.encode()
        self.number = self.id = 0

    def send(self, n):
        self.number += 1
        words = []
        for _ in range(n):
            self.id += 1
            words += (f"bare-{self.id:09}", 0, self.record)
        self.client.execute_command("EVALSHA", self.sha, 1, "hf:{default}:", "bare", self.number, 0, 60000, 0, *words,
                                    "N")


def rate(call, calls, jobs_each):
    since = time.perf_counter()
    for _ in range(calls):
        call()
    return calls * jobs_each / (time.perf_counter() - since)


def compare(jobs):
    bare = Bare()
    ways = {"one": (lambda: nothing.enqueue(TEXT), jobs, 1), "bare_one": (lambda: bare.send(1), jobs, 1),
            "many": (enqueue_many, jobs // 20, MANY), "bare_many": (lambda: bare.send(MANY), jobs // 20, MANY)}
    for call, _, _ in ways.values():
        call()
    rounds = [{name: rate(*way) for name, way in ways.items()} for _ in range(ROUNDS)]
    say(**{name: statistics.median(found[name] for found in rounds) for name in ways})


if verb == "fill":
    for _ in range(jobs // MANY):
        enqueue_many()
elif verb == "enqueue":
    compare(jobs)
else:
    hf.run()
