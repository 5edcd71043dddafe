"""A collector of spans: an HTTP server in this process that takes OTLP as JSON, and can be told to fail."""
import gzip
import http.server
import json
import threading
import time

from support import require


class Collector:
    """`status` and `headers` are what it answers, after `delay` seconds; `body` of a good answer, in chunks and without
    end if it is `endless`. It may keep no request."""

    def __init__(self, port=0, keep=True):
        self.status, self.headers, self.delay, self.body, self.endless = 200, {}, 0, b"{}", False
        self.requests, self.lock = [], threading.Lock()  # (time, headers, decoded body), also of refused ones
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.status
                if keep:
                    if self.headers.get("Content-Encoding") == "gzip":
                        body = gzip.decompress(body)
                    with collector.lock:
                        collector.requests.append((time.monotonic(), self.path, dict(self.headers), status, body))
                time.sleep(collector.delay)
                try:
                    self.send_response(status)
                    for name, value in collector.headers.items():
                        self.send_header(name, value)
                    if collector.endless:
                        self.send_header("Transfer-Encoding", "chunked")
                        self.end_headers()
                        self.close_connection = True
                        while True:
                            self.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                    self.send_header("Content-Length", str(len(collector.body)))
                    self.end_headers()
                    self.wfile.write(collector.body)
                except OSError:
                    pass  # the sender waited no longer

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # the sender has ended
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def bodies(self):
        """Of the requests that it took."""
        with self.lock:
            return [body for _, _, _, status, body in self.requests if status == 200]

    def spans(self):
        return [span for body in self.bodies() for span in spans_of(json.loads(body))]

    def named(self, name, job=None):
        return [s for s in self.spans() if s["name"] == name and job in (None, s["attributes"].get("messaging.message.id"))]


def spans_of(request):
    """With their attributes as a dict, and their times as numbers."""
    for resource in request["resourceSpans"]:
        about = attributes(resource["resource"]["attributes"])
        require(about["service.name"] and about["service.version"] and about["process.pid"], f"the resource: {about}")
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
                require(start <= end, f"a span ends before it begins: {span}")
                yield {**span, "attributes": attributes(span["attributes"]), "start": start, "end": end}


def attributes(listed):
    values = {}
    for item in listed:
        require(item["key"] not in values, f"{item['key']} is there twice")
        kind, value = next(iter(item["value"].items()))
        values[item["key"]] = int(value) if kind == "intValue" else value
    return values
