"""The backend of Django's tasks: what it enqueues, when, what it tells, and the worker that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

django = pytest.importorskip("django")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_site.settings")
django.setup()

import redis  # noqa: E402
from asgiref.sync import async_to_sync  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import override_settings  # noqa: E402

from conftest import Server  # noqa: E402
from django_site import settings, tasks  # noqa: E402
from django_site.more import renamed  # noqa: E402
from holdfast_queue import Holdfast  # noqa: E402
from holdfast_queue.django import Backend, Task  # noqa: E402
from holdfast_queue.django._compat import (  # noqa: E402
    InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist, TaskResultStatus, task_backends, task_enqueued,
)
from parent import SRC  # noqa: E402

HERE = Path(__file__).parent
MANAGE = HERE / "django_site" / "manage.py"
hf_of_tests = Holdfast("redis://localhost:1")


def tasks_setting(queues: Any = ("default", "second"), **options: Any) -> Any:
    return override_settings(TASKS={"default": {"BACKEND": "holdfast_queue.django.Backend", "QUEUES": list(queues),
                                                "OPTIONS": options}})


@pytest.fixture
def backend(server: Server, r: redis.Redis) -> Iterator[Backend]:
    with tasks_setting(url=server.url):
        backend = task_backends["default"]
        backend.hf._registered.clear()
        yield backend


def waiting(r: redis.Redis, queue: str = "default") -> list[str]:
    return [id.decode() for name in ("schedule:h", "schedule", "schedule:l")
            for id in r.zrange(f"hf:{{{queue}}}:{name}", 0, -1)]


def record_of(r: redis.Redis, id: str, queue: str = "default") -> tuple[dict[str, Any], Any]:
    line, _, payload = r.hget(f"hf:{{{queue}}}:jobs", id).partition(b"\n")
    return json.loads(line), json.loads(payload)


# ---- what is enqueued ----

def test_the_job_of_a_task(backend: Backend, r: redis.Redis) -> None:
    told: list[Any] = []
    task_enqueued.connect(lambda sender, task_result, **more: told.append((sender, task_result)), weak=False,
                          dispatch_uid="test")
    try:
        result = tasks.add.enqueue(1, b=2)
    finally:
        task_enqueued.disconnect(dispatch_uid="test")
    assert told == [(Backend, result)]
    line, payload = record_of(r, result.id)
    assert line["type"] == "django_site.tasks.add" and payload == {"args": [1], "kwargs": {"b": 2}}
    assert result.status == TaskResultStatus.READY and result.enqueued_at is not None
    assert result.enqueued_at.timestamp() * 1000 == line["created"]
    assert tasks.add.get_result(result.id) == result
    assert async_to_sync(tasks.add.aget_result)(result.id) == result
    assert async_to_sync(tasks.add.aenqueue)(1).id in waiting(r)


def test_priority_time_and_queue(backend: Backend, r: redis.Redis) -> None:
    at = datetime.now(timezone.utc) + timedelta(hours=1)
    low, high = tasks.add.using(priority=-7).enqueue(1), tasks.add.using(priority=99, queue_name="second").enqueue(1)
    late = tasks.add.using(run_after=at).enqueue(1)
    assert record_of(r, low.id)[0]["priority"] == "low"
    assert record_of(r, high.id, "second")[0]["priority"] == "high"
    assert r.zscore("hf:{default}:schedule", late.id) == int(at.timestamp() * 1000)
    for result in (low, high, late):  # the number and the time are told as they were given
        assert tasks.add.get_result(result.id) == result
    assert tasks.add.get_result(high.id).task.priority == 99
    assert tasks.add.get_result(late.id).task.run_after == at


def test_a_time_without_a_zone(backend: Backend, r: redis.Redis) -> None:
    naive = datetime(2040, 1, 2, 3, 4, 5)
    with pytest.raises(InvalidTask, match="aware"):
        tasks.add.using(run_after=naive)
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        result = tasks.add.using(run_after=naive).enqueue(1)
        assert r.zscore("hf:{default}:schedule", result.id) == 2209082645000  # 02:04:05 in UTC
        assert result.enqueued_at.tzinfo is None
        assert tasks.add.get_result(result.id) == result


def test_on_commit(backend: Backend, r: redis.Redis) -> None:
    with transaction.atomic():
        result = tasks.add.enqueue(1)
        assert result.enqueued_at is None and waiting(r) == []
    assert waiting(r) == [result.id] and result.enqueued_at is not None

    with pytest.raises(KeyError), transaction.atomic():
        tasks.add.enqueue(1)
        raise KeyError("rolled back")
    assert waiting(r) == [result.id]

    with transaction.atomic():
        also = async_to_sync(tasks.add.aenqueue)(2)
        assert waiting(r) == [result.id]
    assert waiting(r) == [result.id, also.id]

    with tasks_setting(url=backend.options["url"], enqueue_on_commit=False), transaction.atomic():
        third = tasks.add.enqueue(3)
        assert third.id in waiting(r)
        assert async_to_sync(tasks.add.aenqueue)(4).id in waiting(r)


def test_what_is_wrong_is_found_before_the_commit(backend: Backend, r: redis.Redis) -> None:
    with transaction.atomic():
        with pytest.raises(TypeError):
            tasks.add.enqueue(object())
        with pytest.raises(ValueError):
            tasks.add.enqueue(math.nan)
        with pytest.raises(InvalidTask, match="under the name of its function, 'django_site.more.plain'"):
            renamed.enqueue()
    assert waiting(r) == []


@pytest.mark.parametrize(("change", "text"), [
    ({"queue_name": "third"}, "Queue 'third' is not valid"),
    ({"priority": 101}, "whole number between -100 and 100"),
    ({"run_after": datetime(1960, 1, 1, tzinfo=timezone.utc)}, "run_after: expected a time from 1970"),
])
def test_invalid_tasks(backend: Backend, change: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidTask, match=text):
        tasks.add.using(**change)


@pytest.mark.parametrize(("options", "text"), [
    ({"timeout": 30}, "timeout: expected a text such as '30s'"),
    ({"max_attempts": 0}, "max_attempts: expected a whole number"),
    ({"keep": "1"}, "keep: expected a duration"),
    ({"retry_on": "OSError"}, "retry_on: expected exception classes"),
])
def test_invalid_options_of_a_task(backend: Backend, options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidTask, match=text):
        Task(func=tasks.add.func, **options)


def test_a_queue_with_a_space(server: Server) -> None:
    with tasks_setting(queues=["my queue"], url=server.url):
        with pytest.raises(InvalidTask, match="expected as queue 1 to 128 characters"):
            tasks.add.using(queue_name="my queue")
        assert [problem.id for problem in task_backends["default"].check()] == ["holdfast_queue.E002"]


# ---- configuration ----

def test_flags(backend: Backend, server: Server) -> None:
    assert backend.supports_defer and backend.supports_async_task and backend.supports_priority
    assert backend.supports_get_result
    with tasks_setting(url=server.url, keep=None):
        assert not task_backends["default"].supports_get_result


@pytest.mark.parametrize(("options", "text"), [
    ({"keeps": "1d"}, r"expected one of holdfast, .*modules, found 'keeps'"),
    ({"url": "http://x"}, r"expected as the address of Redis redis://.*found http://"),
    ({"keep": 60}, r"keep: expected a text such as '30s'"),
    ({"enqueue_on_commit": "no"}, r"enqueue_on_commit: expected True or False, found 'no'"),
    ({"modules": "app.jobs"}, r"modules: expected a list of the names of modules, found 'app.jobs'"),
    ({"holdfast": "site.hf", "url": "redis://h"}, r"expected holdfast alone, found url beside it"),
    ({"parallel": 0}, r"parallel: expected a whole number from 1 to 1024, found 0"),
])
def test_bad_options(options: dict[str, Any], text: str) -> None:
    with tasks_setting(**options):
        problems = list(task_backends["default"].check())
        assert [problem.id for problem in problems] == ["holdfast_queue.E001"] and re.search(text, problems[0].msg)
        with pytest.raises(InvalidTaskBackend, match=text) as caught:
            tasks.add.enqueue(1)
        assert "\n" not in str(caught.value)


def test_checks(backend: Backend) -> None:
    assert list(backend.check()) == []
    with override_settings(INSTALLED_APPS=[]):
        assert [problem.id for problem in backend.check()] == ["holdfast_queue.E003"]


def test_a_holdfast_of_the_project() -> None:
    with tasks_setting(holdfast="test_django.hf_of_tests"):
        assert task_backends["default"].hf is hf_of_tests
        with hf_of_tests.testing("fake") as fake:
            tasks.add.enqueue(1, b=2)
            assert fake.jobs[0].args == {"args": [1], "kwargs": {"b": 2}}
            fake.run_all()
            assert fake.done[0].value["value"] == 3
    with tasks_setting(holdfast="test_django.nothing"), pytest.raises(InvalidTaskBackend, match="has no attribute"):
        tasks.add.enqueue(1)
    with tasks_setting(holdfast="test_django.HERE"), pytest.raises(InvalidTaskBackend, match="expected the path of a"):
        tasks.add.enqueue(1)


# ---- results that are missing ----

def test_missing_results(backend: Backend, r: redis.Redis) -> None:
    other = backend.hf.send("email.send", {"to": "ada"})
    same = backend.hf.send("django_site.tasks.add", [1, 2])
    for id in ("nothing", "not a name!", "", other.id, same.id):
        with pytest.raises(TaskResultDoesNotExist):
            backend.get_result(id)
        with pytest.raises(TaskResultDoesNotExist):
            async_to_sync(backend.aget_result)(id)


def test_any_queue(server: Server, r: redis.Redis) -> None:
    with tasks_setting(queues=[], url=server.url):
        task_backends["default"].hf._registered.clear()
        result = tasks.add.using(queue_name="of-the-day").enqueue(1)
        assert tasks.add.get_result(result.id) == result


def test_event_loops_share_connections(backend: Backend, r: redis.Redis) -> None:
    before = r.info("stats")["total_connections_received"]
    for n in range(30):
        asyncio.run(tasks.add.aenqueue(n))
    assert r.info("stats")["total_connections_received"] <= before + 8 and len(waiting(r)) == 30


# ---- the worker ----

def environment(url: str, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SRC), "REDIS_URL": url, "HOLDFAST_BIN": os.environ.get("HOLDFAST", ""),
            **more}


@pytest.fixture(scope="module", params=["sync", "async"])
def site(request: pytest.FixtureRequest, holdfast_command: str) -> Iterator[str]:
    server = Server()
    log = open(f"{server.dir}/worker.log", "wb")
    worker = subprocess.Popen(
        [sys.executable, str(MANAGE), "holdfast", "--processes", "1"], stderr=log, stdout=log,
        env=environment(server.url, SITE_DB=f"{server.dir}/db", SITE_ASYNC="1" if request.param == "async" else ""))
    with tasks_setting(url=server.url):
        yield request.param
    worker.send_signal(signal.SIGTERM)
    code = worker.wait(300)
    log.close()
    print(Path(f"{server.dir}/worker.log").read_text())  # pytest shows it where a test has failed
    server.end()
    assert code == 0


@pytest.fixture(scope="module")
def holdfast_command() -> str:
    command = os.environ.get("HOLDFAST", "")
    if not command:
        pytest.skip("no command holdfast: HOLDFAST names it")
    return command


def ended(result: Any) -> Any:
    until = time.monotonic() + 300
    while not result.is_finished:
        assert time.monotonic() < until, result
        time.sleep(0.02)
        result.refresh()
    return result


def test_a_task_runs(site: str) -> None:
    result = ended(tasks.add.enqueue(1, b=2))
    assert (result.status, result.return_value, result.errors) == (TaskResultStatus.SUCCESSFUL, 3, [])
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at and result.attempts == 1
    again = tasks.add.get_result(result.id)
    assert (again.args, again.kwargs, again.task) == ([1], {"b": 2}, tasks.add)
    assert ended(tasks.what_was_told.enqueue(result.id)).return_value == [["RUNNING", 0], ["SUCCESSFUL", 0]]


def test_tasks_elsewhere(site: str) -> None:
    from django_site import more, views
    assert ended(views.seen.enqueue("by the URLs")).return_value == "by the URLs"
    assert ended(more.named.using(queue_name="second").enqueue("by modules")).return_value == "by modules"


def failed(result: Any, kind: type[BaseException]) -> Any:
    assert ended(result).status == TaskResultStatus.FAILED and result.finished_at is not None
    with pytest.raises(ValueError, match="Task failed"):
        result.return_value
    assert result.errors[-1].exception_class is kind
    return result


def test_errors(site: str) -> None:
    odd = failed(tasks.odd.enqueue(), tasks.Odd)
    assert odd.attempts == 1 and odd.started_at <= odd.finished_at  # one attempt, unless OPTIONS say more
    assert odd.errors[0].traceback.startswith("Traceback (most recent call last)")
    assert odd.errors[0].traceback.endswith("django_site.tasks.Odd: of\nmany lines\n")
    assert ended(tasks.what_was_told.enqueue(odd.id)).return_value == [["RUNNING", 0], ["FAILED", 1]]
    assert failed(tasks.leaves.enqueue(), SystemExit).errors[0].traceback.endswith("SystemExit: it leaves\n")
    assert 'ValueError(ValueError("inner"))' in failed(tasks.chained.enqueue(), ValueError).errors[0].traceback
    assert failed(tasks.no_json.enqueue(), TypeError).attempts == 1
    assert "it says so" in tasks_error(tasks.dead_at_once.enqueue("says"))
    assert failed(tasks.dead_at_once.enqueue("key"), KeyError).attempts == 1
    assert "found 70" in tasks_error(tasks.large.enqueue(70000))


def tasks_error(result: Any) -> str:
    assert ended(result).status == TaskResultStatus.FAILED
    return str(result.errors[0].traceback)


def test_more_attempts(site: str) -> None:
    third = ended(tasks.third_time.enqueue())
    assert third.return_value == [3, third.id, 3, ["builtins.ConnectionError"] * 2]
    assert third.attempts == 3 and [error.exception_class for error in third.errors] == [ConnectionError] * 2
    assert third.started_at < third.last_attempted_at
    assert ended(tasks.what_was_told.enqueue(third.id)).return_value == [
        ["RUNNING", 0], ["RUNNING", 1], ["RUNNING", 2], ["SUCCESSFUL", 2]]
    assert ended(tasks.again.enqueue()).return_value == 2


def test_large_arguments_are_left_out_of_a_result(site: str) -> None:
    result = ended(tasks.takes.enqueue("x" * 70000))
    assert result.return_value == 70000 and result.args == ["x" * 70000]
    again = tasks.takes.get_result(result.id)
    assert again.return_value == 70000 and again.args == []


def test_connections_are_closed_between_tasks(site: str) -> None:
    runs = [ended(tasks.looks_at_database.enqueue()).return_value for _ in range(3)]
    assert runs == [[False, runs[0][1]]] * 3
    assert not any(name.endswith("/db") for name in files_of(runs[0][1]))  # nor while it waits for the next one


def files_of(process: int) -> list[str]:
    names = []
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(os.readlink(entry))
    return names


def test_a_process_that_dies(site: str) -> None:
    result = ended(tasks.crashes.enqueue())
    assert result.status == TaskResultStatus.FAILED and "killed by signal 9" in result.errors[0].traceback
    assert result.errors[0].exception_class_path == "holdfast_queue.errors.JobDead"


def test_a_time_out(site: str) -> None:
    if site == "sync":
        assert "in hangs" in failed(tasks.hangs.enqueue(), TimeoutError).errors[0].traceback


def test_a_cancelled_task(site: str) -> None:
    if site == "async":
        return  # nothing ends a thread
    result = tasks.waits.enqueue()
    until = time.monotonic() + 300
    while result.status != TaskResultStatus.RUNNING:
        assert time.monotonic() < until
        result.refresh()
    assert result.attempts == 1 and result.started_at is not None
    assert task_backends["default"].hf.ref(result.id).cancel()
    with pytest.raises(TaskResultDoesNotExist):
        while time.monotonic() < until:
            result.refresh()


def test_async_tasks(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if site == "sync":
        return
    import importlib
    monkeypatch.setenv("SITE_ASYNC", "1")
    importlib.reload(tasks)
    assert ended(tasks.aadd.enqueue(2, b=3)).return_value == 5
    assert async_to_sync(tasks.aadd.aget_result)(tasks.aadd.enqueue(1).id).task == tasks.aadd
    assert ended(tasks.asecond_time.enqueue()).return_value == ["django_site.tasks.Odd"]
    afails = failed(tasks.afails.enqueue(), tasks.Odd)
    assert ended(tasks.what_was_told.enqueue(afails.id)).return_value == [["RUNNING", 0], ["FAILED", 1]]
    assert "in ahangs" in failed(tasks.ahangs.enqueue(), TimeoutError).errors[0].traceback


# ---- the command ----

def manage(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(MANAGE), *words], capture_output=True, text=True, timeout=300,
                          env=environment("redis://localhost:1", HOLDFAST_BIN="/bin/false", **more))


@pytest.mark.parametrize(("words", "options", "text"), [
    (["--backend", "nothing"], {}, "The connection 'nothing' doesn't exist."),
    (["--backend", "other"], {}, "TASKS['other']: expected holdfast_queue.django.Backend, found django"),
    ([], {"holdfast": "no.such"}, "holdfast: expected the path of a Holdfast, found 'no.such'"),
])
def test_bad_commands(words: list[str], options: dict[str, Any], text: str) -> None:
    if options:
        options["url"] = None
    done = manage("holdfast", *words, SITE_OPTIONS=json.dumps(options))
    assert done.returncode == 78 and text in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_bad_option_stops_the_command() -> None:
    done = manage("holdfast", SITE_OPTIONS='{"keep": 5}')
    assert done.returncode == 1 and "holdfast_queue.E001) TASKS['default']['OPTIONS']: keep: expected a" in done.stderr
    assert manage("check", SITE_OPTIONS='{"keep": 5}').returncode == 1


def test_the_words_of_the_worker(tmp_path: Path) -> None:
    echo = tmp_path / "holdfast"
    echo.write_text('#!/bin/sh\nshift; printf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    words = [[sys.executable, str(MANAGE), "holdfast", *more] for more in (
        [], ["--queue", "mail", "--processes", "3"], ["--config", "worker.yaml"])]
    said = [subprocess.run(each, capture_output=True, text=True, timeout=300,
                           env=environment("redis://localhost:1", HOLDFAST_BIN=str(echo))).stdout.splitlines()
            for each in words]
    assert [lines[:lines.index("--")] for lines in said] == [
        ["--queue", "default", "--queue", "second"], ["--queue", "mail", "--processes", "3"], ["-c", "worker.yaml"]]
    assert all(lines[lines.index("--") + 2:] == each[1:] for lines, each in zip(said, words))


def test_an_older_django_says_what_is_missing() -> None:
    code = ("import django, sys; django.VERSION = (5, 2, 0, 'final', 0); sys.modules['django_tasks'] = None\n"
            "import holdfast_queue.django")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(""))
    assert "expected Django 6 or newer, or the package django-tasks, found Django 5.2" in done.stderr


# ---- docs/django.md ----

def test_blocks(backend: Backend, r: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (HERE.parents[2] / "docs" / "django.md").read_text()
    configured, defined, called = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict[str, Any] = {}
    exec(configured, names)
    assert names["INSTALLED_APPS"] == [name for name in settings.INSTALLED_APPS if name == "holdfast_queue.django"]
    if django.VERSION < (6, 1):
        pytest.skip("these tasks need Django 6.1")
    with override_settings(TASKS=names["TASKS"]):
        assert list(task_backends["default"].check()) == []
    module = types.ModuleType("shop_tasks")
    monkeypatch.setitem(sys.modules, "shop_tasks", module)
    with tasks_setting(queues=["default", "mail"], url=backend.options["url"]):
        exec(defined, module.__dict__)
        exec(called, {**vars(module), "timezone": django.utils.timezone, "timedelta": timedelta})
        assert len(waiting(r)) == 1 and len(waiting(r, "mail")) == 1
