"""dramatiq_jobs.py - dramatiq as one of the queues that ../README.md describes: dramatiq_jobs.py JOBS enqueues,
`dramatiq dramatiq_jobs` works."""
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from peer import SOCKET, TEXT, fill

dramatiq.set_broker(RedisBroker(url="unix://" + SOCKET))


@dramatiq.actor
def nothing(text):
    pass


if __name__ == "__main__":
    fill(int(sys.argv[1]), lambda: nothing.send(TEXT))
