"""What a reader types, as printed: the part about Python of README.md, the program of docs/pipe.md, and the
application examples/reports."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Server
from parent import SRC

ROOT = Path(__file__).parents[3]
APP = ROOT / "examples" / "reports"
LUA = os.environ.get("HOLDFAST_LUA", str(ROOT / "build" / "lua"))


def blocks(path: Path, heading: str) -> list[tuple[str, str]]:
    """(language, text) of the blocks below a heading."""
    text = path.read_text()
    part = text[text.index(f"\n{heading}\n"):]
    part = part.split("\n## ", 2)[1]
    found = re.findall(r"^```(\w+)\n(.*?)^```$", part, re.S | re.M)
    assert found, f"{path}: no blocks below {heading}"
    return found


def put_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o700)


class Place:
    """A folder with the command, and with a Python that has the package, as after an installation. A pool gets only
    the variables that its file names, so PYTHONPATH would not reach it."""

    def __init__(self, folder: Path, server: Server, command: str):
        self.folder = folder
        python = f'PYTHONPATH={SRC} HOLDFAST_LUA={LUA} PYTHONDONTWRITEBYTECODE=1 exec {sys.executable} "$@"\n'
        put_program(folder / "venv" / "bin" / "python", python)
        put_program(folder / "bin" / "python3", python)
        put_program(folder / "bin" / "holdfast", f'exec {command} "$@"\n')
        self.env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "REDIS_URL": server.url, "HOME": str(folder)}
        self.started: list[subprocess.Popen[str]] = []

    def run(self, script: str) -> str:
        """What a block prints. It ends all that it has started."""
        done = subprocess.run(["bash", "-euc", script], cwd=self.folder, env=self.env, text=True, timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{done.stdout}\n{self.logs()}"
        return done.stdout

    def start(self, script: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(["bash", "-euc", "exec " + script], cwd=self.folder, env=self.env, text=True)
        self.started.append(child)
        return child

    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.wait()


@pytest.fixture
def place(tmp_path: Path, own_server: Server, holdfast: str) -> Iterator[Place]:
    place = Place(tmp_path, own_server, holdfast)
    yield place
    place.end()
    print(place.logs())  # pytest shows it where a test has failed


def until(what: str, condition: Callable[[], object]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, f"not within 300 s: {what}"
        time.sleep(0.05)


def test_the_readme(place: Place) -> None:
    (_, jobs), (_, session) = blocks(ROOT / "README.md", "## Use it from Python")
    (place.folder / "jobs.py").write_text(jobs)
    _, installed = session.split("*.whl\n")
    assert place.run(installed) == "hello, Ada\n"


def test_the_program_of_the_protocol(place: Place) -> None:
    (_, code), (_, session), (_, shown) = blocks(ROOT / "docs" / "pipe.md", "## A whole program")
    (place.folder / "examples").mkdir()
    (place.folder / "examples" / "pipe.py").write_text(code)
    assert place.run(session) == shown


# ---- the application ----


class Web:
    """A client of the pages."""

    def __init__(self, url: str):
        self.url = url

    def get(self, path: str) -> tuple[int, str]:
        return self._open(urllib.request.Request(self.url + path))

    def post(self, form: dict[str, str] | bytes, path: str = "/reports") -> tuple[int, str]:
        """Follows to the page of the report."""
        body = form if isinstance(form, bytes) else urllib.parse.urlencode(form).encode()
        return self._open(urllib.request.Request(self.url + path, body))

    def _open(self, request: urllib.request.Request) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                self.landed = answer.url
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def token(self) -> str:
        found = re.search(r'name="token" value="([^"]+)"', self.get("/")[1])
        assert found is not None
        return found[1]

    def report(self, form: dict[str, str]) -> str:
        """The page with what came of it."""
        assert self.post(form)[0] == 200
        page = self.landed.removeprefix(self.url)
        until("the report ends", lambda: "http-equiv" not in self.get(page)[1])
        return self.get(page)[1]


def copy_app(place: Place) -> list[tuple[str, str]]:
    """Returns the blocks of its page."""
    for path in APP.iterdir():
        shutil.copy(path, place.folder)
    return blocks(APP / "README.md", "## Start it")


@pytest.fixture
def app(place: Place) -> Web:
    """The worker and the pages, each started by its line of the page."""
    (_, start), *_ = copy_app(place)
    place.env |= {"PORT": "0", "REPORTS_DB": str(place.folder / "reports.db")}
    for line in start.splitlines()[1:]:
        place.start(line.split(" & ")[0])
    log = place.folder / "web.log"
    until("the pages are there", lambda: log.exists() and log.read_text().startswith("http:"))
    return Web(log.read_text().splitlines()[0].rstrip("/"))


TABLE = "who,paid\nada,12.50\nbob,7.50\n<i>,1"


def test_a_form_becomes_a_report(app: Web) -> None:
    page = app.report({"title": "Orders & more", "table": TABLE, "token": app.token()})
    assert "Orders &amp; more: 3 rows" in page
    assert "<th>paid</th><td>empty 0, sum 21.00, least 1, most 12.50, mean 7.00</td>" in page
    assert "Orders &amp; more</a>, 3 rows" in app.get("/")[1]


def test_a_form_that_is_sent_twice_makes_one_report(app: Web, place: Place) -> None:
    form = {"title": "Orders", "table": TABLE, "token": app.token()}
    app.report(form)
    first = app.landed
    app.report(form)
    assert app.landed == first
    app.report(form | {"table": TABLE + "\neve,2"})  # the reader went back and wrote more
    assert app.landed != first
    assert '"done":2,' in place.run("holdfast queue show reports --json")


def test_mistakes_are_shown(app: Web) -> None:
    token = app.token()
    status, page = app.post({"title": "", "table": "a,b\n<1>,2", "token": token})
    assert status == 422 and "Title: expected 1 to 100 characters, found 0." in page
    assert "a,b\n&lt;1&gt;,2</textarea>" in page and token in page  # nothing that was typed is lost
    assert app.post({"title": "t", "table": "x" * (128 << 10) + "y", "token": token})[0] == 422
    assert app.post({"title": "t", "table": "a", "token": "mine"})[0] == 422
    assert app.post(b"title=%FF")[0] == 400
    assert app.get("/reports/no-such")[0] == app.get("/reports/%20")[0] == app.get("/other")[0] == 404
    page = app.report({"title": "t", "table": "a,b\n1,2\n3", "token": token})
    assert "The report failed: line 3: expected 2 cells, found 1<" in page
    assert "expected rows below the head" in app.report({"title": "t", "table": "a", "token": token})


def test_the_schedule_removes_old_reports(app: Web, place: Place) -> None:
    app.report({"title": "New", "table": TABLE, "token": app.token()})
    with sqlite3.connect(place.folder / "reports.db") as db:
        db.execute("INSERT INTO reports VALUES ('old', 'Old', 1, 0)")
    assert "Old" in app.get("/")[1]
    assert "reports.tidy" in place.run("holdfast cron list")
    place.run("holdfast cron run reports.tidy -q reports")
    until("the old one is gone", lambda: "Old" not in app.get("/")[1])
    assert "New" in app.get("/")[1]


def test_its_page_shows_what_happens(place: Place) -> None:
    (_, start), (_, session), (_, shown), (_, stop) = copy_app(place)
    place.env["PORT"] = "0"
    printed = place.run(start + session + "until [ -s web.log ]; do sleep 0.05; done\n" + stop)
    assert re.sub(r"^P[-\w]{13}$", "ID", printed, flags=re.M) == re.sub(r"^P[-\w]{13}$", "ID", shown, flags=re.M)


def test_it_ends_cleanly_and_says_when_redis_is_away(app: Web, place: Place, own_server: Server) -> None:
    worker, web = place.started
    form = {"title": "Kept", "table": TABLE, "token": app.token()}
    app.report(form)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(300) == 0
    own_server.stop()
    status, page = app.post(form | {"title": "Later"})
    assert status == 503 and "will not run twice" in page and 'value="Later"' in page
    web.send_signal(signal.SIGTERM)
    assert web.wait(300) == 0
    own_server.start()
