"""The vectors of tests/vectors, which the C side verifies as well: records, ids, shards, answers of scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from redis._parsers import BaseParser

from holdfast_queue import Holdfast, Refused
from holdfast_queue._app import Call, Plan
from holdfast_queue._ids import half, shard_of
from holdfast_queue._link import Sharded, _is_later, _is_moved, _translated, send

VECTORS = Path(__file__).parents[3] / "tests" / "vectors"


def vectors(name: str, key: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())[key]


@pytest.mark.parametrize("vector", vectors("records", "records"))
def test_records(vector: Any) -> None:
    job = dict(vector["job"])
    type, payload = job.pop("type"), job.pop("payload", "").encode()
    if "in" in job:
        job["delay"] = job.pop("in")
    plan = Plan(type, "q", job, False)
    assert Call(type, plan, None, payload).record(vector["created"] or None) == vector["record"].encode()
    assert ("enqueue_with" if plan.optional else "enqueue") == vector["script"]


def test_ids() -> None:
    ids = vectors("ids", "ids")
    assert [half(each["ms"]) + half(each["number"]) for each in ids] == [each["id"] for each in ids]
    assert sorted(each["id"] for each in ids) == [each["id"] for each in ids]


def test_shards() -> None:
    for each in vectors("shards", "shards"):
        assert {n: shard_of(each["text"], int(n)) for n in each["shards"]} == each["shards"]


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, bytes):
        found = found.decode()
    if expected == "$ms":
        return int(found) > 10 ** 12
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


def test_scripts(hf: Holdfast, r: redis.Redis) -> None:
    for step in vectors("scripts", "steps"):
        if "command" in step:
            r.execute_command(*step["command"])
            continue
        expected = step["answer"]
        try:
            answer = hf._link.run(send(step["script"], step["key"], *step["args"]))
        except Sharded as sharded:
            assert "SHARDED holdfast: 2 " + " ".join(sharded.tags) == expected["error"]
        except Refused as refused:
            assert "holdfast: " + str(refused) == expected["error"].removeprefix("ERR ")
        else:
            assert same(answer, expected), (step, answer)


@pytest.mark.parametrize("vector", vectors("redirects", "errors"))
def test_what_a_client_does_about_an_error(vector: Any) -> None:
    error = BaseParser.parse_error(vector["error"])
    assert isinstance(error, Exception)
    if isinstance(error, redis.exceptions.NoScriptError):
        does = "load"
    elif _is_moved(error):
        does = "follow"
    elif _is_later(error):
        does = "wait"
    else:
        translated = _translated(error)
        does = "shards" if isinstance(translated, Sharded) else "fail"
        assert not isinstance(translated, Sharded) or translated.tags == vector["tags"]
    assert does == vector["do"]
