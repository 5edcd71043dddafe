"""The connections of _link.py for asyncio."""

from __future__ import annotations

import asyncio
import importlib
import logging
import weakref
from typing import Any, TypeVar

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError, ResponseError

from ._link import Address, Command, Sleep, Steps, _is_moved

T = TypeVar("T")


class AsyncLink:
    """The connections of a process, for asyncio: each event loop has its own."""

    def __init__(self, address: Address, options: dict[str, Any], timeout: float):
        self.address = address
        self._options = {"socket_timeout": timeout, "socket_connect_timeout": timeout, **options}
        self.forget()

    def forget(self) -> None:
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()

    def _connect(self) -> Any:
        address = self.address
        if address.kind == "cluster":
            cluster: Any = importlib.import_module("redis.asyncio.cluster")
            logging.getLogger("redis.cluster").addFilter(lambda record: record.levelno < logging.ERROR)
            return cluster.RedisCluster(startup_nodes=[cluster.ClusterNode(*node) for node in address.nodes],
                                        **{**address.options, **self._options})
        options = {"retry": Retry(NoBackoff(), 0), **self._options}
        if address.kind == "sentinel":
            sentinel: Any = importlib.import_module("redis.asyncio.sentinel")
            auth = {**address.options, **options}
            db = auth.pop("db", 0)
            watchers = sentinel.Sentinel(address.nodes, sentinel_kwargs=auth, **auth, db=db)
            return watchers.master_for(address.master)
        return redis.asyncio.Redis.from_url(address.url, **options)

    def client(self) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._connect()
        return client

    async def execute(self, command: Command) -> Any:
        client = self.client()
        if self.address.kind != "cluster":
            return await client.execute_command(*command.words)
        await client.initialize()
        for _ in range(4):
            node = client.get_node_from_key(command.key)
            try:
                return await node.execute_command(*command.words)
            except RedisConnectionError:
                await client.nodes_manager.initialize()
                raise
            except ResponseError as error:
                if not _is_moved(error):
                    raise
            await client.nodes_manager.initialize()
        raise ResponseError("CLUSTERDOWN the slots move faster than they can be read")

    async def run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    if type(step) is Sleep:
                        await asyncio.sleep(step.seconds)
                        answer = None
                    else:
                        answer = await self.execute(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
