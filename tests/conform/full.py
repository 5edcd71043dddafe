"""A program that has all the types of the contract and runs two jobs at a time: for the test of
`holdfast conform` itself (tests/unit/conform.py). Handlers have threads; the main thread reads."""
import json
import os
import signal
import socket
import sys
import threading
import time

if "1" not in os.environ.pop("HOLDFAST_PIPE").split():
    sys.exit(print("no version", file=sys.stderr) or 78)
sock = socket.socket(fileno=int(os.environ.pop("HOLDFAST_FD")))
sock.set_inheritable(False)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: None)
lock, cancelled, threads = threading.Lock(), {}, []


class Dead(Exception):
    pass


def send(frame, body=None):
    if body is not None:
        frame["n"] = len(body)
    with lock:
        sock.sendall(json.dumps(frame).encode() + b"\n" + (body or b""))


def text(payload):
    return payload.decode(errors="replace")


def fail(kind, payload):
    raise kind(text(payload))


def sleep(job, payload, _):
    cancelled[job["run"]].wait(int(payload) / 1000)


def fork(*_):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def progress(job, payload, _):
    send({"t": "progress", "run": job["run"], "percent": 50, "note": text(payload)[:200]})


def log(job, payload, _):
    for at in range(0, len(payload), 16384):
        send({"t": "log", "run": job["run"]}, payload[at:at + 16384])


def keep(job, payload, checkpoint):
    if len(payload) > 4096:
        raise Dead("checkpoint: expected at most 4096 bytes")
    send({"t": "checkpoint", "run": job["run"]}, payload)
    return checkpoint


handlers = {"echo": lambda job, payload, _: payload,
            "fail": lambda job, payload, _: fail(RuntimeError, payload),
            "dead": lambda job, payload, _: fail(Dead, payload),
            "print": lambda job, payload, _: print(text(payload)),
            "exit": lambda job, payload, _: os._exit(int(payload)),
            "headers": lambda job, *_: job["headers"],
            "sleep": sleep, "fork": fork, "progress": progress, "log": log, "checkpoint": keep}


def run(job, payload, checkpoint):
    answer, body = {"t": "done", "run": job["run"]}, None
    try:
        body = handlers[job["type"]](job, payload, checkpoint)
        if isinstance(body, dict):
            body, answer["json"] = json.dumps(body).encode(), True
        if body and len(body) > 65536:
            raise Dead("result: expected at most 65536 bytes")
        if cancelled[job["run"]].is_set():
            answer["t"], body = "cancel", None
    except Exception as error:
        answer |= {"t": "dead" if isinstance(error, Dead) else "retry", "error": str(error)[:1000]}
        body = None
    sys.stdout.flush()
    send(answer, body)


def main():
    frames = sock.makefile("rb")
    send({"t": "ready", "v": 1, "parallel": 2, "types": [{"type": name} for name in handlers]})
    for line in frames:
        frame = json.loads(line)
        payload, checkpoint = frames.read(frame.get("n", 0)), frames.read(frame.get("c", 0))
        if frame["t"] == "job":
            cancelled[frame["run"]] = threading.Event()
            threads.append(threading.Thread(target=run, args=(frame, payload, checkpoint), daemon=True))
            threads[-1].start()
        elif frame["t"] == "cancel" and frame["run"] in cancelled:
            cancelled[frame["run"]].set()
        elif frame["t"] == "ping":
            send({"t": "pong"})
        elif frame["t"] == "stop":
            break
    else:
        os._exit(1)
    for thread in threads:
        thread.join()


main()
