#!/usr/bin/env python3
"""Puts jobs into a queue without the library: a module for programs in Python, and a command.

    import enqueue
    r = enqueue.connect("redis://localhost:6379/0")  # or a client of the package redis
    ids = enqueue.enqueue(r, "default", "email.send", ["ada@example.com"], priority="high")

It needs the command holdfast and nothing else: `holdfast script enqueue` prints the script that
decides in Redis whether jobs are accepted, and the first lines of the script say what it takes and
answers. For TLS, Sentinel or a cluster, use a client of the package redis."""
import argparse, binascii, functools, hashlib, json, logging, os, random, re, secrets, socket
import subprocess, sys, time, urllib.parse

NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# The options of a job are fields of its record (docs/keys.md). Numbers are ms, but for max_attempts.
OPTIONS = {
    "max_attempts": int, "timeout": int, "keep": int, "start_within": int, "expired": ("dead",),
    "priority": ("high", "low"), "on_dead": NAME, "unique": str, "unique_until": ("start", "done"),
    "unique_for": int, "on_conflict": ("replace", "next", "cancel"), "debounce": int,
    "max_wait": int, "throttle": int, "awaited": int, "replace_dead": int,
}
REMEMBER_MS = 60000  # so long the same request may come again, and is not executed twice


class Refused(Exception):
    """Redis answered with an error, or a script cannot be had."""


