"""What the questions about handlers in other languages share. Each queue works off a backlog, in turns, on a server of
its own; what is done is seen in Redis."""
import os
import sys
import time

from measure import median, number
from support import cpu_seconds, descendants, eventually, require

sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))

ROUNDS, WARM_UP, DRAIN_S = 3, 0.1, 60


class Sample:
    """How many jobs are left, and the processor time of a worker and of its handlers so far."""

    def __init__(self, queue, server, pid):
        self.at, self.left = time.monotonic(), queue.left(server)
        handlers = queue.handlers(pid)
        rest = {pid, *(found.pid for found in descendants(pid))} - set(handlers)
        self.worker_s, self.handlers_s = (sum(map(cpu_seconds, pids)) for pids in (rest, handlers))


def drain(m, queue):
    """{enqueue_per_s, per_s, worker_us, handlers_us}: rates, and processor time for a job."""
    jobs = m.pick(queue.jobs, max(200, queue.jobs // 50))
    server = m.server()
    filled = queue.run(m, server, queue.fill, jobs)
    found = queue.left(server)
    require(found == jobs, f"{queue.name}: {found} of {jobs} jobs are there")
    child, said = queue.start(m, server)

    def down_to(most):
        def reached():
            require(child.poll() is None, f"{queue.name}: the worker has ended: {said()[-500:]}")
            return queue.left(server) <= most
        eventually(DRAIN_S, f"{queue.name}: only {most:,.0f} jobs are left", reached, every=0.003)
        return Sample(queue, server, child.pid)
    began, ended = down_to(jobs * (1 - WARM_UP)), down_to(0)
    done = began.left - ended.left
    require(done > 0, f"{queue.name}: all jobs were done between two looks")
    for process in [*descendants(child.pid), child]:
        os.kill(process.pid, 9)
    child.wait()
    server.kill()
    return {"enqueue_per_s": filled and filled["per_s"], "per_s": done / (ended.at - began.at),
            "worker_us": (ended.worker_s - began.worker_s) / done * 1e6,
            "handlers_us": (ended.handlers_s - began.handlers_s) / done * 1e6}


def drains(m, queues):
    """queue -> the medians of rounds in turns, of those that are here."""
    here = [queue for queue in queues if not queue.missing]
    rounds = [{queue: drain(m, queue) for queue in here}
              for _ in range(m.pick(ROUNDS, 1))]
    return {queue: {name: value and median(found[queue][name] for found in rounds)
                    for name, value in rounds[0][queue].items()} for queue in here}


def versions(m, ours, others, more):
    require(not ours.missing, f"{ours.name}: {ours.missing}")
    m.settings.update(more)
    for queue in others:
        m.settings[queue.name.partition(",")[0]] = queue.version


def rows(m, what, ours, others, value, bars=False, why=""):
    """One row for each other queue; value(queue) is what is compared."""
    for queue in others:
        bar = queue.times if bars else None
        if queue.missing:
            m.row(f"{what}: {queue.name}", value(ours), queue.missing, bar=bar and f">= {number(bar)}" or "")
        else:
            m.row(f"{what}: {queue.name}", value(ours), value(queue), at_least=bar, why=why)


def processor_rows(m, what, found, worker_us=None, handlers_us=None, why=""):
    m.row(f"processor time of the worker for a job, µs: {what}", found["worker_us"], at_most=worker_us, why=why)
    m.row(f"processor time of the handler's process for a job, µs: {what}", found["handlers_us"],
          at_most=handlers_us, why=why)


def processor_rows_beside(m, found, ours, others):
    rows(m, "processor time of all processes for a job, µs", ours, others,
         lambda queue: found[queue]["worker_us"] + found[queue]["handlers_us"])


def shared_notes(m):
    m.note("""Jobs of 100 bytes wait in Redis, then a worker starts and works them off; its handler does nothing. The
        first tenth is not counted. Redis shows how many are left. Medians of 3 rounds in turns, each with a server of
        its own. No queue writes a log line for a job.""")
    m.note("""Processor time is that of the kernel's count of each process, without Redis. Where one column shows the
        sum of all processes, that of Holdfast has the worker, which is in C, and the handlers.""")
    m.note("""Beside the client of Redis alone: in the same process, in turns, a loop sends the same script with
        arguments of the same size over one connection. Medians of 7.""")


def enqueue_rows(m, found, ours, others, client):
    """Its client beside the client of Redis that it uses, alone, then beside other queues."""
    server = m.server()
    rates = ours.run(m, server, ours.words("enqueue"), m.pick(4000, 100))
    server.kill()
    ways = {"one": "one by one", "together": "by 100 calls at a time", "many": "100 in a call"}
    for way, words in ways.items():
        if way in rates:
            m.row(f"enqueued {words}, jobs/s: {client} alone", rates[way], rates["bare_" + way],
                  at_least=80000 if way == "many" else 0.8 if way == "one" else None,
                  on="ours" if way == "many" else "ratio",
                  why="For each job the client makes an id, a record and a reference; the bare loop makes none.")
    rows(m, "enqueued one by one, jobs/s", ours, others,
         lambda queue: rates["one"] if queue is ours else found[queue]["enqueue_per_s"])
