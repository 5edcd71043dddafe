"""celery_jobs.py - Celery as one of the queues that ../README.md describes: celery_jobs.py JOBS enqueues,
`celery -A celery_jobs worker` works."""
import sys

from celery import Celery
from peer import SOCKET, TEXT, fill

app = Celery("celery_jobs", broker="redis+socket://" + SOCKET)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="nothing")
def nothing(text):
    pass


if __name__ == "__main__":
    fill(int(sys.argv[1]), lambda: nothing.delay(TEXT))
