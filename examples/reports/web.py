"""The web pages of the application: a form that enqueues a job, and a page with what came of it.

    python3 web.py          http://127.0.0.1:8080/; PORT names another port

It needs nothing but the standard library and holdfast_queue. It has no log-in: whoever reaches the port may use it."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import signal
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs

from holdfast_queue import HoldfastError, JobCancelled, JobDead, JobError, JobRef, NoAnswer
from jobs import database, hf, make_report

BODY_MAX = 1 << 20
TABLE_MAX = 128 << 10
TITLE_MAX = 100
TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}
<style>body {{ max-width: 45em; margin: 2em auto; font-family: sans-serif }} textarea, input {{ width: 100% }}
td, th {{ padding: .2em .8em; text-align: left }} .error {{ color: #a00 }}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""
FORM = """<form method="post" action="/reports">
<p><label>Title <input name="title" maxlength="100" required value="{title}"></label></p>
<p><label>Table, as CSV with a head <textarea name="table" rows="10" required>{table}</textarea></label></p>
<input type="hidden" name="token" value="{token}">
<p><button>Make the report</button></p></form>
"""


class Wrong(Exception):
    """A request that is answered with a page about what is wrong with it."""

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


def check(form: dict[str, str]) -> None:
    """What can be said at once; make_report reads the table."""
    title, table = form.get("title", "").strip(), form.get("table", "")
    if not 1 <= len(title) <= TITLE_MAX:
        raise Wrong(422, f"Title: expected 1 to {TITLE_MAX} characters, found {len(title)}.")
    if not table.strip():
        raise Wrong(422, "Table: expected lines of text, found none.")
    if len(table.encode()) > TABLE_MAX:
        raise Wrong(422, f"Table: expected at most {TABLE_MAX} bytes, found {len(table.encode())}.")
    if not TOKEN.fullmatch(form.get("token", "")):
        raise Wrong(422, "This form is not one of this page. Please send it again.")


def enqueue(form: dict[str, str]) -> JobRef:
    """Who sends the same form twice gets the same job: its token and its content are the unique key."""
    check(form)
    title, table = form["title"].strip(), form["table"].replace("\r\n", "\n")
    digest = hashlib.sha256(f"{title}\n{table}".encode()).hexdigest()
    try:
        return make_report.using(unique=f"{form['token']}:{digest}", unique_for="1h").enqueue(title=title, table=table)
    except NoAnswer:
        raise Wrong(503, "The queue does not answer. Please send the form again: it will not run twice.") from None
    except HoldfastError as error:
        print(f"web.py: {error}", file=sys.stderr)
        raise Wrong(503, "The queue does not accept reports now. Please try again later.") from None


def report_page(ref: JobRef) -> tuple[str, bool]:
    """What is known of a job, and whether that may still change."""
    state = ref.state()
    if state in ("waiting", "running", "parked"):
        return f"<p>The report is not ready: it is {state}.</p>", True
    try:
        report = ref.result(timeout=5)
    except JobDead as error:  # the lines behind the first one are a traceback, for the log
        return f'<p class="error">The report failed: {escape(error.text.splitlines()[0])}</p>', False
    except JobCancelled:
        return '<p class="error">The report was cancelled.</p>', False
    except TimeoutError:  # retried in this moment
        return "<p>The report is not ready.</p>", True
    except JobError:
        raise Wrong(404, "There is no such report, or it is kept no longer.") from None
    return report_table(report), False


def report_table(report: Any) -> str:
    if not isinstance(report, dict) or "columns" not in report:
        raise Wrong(404, "This job made no report.")
    lines = []
    for column in report["columns"]:
        told = ", ".join(f"{name} {value}" for name, value in column.items() if name != "name")
        lines.append(f"<tr><th>{escape(column['name'])}</th><td>{escape(told)}</td></tr>")
    return (f"<p>{escape(report['title'])}: {report['rows']} rows</p>\n<table>\n" + "\n".join(lines) + "\n</table>")


def latest() -> str:
    with closing(database()) as db:
        rows = db.execute("SELECT id, title, rows, made FROM reports ORDER BY made DESC LIMIT 10").fetchall()
    lines = [f'<li><a href="/reports/{escape(id)}">{escape(title)}</a>, {count} rows, '
             f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime(made))} UTC</li>" for id, title, count, made in rows]
    return "<h2>Latest reports</h2>\n<ul>\n" + "\n".join(lines) + "\n</ul>" if lines else ""


class Pages(BaseHTTPRequestHandler):
    timeout = 10  # of a client that sends or reads nothing

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, answer: Any) -> None:
        try:
            answer()
        except Wrong as wrong:
            self._send(wrong.status, "Reports", f'<p class="error">{escape(str(wrong))}</p>')
        except HoldfastError as error:
            print(f"web.py: {error}", file=sys.stderr)
            self._send(503, "Reports", '<p class="error">The queue does not answer. Please try again later.</p>')
        except sqlite3.Error as error:
            print(f"web.py: {error}", file=sys.stderr)
            self._send(503, "Reports", '<p class="error">The list of reports cannot be read now.</p>')
        except ConnectionError:
            pass  # the client has gone

    def _get(self) -> None:
        if self.path == "/":
            self._send(200, "Reports", FORM.format(title="", table="", token=secrets.token_urlsafe(16)) + latest())
        elif self.path.startswith("/reports/"):
            try:
                ref = hf.ref(self.path.removeprefix("/reports/"))
            except ValueError:
                raise Wrong(404, "There is no such report.") from None
            body, changes = report_page(ref)
            again = '<meta http-equiv="refresh" content="1">' if changes else ""
            self._send(200, "Report", body + '\n<p><a href="/">Another report</a></p>', head=again)
        else:
            raise Wrong(404, "There is no such page.")

    def _post(self) -> None:
        if self.path != "/reports":
            raise Wrong(404, "There is no such page.")
        form = self._read_form()
        try:
            ref = enqueue(form)
        except Wrong as wrong:  # nothing that was typed is lost
            shown = {name: escape(form.get(name, "")) for name in ("title", "table", "token")}
            if not TOKEN.fullmatch(shown["token"]):
                shown["token"] = secrets.token_urlsafe(16)
            self._send(wrong.status, "Reports", f'<p class="error">{escape(str(wrong))}</p>\n' + FORM.format(**shown))
            return
        self.send_response(303)
        self.send_header("Location", f"/reports/{ref.id}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _read_form(self) -> dict[str, str]:
        kind = self.headers.get_content_type()
        if kind != "application/x-www-form-urlencoded":
            raise Wrong(415, f"Expected a form, found {kind}.")
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,9}", length):
            raise Wrong(411, "Expected the length of the form in Content-Length.")
        if int(length) > BODY_MAX:
            raise Wrong(413, f"Expected a form of at most {BODY_MAX} bytes, found {length}.")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Wrong(400, "Expected a whole form, found a part of it.")
        try:
            fields = parse_qs(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=10)
        except ValueError:
            raise Wrong(400, "Expected the fields of this form in UTF-8.") from None
        return {name: values[-1] for name, values in fields.items()}

    def _send(self, status: int, title: str, body: str, head: str = "") -> None:
        page = PAGE.format(title=title, head=head, body=body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy",
                         "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
        self.end_headers()
        self.wfile.write(page)


class Server(ThreadingMixIn, HTTPServer):
    """A fixed number of threads, so there is a bound on the connections to Redis, one for each."""

    request_queue_size = 64

    def __init__(self, port: int):
        super().__init__(("127.0.0.1", port), Pages)
        self._threads_of_ours = ThreadPoolExecutor(8)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._threads_of_ours.submit(self.process_request_thread, request, client_address)

    def server_close(self) -> None:
        super().server_close()
        self._threads_of_ours.shutdown()  # requests that have begun are answered


def main() -> None:
    port = os.environ.get("PORT", "8080")
    if not port.isdecimal() or int(port) > 65535:
        sys.exit(f"web.py: expected a port in PORT, found {port!r}")
    try:
        server = Server(int(port))
    except OSError as error:
        sys.exit(f"web.py: cannot listen on port {port}: {error.strerror}")

    def stop(number: int, frame: Any) -> None:
        threading.Thread(target=server.shutdown).start()  # it waits for the loop, which this thread turns

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever(poll_interval=0.1)
    server.server_close()
    hf.close()


if __name__ == "__main__":
    main()
