"""Connections to Redis by redis-py: one Redis, Sentinel or a cluster, for blocking code; _link_async.py has them for
asyncio.

A request is a generator that yields `Command` and `Sleep`, so each rule of resending stands once, for both
kinds of code. Functions import redis-py, because that takes longer than the rest of the package, and a handler process
that enqueues nothing needs none of it."""

from __future__ import annotations

import importlib
import logging
import threading
import time
import weakref
from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from ._scripts import script
from .errors import NoAnswer, Refused

T = TypeVar("T")


class Command(NamedTuple):
    key: str
    words: tuple[Any, ...]


class Sleep(NamedTuple):
    seconds: float


Steps = Generator[Any, Any, T]

# A cluster that moves a slot answers ASK or TRYAGAIN: the request waits, and never follows ASK,
# because the other node has only some of the keys yet.
_LATER = ("ASK ", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "NOREPLICAS")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Sharded(Exception):
    """The queue is divided: its jobs belong to the queues with these tags."""

    def __init__(self, tags: list[str]):
        super().__init__(*tags)
        self.tags = tags


def _is_later(error: Exception) -> bool:
    from redis import exceptions
    if isinstance(error, (exceptions.BusyLoadingError, exceptions.ReadOnlyError, exceptions.ConnectionError,
                          exceptions.TimeoutError)):
        return not isinstance(error, exceptions.AuthenticationError)
    return isinstance(error, exceptions.ResponseError) and (
        str(error).startswith(_LATER) or type(error).__name__ in ("AskError", "TryAgainError", "ClusterDownError", "MasterDownError"))


def _translated(error: Exception) -> Exception:
    text = str(error)
    at = text.find("SHARDED holdfast: ")
    if at >= 0:
        return Sharded(text[at:].split()[3:])
    at = text.find("holdfast: ")
    if at >= 0:  # Redis adds the script and its line
        text = text[at + len("holdfast: "):].split(" script: ")[0]
    return Refused(text)


def send(name: str, key: str, *args: Any, deadline: float = 5.0, known_until: int = 0) -> Steps[Any]:
    """One execution of a script. It is sent again until it is answered, for `deadline` seconds: the
    arguments must make that harmless. known_until: Redis remembers a numbered request until this time of its
    clock; one that is sent again must not come later, also if that clock was set forward."""
    from redis.exceptions import NoScriptError, RedisError
    sha1, text = script(name)
    end, pause = time.monotonic() + deadline, _FIRST_PAUSE
    command = Command(key, ("EVALSHA", sha1, 1, key, *args))
    while True:
        try:
            return (yield command)
        except NoScriptError:
            load = Command(key, ("SCRIPT LOAD", text))
        except RedisError as error:
            if not _is_later(error):
                raise _translated(error) from None
            if time.monotonic() >= end:
                raise NoAnswer(f"no answer from Redis in {deadline:g} s: {error}") from error
            if known_until:
                command = Command(key, ("EVALSHA", sha1, 1, key, *args[:2], known_until, *args[3:]))
            yield Sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            continue
        try:
            yield load
        except RedisError as error:
            if not _is_later(error):
                raise _translated(error) from None


# ---- addresses ----

class Address(NamedTuple):
    kind: str  # "redis", "sentinel" or "cluster"
    url: str
    nodes: list[tuple[str, int]]
    master: str
    options: dict[str, Any]


def _node(text: str, port: int) -> tuple[str, int]:
    host, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text.strip("[]"), port
    return host.strip("[]"), int(digits)


def _typed(query: str) -> dict[str, Any]:
    """The options behind "?" as redis-py reads them in its own addresses: numbers and truths, not texts."""
    connection: Any = importlib.import_module("redis.connection")
    return dict(connection.parse_url(f"redis://?{query}"))


