# A program of handlers without a library: it speaks the protocol of docs/pipe.md.
import json, os, signal, socket, sys, time, traceback

if "1" not in os.environ.pop("HOLDFAST_PIPE", "").split():
    sys.exit(print("expected version 1 in HOLDFAST_PIPE", file=sys.stderr) or 78)
sock = socket.socket(fileno=int(os.environ.pop("HOLDFAST_FD")))
sock.set_inheritable(False)  # closed on exec
for name in (signal.SIGTERM, signal.SIGINT): signal.signal(name, lambda *_: None)  # only: read the socket
frames = sock.makefile("rb")

def send(frame, body=None):
    frame = frame if body is None else frame | {"n": len(body)}
    sock.sendall(json.dumps(frame).encode() + b"\n" + (body or b""))

class Dead(Exception): pass
def fail(kind, payload):
    raise kind(payload.decode(errors="replace"))

handlers = {"echo": lambda payload: payload,
            "fail": lambda payload: fail(RuntimeError, payload),
            "dead": lambda payload: fail(Dead, payload),
            "sleep": lambda payload: time.sleep(int(payload) / 1000),
            "print": lambda payload: print(payload.decode()),
            "exit": lambda payload: os._exit(int(payload))}
send({"t": "ready", "v": 1, "client": "pipe.py", "types": [{"type": name} for name in handlers]})
for line in frames:
    frame = json.loads(line)
    payload, checkpoint = frames.read(frame.get("n", 0)), frames.read(frame.get("c", 0))
    if frame["t"] == "stop": break
    if frame["t"] == "ping": send({"t": "pong"})
    if frame["t"] != "job": continue
    answer = {"t": "done", "run": frame["run"]}
    try:
        body = handlers.get(frame["type"])(payload)
        if body and len(body) > 65536: raise Dead("result: expected at most 65536 bytes")
    except Exception as error:
        answer |= {"t": "dead" if isinstance(error, Dead) else "retry", "error": str(error)[:1000]}
        body = traceback.format_exc().encode()[-16384:]
    sys.stdout.flush()  # before the verdict
    send(answer, body)
