"""The dashboard for acceptance scripts: starts it, and asks it over a socket of its own."""
import http.client
import json
import os
import socket
import subprocess

from support import HOLDFAST, eventually, free_port, require

CHANGE = {"Holdfast-Change": "1", "Content-Type": "application/json"}
READ, WRITE = "read-" + "r" * 40, "change-" + "c" * 40


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Dashboard:
    def __init__(self, fixture, server, *options, command="dashboard", tokens=False, env=None):
        self.port = free_port()
        words = [HOLDFAST, command, "--listen", f"127.0.0.1:{self.port}", "--redis", server.url, *options]
        if tokens:
            path = fixture.write("tokens", f"# for tests\nread {READ}\nchange {WRITE} ada\n")
            os.chmod(path, 0o600)
            words += ["--token-file", path]
        self.log = fixture.path(f"dashboard-{self.port}.log")
        with open(self.log, "wb") as log:
            self.child = fixture.start(words, stdout=log, stderr=subprocess.STDOUT,
                                       env={**os.environ, **(env or {})})
        eventually(60, "the dashboard listens", lambda: "listening" in self.said())

    def said(self):
        require(self.child.poll() is None, "the dashboard has ended")
        with open(self.log, errors="replace") as file:
            return file.read()

    def ask(self, method, path, body=None, headers=None, token=None, seconds=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = "Bearer " + token
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, status=200, **options):
        answer = self.ask("GET", path, **options)
        require(answer.status == status, f"GET {path}: {answer.status}, not {status}: {answer.body[:300]}")
        return answer

    def api(self, path, status=200, **options):
        return self.get("/api/v1/" + path, status, **options).json()

    def change(self, path, body=None, status=200, headers=None, token=None):
        answer = self.ask("POST", "/api/v1/" + path, json.dumps(body or {}), CHANGE if headers is None else headers,
                          token)
        require(answer.status == status, f"POST {path}: {answer.status}, not {status}: {answer.body[:300]}")
        return answer.json()

    def connect(self, seconds=10):
        return socket.create_connection(("127.0.0.1", self.port), seconds)

    def raw(self, data, seconds=10):
        """What the dashboard answers to these bytes until it closes or is silent."""
        answer = b""
        with self.connect(seconds) as s:
            s.sendall(data)
            try:
                while piece := s.recv(65536):
                    answer += piece
            except (TimeoutError, ConnectionResetError):
                pass
        return answer

    def events(self, topics, seconds=60):
        """Yields (event, data) of a stream."""
        with self.connect(seconds) as s:
            s.sendall(f"GET /api/v1/events?topics={topics} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            file, event = s.makefile("rb"), None
            for line in file:
                if line.startswith(b"event: "):
                    event = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    yield event, json.loads(line[6:])

    def memory(self):
        """Resident KiB."""
        with open(f"/proc/{self.child.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
