"""Stands for redis-py in programs that ask Redis for nothing: to import it is most of their start, and tests start
hundreds of them. app_whole.py and the examples have redis-py itself."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class Absent(ModuleType):
    """Each of its names is a class."""

    def __getattr__(self, name: str) -> Any:
        return type(name, (Exception,), {})


for module in ("redis", "redis.asyncio", "redis.backoff", "redis.exceptions", "redis.retry"):
    sys.modules[module] = Absent(module)
