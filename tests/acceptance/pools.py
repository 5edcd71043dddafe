"""Shared by the scripts about pools: their programs, in Python and in C, whose handlers write down what they do, and
the processes of a worker. The lines are those of tests/helpers/hf-handler.c, so support.read_runs() reads them."""
import os

from support import BUILD, SOURCE, descendants, helper

PYTHON = os.path.join(SOURCE, "build-venv", "bin", "python")
NO_PYTHON = "skipped: there is no build-venv. ./dev test makes it"
BEAT_MS = 25
RECORDER = f"""
import asyncio, os, time
from holdfast_queue import Holdfast, Job

LOG = os.open(os.environ["RUNS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
BEAT = {BEAT_MS / 1000}
hf = Holdfast()


def note(kind, job):
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.write(LOG, f"{{kind}} {{os.getpid()}} {{job.id}} {{job.attempt}} {{job.fence}} {{now}}\\n".encode())


def steps(job):
    # One each BEAT until the ms of the payload are over.
    ms = int(job.payload)
    note("start", job)
    until = time.monotonic() + ms / 1000
    while (left := until - time.monotonic()) > 0:
        yield min(left, BEAT)
        note("beat", job)
    note("end", job)


def wait(job: Job):
    for seconds in steps(job):
        time.sleep(seconds)


async def await_(job: Job):
    for seconds in steps(job):
        await asyncio.sleep(seconds)


def crash(job: Job):
    note("start", job)
    time.sleep(0.05)
    note("beat", job)
    os.kill(os.getpid(), 11)
"""
MAIN = """
if __name__ == "__main__":
    hf.run()
"""


def has_python():
    return os.path.exists(os.path.join(SOURCE, "build-venv", "requirements"))


def environment(runs):
    """Of this script, and so of the workers and programs that it starts."""
    os.environ.update(RUNS=runs, PYTHONPATH=os.path.join(SOURCE, "clients", "python", "src"),
                      PYTHONDONTWRITEBYTECODE="1", HOLDFAST_LUA=os.path.join(BUILD, "lua"))


def python_pool(fixture, name, text, **options):
    """A handler of the file. text: jobs, between RECORDER and MAIN."""
    path = fixture.write(f"{name}.py", RECORDER + text + MAIN)
    return {"pool": [PYTHON, path], "env": "all", "grace": "1s", **options}


def c_pool(fixture, types, *words, runs=None, **options):
    """The same, of tests/helpers/hf-pool-program.c."""
    path = fixture.write(f"types-{types.replace(' ', '-')}", types)
    words = [f"types={path}", *words] + ([f"runs={runs}", f"beat={BEAT_MS}"] if runs else [])
    return {"pool": [helper("hf-pool-program"), *words], "grace": "1s", **options}


def processes_of(worker):
    """The processes of its pools that it has now."""
    return [found.pid for found in descendants(worker.pid)
            if found.parent == worker.pid and found.words[1:2] != ["minder"]]


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