class Redis:
    """The smallest client, for redis:// and unix://. Requests of several threads need one each."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.socket = socket.socket(socket.AF_UNIX) if at.scheme == "unix" else None
        if self.socket:
            self.socket.settimeout(10)
            self.socket.connect(at.path)
        else:
            self.socket = socket.create_connection((at.hostname or "localhost", at.port or 6379), 10)
        self.answers = self.socket.makefile("rb")
        database = urllib.parse.parse_qs(at.query).get("db", [at.path[1:]])[0]
        if at.password is not None:
            words = [at.username or "default", at.password]
            self.execute_command("AUTH", *map(urllib.parse.unquote, words))
        if at.scheme != "unix" or at.query:
            self.execute_command("SELECT", database or 0)

    def execute_command(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            parts += [b"$%d\r\n" % len(word), word, b"\r\n"]
        self.socket.sendall(b"".join(parts))
        return self.answer()

    def answer(self):
        line = self.answers.readline()
        if not line:
            raise ConnectionError("Redis closed the connection")
        kind, value = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(value.decode())
        if kind == b"*":
            return [self.answer() for _ in range(int(value))]
        if kind == b"$":
            return None if value == b"-1" else self.answers.read(int(value) + 2)[:-2]
        return int(value) if kind == b":" else value


def connect(url):
    if url.startswith(("redis://", "unix://")):
        return Redis(url)
    import redis  # Debian: python3-redis

    if "+cluster://" not in url:
        return redis.Redis.from_url(url)
    logging.getLogger("redis.cluster").disabled = True  # it logs each error that it raises
    return redis.RedisCluster.from_url(url.replace("+cluster", "").split(",")[0])


@functools.lru_cache(None)
def script(name):
    try:
        text = subprocess.run(["holdfast", "script", name], capture_output=True, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(f"expected the command holdfast in PATH, which prints scripts: {error}") from None
    return text, hashlib.sha1(text).hexdigest()


def run_script(r, name, key, *args):
    text, sha1 = script(name)
    try:
        return r.execute_command("EVALSHA", sha1, 1, key, *args)
    except Exception as error:  # Refused, or the package's NoScriptError
        if "NOSCRIPT" not in f"{type(error).__name__} {error}".upper():
            raise
    return r.execute_command("EVAL", text, 1, key, *args)


def check_name(what, name):
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"expected a {what}, 1 to 128 of A-Z a-z 0-9 . _ : -, found {name!r}")


def check_option(name, value):
    kind = OPTIONS.get(name)
    if kind is None:
        raise TypeError(f"expected one of the options {', '.join(OPTIONS)}, found {name!r}")
    if kind is NAME:
        check_name(f"type as {name}", value)
    elif kind is int and (type(value) is not int or value < 1):
        raise ValueError(f"expected as {name} a whole number from 1 on, found {value!r}")
    elif kind is str and (not isinstance(value, str) or not 1 <= len(value.encode()) <= 256):
        raise ValueError(f"expected as {name} a text of 1 to 256 bytes, found {value!r}")
    elif isinstance(kind, tuple) and value not in kind:
        raise ValueError(f"expected as {name} {' or '.join(kind)}, found {value!r}")


def check(queue, job_type, payloads, delay_ms, options):
    check_name("queue", queue)
    check_name("type", job_type)
    if isinstance(payloads, (str, bytes, bytearray, dict)):  # each has parts that would become jobs
        kind = type(payloads).__name__
        raise TypeError(f"expected a list of payloads, found one {kind}: write [payload]")
    if type(delay_ms) is not int or delay_ms < 0:
        raise ValueError(f"expected as delay a whole number of ms, found {delay_ms!r}")
    for name, value in options.items():
        check_option(name, value)


def enqueue(r, queue, job_type, payloads, delay_ms=0, **options):
    """Returns an id for each payload of a list (of str or bytes). Where a unique key was taken, it is
    the id of the job that holds it. All jobs are accepted, or none: an exception says why. Times are
    in ms. Jobs get new ids and wait for delay_ms: the command's --id and --at do not exist here."""
    check(queue, job_type, payloads, delay_ms, options)
    now = run_script(r, "register", "hf:{/}:", queue)[1]  # by Redis's clock; tools find the queue by it
    ids, jobs = [], []
    for payload in payloads:
        ids.append(f"{time.time_ns():016x}{secrets.token_hex(5)}")  # rises: first in, first out
        head = json.dumps({"type": job_type, "created": time.time_ns() // 1000000, **options})
        body = payload if isinstance(payload, bytes) else payload.encode()
        jobs += [ids[-1], -delay_ms, head.encode() + b"\n" + body]
    name = "enqueue_with" if options else "enqueue"
    # A producer of its own for this request: a client that sends it again enqueues nothing twice. It may come
    # while Redis remembers the first one, also if Redis's clock is set forward.
    args = [secrets.token_hex(8), 1, now + REMEMBER_MS, REMEMBER_MS, 0, *jobs]
    try:
        answer = run_script(r, name, f"hf:{{{queue}}}:", *args)
    except Exception as refused:  # SHARDED holdfast: 4 wide/0-2 wide/1-0 ...
        if not str(refused).startswith("SHARDED "):
            raise
        tags, key = str(refused).split()[3:], options.get("unique")
        tag = (random.choice(tags) if key is None else  # any shard: these ids are new
               tags[binascii.crc_hqx(key.encode(), 0) % len(tags)])  # that of the unique key
        answer = run_script(r, name, f"hf:{{{tag}}}:", *args)
    if answer[0] == -4:
        raise Refused("Redis has not answered in time: the jobs may have been accepted")
    met = answer[4] if len(answer) > 4 else []  # the holders of unique keys, four values for each
    met = [value.decode() if isinstance(value, bytes) else value for value in met]
    for place, what, other in zip(met[::4], met[1::4], met[2::4]):
        if what != "parked":  # skipped or replaced: it was not accepted under its own id
            ids[int(place) - 1] = other
    return ids


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(64, f"enqueue.py: {message}\n")


def number(text):
    return int(text) if text.isdecimal() else text  # check() says what it expected


def read(words):
    parser = Parser(prog="enqueue.py", allow_abbrev=False,
                    description="Puts jobs into a queue in the Redis at REDIS_URL; prints their ids.")
    parser.add_argument("queue", metavar="QUEUE")
    parser.add_argument("type", metavar="TYPE")
    parser.add_argument("payloads", metavar="PAYLOAD", nargs="+")
    parser.add_argument("--delay", metavar="MS", default=0, type=number)
    for name, kind in OPTIONS.items():
        value = {int: "N", str: "TEXT", NAME: "TYPE"}.get(kind) or "|".join(kind)
        parser.add_argument(*dict.fromkeys(["--" + name.replace("_", "-"), "--" + name]), dest=name, metavar=value,
                            type=number if kind is int else str, default=argparse.SUPPRESS)
    options = vars(parser.parse_args(words))
    fixed = [options.pop(name) for name in ("queue", "type", "payloads", "delay")]
    try:
        check(*fixed, options)
    except ValueError as error:
        parser.error(str(error))
    return *fixed, options


def main(words):
    queue, job_type, payloads, delay, options = read(words)
    try:
        r = connect(os.environ.get("REDIS_URL", "redis://localhost:6379/0"))
        payloads = [os.fsencode(payload) for payload in payloads]
        print(*enqueue(r, queue, job_type, payloads, delay, **options), sep="\n")
    except ImportError:
        sys.exit("enqueue.py: expected redis:// or unix:// in REDIS_URL, or the package redis")
    except Exception as error:
        if not isinstance(error, (OSError, Refused)) and type(error).__module__ != "redis.exceptions":
            raise
        sys.exit(f"enqueue.py: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
