"""Workers with C handlers (tests/helpers/hf-c-worker.c) for the scripts about limits: what they
ran, read from the lines of the handlers themselves, and Redis's count of commands."""
import collections

from support import eventually, helper, read_runs, require


class CWorker:
    """One hf-c-worker. `words`: strict, queues with weights; `log`: what its handlers write."""

    def __init__(self, fixture, server, concurrency, words=(), lease_ms=10000, log=None):
        self.log = log or fixture.path("c.log")
        fixture.c_workers = getattr(fixture, "c_workers", 0) + 1
        self.err = fixture.path(f"c-worker-{fixture.c_workers}.err")
        with open(self.err, "wb") as err:
            self.child = fixture.start([helper("hf-c-worker"), server.url, self.log,
                                        str(concurrency), str(lease_ms), *words], stderr=err)
        self.pid = self.child.pid

    def ready(self):
        require(self.child.poll() is None, f"a worker ended at once: {self.said()}")
        return 'msg="serving"' in self.said()

    def said(self):
        with open(self.err, errors="replace") as file:
            return file.read()

    def signal(self, number):
        self.child.send_signal(number)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self):
        self.child.terminate()
        require(self.child.wait(30) == 0, "a worker did not end with 0")


def crew(fixture, server, n, concurrency, words=(), lease_ms=10000, log=None):
    workers = [CWorker(fixture, server, concurrency, words, lease_ms, log) for _ in range(n)]
    for worker in workers:
        eventually(10, "a worker serves", worker.ready)
    return workers


def stop_all(workers):
    for worker in workers:
        worker.stop()


class Runs:
    """The runs that a log of handlers reports, in the order of their starts."""

    def __init__(self, log):
        self.log = log

    def all(self):
        runs = read_runs(self.log)
        return sorted((run for job in runs.values() for run in job), key=lambda run: run.start)

    def count(self):
        return len(self.all())

    def after(self, n):
        """The run that started after n others, or None."""
        runs = self.all()
        return runs[n] if len(runs) > n else None


# The commands of clients; the rest of Redis's statistics are the calls inside scripts.
SENT = ("eval", "evalsha", "bzpopmin", "client", "script", "sadd", "ping", "hello", "auth")


def requests(server):
    """How many requests of workers Redis has served so far, by kind."""
    kinds = collections.Counter()
    for line in server.call("INFO", "commandstats").splitlines():
        name, _, rest = line.partition(":calls=")
        kind = name.removeprefix("cmdstat_").partition("|")[0]
        if rest and kind in SENT:
            kinds[kind] += int(rest.partition(",")[0])
    return kinds


def put(fixture, server, queue, ids, payload, **more):
    jobs = [{"type": "t", "id": job, "queue": queue, "payload": payload, **more} for job in ids]
    for i in range(0, len(jobs), 10000):
        fixture.bulk(server, jobs[i:i + 10000])
