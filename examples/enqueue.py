#!/usr/bin/python3
"""Puts jobs into a queue without the library: enqueue.py QUEUE TYPE [--OPTION=VALUE...] PAYLOAD...

Whether a job is accepted is decided by the script share/holdfast/lua/enqueue.lua, which
`holdfast script enqueue` prints as well; its first lines say what it takes and answers. Jobs with
options, such as --priority=high or --start_within=60000 (ms), go through enqueue_with.lua."""
import binascii, json, logging, os, random, secrets, sys, time
import redis  # Debian: python3-redis

PLACES = ["/usr/share/holdfast/lua", "/usr/local/share/holdfast/lua"]
LUA = os.environ.get("HOLDFAST_LUA") or next(filter(os.path.isdir, PLACES), PLACES[0])


def script(r, name):
    with open(f"{LUA}/{name}.lua", "rb") as file:
        return r.register_script(file.read())  # EVALSHA; loaded where it is not known


def enqueue(r, queue, job_type, payloads, delay_ms=0, **options):
    """Options are fields of the record (docs/keys.md). Returns the ids of the jobs: of a job whose
    unique key was taken, that of the job that stands for it. All of them are accepted, or none: the
    script checks what it is given, and redis.ResponseError says what it refuses
    (`ERR holdfast: job 1: expected ...`)."""
    script(r, "register")(keys=["hf:{/}:"], args=[queue])  # tools find the queue by it
    ids, jobs = [], []
    for payload in payloads:
        ids.append(f"{time.time_ns():016x}{secrets.token_hex(5)}")  # rises: first in, first out
        head = {"type": job_type, "created": time.time_ns() // 1000000, **options}
        jobs += [ids[-1], -delay_ms, json.dumps(head) + "\n" + payload]
    name = "enqueue_with" if options else "enqueue"
    send = lambda tag: script(r, name)(keys=[f"hf:{{{tag}}}:"], args=["", 0, 0, 0, 0, *jobs])
    try:
        answer = send(queue)
    except redis.ResponseError as refused:  # SHARDED holdfast: 4 wide/0-2 wide/1-0 ...
        if not str(refused).startswith("SHARDED "):
            raise
        tags, key = str(refused).split()[3:], options.get("unique")
        answer = send(random.choice(tags) if key is None else  # any shard: these ids are new
                      tags[binascii.crc_hqx(key.encode(), 0) % len(tags)])  # that of the unique key
    met = answer[4] if len(answer) > 4 else []  # the holders of unique keys, four values for each
    for place, what, other in zip(met[::4], met[1::4], met[2::4]):
        if what != b"parked":  # skipped or replaced: it was not accepted under its own id
            ids[int(place) - 1] = other.decode()
    return ids


def connect(url):
    if "+cluster://" not in url:
        return redis.Redis.from_url(url)
    logging.getLogger("redis.cluster").disabled = True  # it logs each error that it raises
    return redis.RedisCluster.from_url(url.replace("+cluster", "").split(",")[0])


r = connect(os.environ.get("REDIS_URL", "redis://localhost:6379/0"))
words, options = sys.argv[3:], {}
while words and words[0].startswith("--"):
    key, _, value = words.pop(0)[2:].partition("=")
    options[key] = int(value) if value.isdigit() and key != "unique" else value
print(*enqueue(r, sys.argv[1], sys.argv[2], words, **options), sep="\n")
