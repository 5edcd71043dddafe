"""peer.py - what the programs of this folder share: the address of Redis, the text of a job, and `fill`."""
import json
import os
import time

SOCKET = os.environ["PEER_SOCKET"]
TEXT = "x" * 89  # {"text":"..."} has 100 bytes
WARM_UP = 0.1


def say(**found):
    print(json.dumps(found), flush=True)


def fill(jobs, enqueue):
    """Enqueues this many jobs one by one, and says how fast; the first tenth is not counted."""
    warm_up = int(jobs * WARM_UP)
    for _ in range(warm_up):
        enqueue()
    since = time.perf_counter()
    for _ in range(jobs - warm_up):
        enqueue()
    say(per_s=(jobs - warm_up) / (time.perf_counter() - since))