def parse(url: str) -> Address:
    at = urlsplit(url)
    scheme = at.scheme
    if scheme in ("redis", "rediss", "unix"):
        return Address("redis", url, [], "", {})
    if scheme not in ("redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"):
        raise ValueError("expected as the address of Redis redis://, rediss://, unix://, redis+sentinel:// or "
                         f"redis+cluster://, found {scheme + '://' if scheme else 'none'}")
    kind = scheme.partition("+")[2]
    userinfo, _, hosts = at.netloc.rpartition("@")
    options: dict[str, Any] = {}
    if userinfo:
        user, _, password = userinfo.partition(":")
        options["username"] = unquote(user) or None
        options["password"] = unquote(password) or None
    if scheme.startswith("rediss"):
        options["ssl"] = True
    if at.query:
        options.update(_typed(at.query))
    nodes = [_node(text, 26379 if kind == "sentinel" else 6379) for text in hosts.split(",") if text]
    path = [part for part in at.path.split("/") if part]
    if not nodes or (kind == "sentinel" and not path):
        raise ValueError(f"expected {scheme}://host1,host2{'/master' if kind == 'sentinel' else ''}")
    if kind == "sentinel" and len(path) > 1:
        options["db"] = int(path[1])
    return Address(kind, url, nodes, path[0] if path else "", options)


# ---- blocking ----

class Link:
    """The connections of a process, for blocking code. Any thread may use it."""

    def __init__(self, address: Address, options: dict[str, Any], timeout: float):
        self.address = address
        self._options = {"socket_timeout": timeout, "socket_connect_timeout": timeout, **options}
        self._client: Any = None
        self._clients: weakref.WeakSet[Any]
        self.forget()

    def _connect(self) -> Any:
        address = self.address
        if address.kind == "cluster":
            cluster: Any = importlib.import_module("redis.cluster")
            logging.getLogger("redis.cluster").addFilter(lambda record: record.levelno < logging.ERROR)
            return cluster.RedisCluster(startup_nodes=[cluster.ClusterNode(*node) for node in address.nodes],
                                        **{**address.options, **self._options})
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
        options = {"retry": Retry(NoBackoff(), 0), **self._options}
        if address.kind == "sentinel":
            sentinel: Any = importlib.import_module("redis.sentinel")
            auth = {**address.options, **options}
            db = auth.pop("db", 0)
            watchers = sentinel.Sentinel(address.nodes, sentinel_kwargs=auth, **auth, db=db)
            return watchers.master_for(address.master)
        # Each thread has its connection: to take one from a pool and to give it back costs a third of a request.
        return redis.Redis.from_url(address.url, single_connection_client=True, **options)

    def client(self) -> Any:
        if self.address.kind == "redis":
            client = getattr(self._local, "client", None)
            if client is None:
                client = self._local.client = self._connect()
                self._clients.add(client)
            return client
        if self._client is None:
            with self._lock:
                if self._client is None:
                    self._client = self._connect()
        return self._client

    def execute(self, command: Command) -> Any:
        client = self.client()
        if self.address.kind != "cluster":
            return client.execute_command(*command.words)
        from redis.exceptions import ConnectionError as RedisConnectionError, ResponseError
        for _ in range(4):
            node = client.get_node_from_key(command.key)
            try:
                return client.get_redis_connection(node).execute_command(*command.words)
            except RedisConnectionError:
                client.nodes_manager.initialize()
                raise
            except ResponseError as error:
                if not _is_moved(error):
                    raise
            client.nodes_manager.initialize()
        raise ResponseError("CLUSTERDOWN the slots move faster than they can be read")

    def run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    if type(step) is Sleep:
                        time.sleep(step.seconds)
                        answer = None
                    else:
                        answer = self.execute(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def forget(self) -> None:
        """After a fork: the parent owns these connections."""
        self._client = None
        self._local = threading.local()
        self._clients = weakref.WeakSet()
        self._lock = threading.Lock()

    def close(self) -> None:
        clients = [*self._clients, self._client]
        self.forget()
        for client in clients:
            if client is not None:
                client.close()


def _is_moved(error: Exception) -> bool:
    return type(error).__name__ == "MovedError" or str(error).startswith("MOVED ")
