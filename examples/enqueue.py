#!/usr/bin/python3
"""Puts jobs into a queue without the library: enqueue.py QUEUE TYPE PAYLOAD...

Whether a job is accepted is decided by the script share/holdfast/lua/enqueue.lua, which
`holdfast script enqueue` prints as well; its first lines say what it takes and answers."""
import json, logging, os, random, secrets, sys, time
import redis  # Debian: python3-redis

PLACES = ["/usr/share/holdfast/lua", "/usr/local/share/holdfast/lua"]
LUA = os.environ.get("HOLDFAST_LUA") or next(filter(os.path.isdir, PLACES), PLACES[0])


def script(r, name):
    with open(f"{LUA}/{name}.lua", "rb") as file:
        return r.register_script(file.read())  # EVALSHA; loaded where it is not known


def enqueue(r, queue, job_type, payloads, delay_ms=0):
    """Returns the ids of the new jobs. All of them are accepted, or none: the script checks what it
    is given, and redis.ResponseError says what it refuses (`ERR holdfast: job 1: expected ...`)."""
    script(r, "register")(keys=["hf:{/}:"], args=[queue])  # tools find the queue by it
    ids, jobs = [], []
    for payload in payloads:
        ids.append(f"{time.time_ns():016x}{secrets.token_hex(5)}")  # rises: first in, first out
        head = {"type": job_type, "created": time.time_ns() // 1000000}
        jobs += [ids[-1], -delay_ms, json.dumps(head) + "\n" + payload]
    send = lambda tag: script(r, "enqueue")(keys=[f"hf:{{{tag}}}:"], args=["", 0, 0, 0, 0, *jobs])
    try:
        send(queue)
    except redis.ResponseError as refused:  # SHARDED holdfast: 4 wide/0-2 wide/1-0 ...
        if not str(refused).startswith("SHARDED "):
            raise
        send(random.choice(str(refused).split()[3:]))  # any shard: these ids are new
    return ids


def connect(url):
    if "+cluster://" not in url:
        return redis.Redis.from_url(url)
    logging.getLogger("redis.cluster").disabled = True  # it logs each error that it raises
    return redis.RedisCluster.from_url(url.replace("+cluster", "").split(",")[0])


r = connect(os.environ.get("REDIS_URL", "redis://localhost:6379/0"))
print(*enqueue(r, sys.argv[1], sys.argv[2], sys.argv[3:]), sep="\n")
