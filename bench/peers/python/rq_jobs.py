"""rq_jobs.py - RQ as one of the queues that ../README.md describes: rq_jobs.py JOBS enqueues, `rq worker` works."""
import sys

from peer import SOCKET, TEXT, fill
from redis import Redis
from rq import Queue


def nothing(text):
    pass


if __name__ == "__main__":
    queue = Queue(connection=Redis(unix_socket_path=SOCKET))
    fill(int(sys.argv[1]), lambda: queue.enqueue("rq_jobs.nothing", TEXT, result_ttl=0))
