"""Queues with handlers in Python, Node and Go, and Holdfast with the same handlers. Each has a program in this folder
that enqueues jobs of 100 bytes, and one that works; README.md gives their settings.

What they need goes into the build directory, in the versions of the files of requirements, of package-lock.json and of
go.sum."""
import json
import os
import re
import shutil
import subprocess

from peers import HERE, INSTALL_S, PLACE, STEP_S, Client, node_here, output
from support import BUILD, HOLDFAST, SOURCE, descendants

PYTHON, GO = os.path.join(HERE, "python"), os.path.join(HERE, "go")
SOCKET, JOBS = "{socket}", "{jobs}"  # stand for the values in the words of a program
CORES = len(os.sched_getaffinity(0))


class Queue:
    """A queue, and its handlers in one language. `fill` and `serve`: the words of the programs that enqueue and
    work. `unfinished`: requests to Redis whose answers add up to the jobs that are not done. `jobs`: of a rate, for
    some seconds. `times`: how often as fast Holdfast is expected to be. `missing`: why it cannot be measured, or ""."""

    def __init__(self, name, version, missing, jobs, fill, serve, unfinished, times=None, env=None):
        self.name, self.version, self.missing, self.jobs, self.times = name, version, missing, jobs, times
        self.fill, self.serve, self.unfinished, self.env = fill, serve, unfinished, env or {}

    def left(self, server):
        return sum(server.call(*words) for words in self.unfinished)

    def run(self, m, server, words, jobs):
        """A program until it ends: the object in its last line, or None."""
        lines = self._client(m, server, words, jobs).rest(STEP_S)
        return json.loads(lines[-1]) if lines else None

    def start(self, m, server):
        """Its worker. Gives the process, and what tells why it does not work."""
        client = self._client(m, server, self.serve)
        return client.child, client.said

    def _client(self, m, server, words, jobs=0):
        words = [word.format(socket=server.socket, jobs=jobs) for word in words]
        env = {**os.environ, **self.env, "PEER_SOCKET": server.socket}
        return Client(m, words, env, f"{self.name}: {os.path.basename(words[0])}", cwd=PYTHON)

    def handlers(self, pid):
        """The processes that are not its worker. Of others they are counted together."""
        return []


class Pool(Queue):
    """Holdfast, by a worker with a pool of this many processes. words(verb) are those of its program."""

    def __init__(self, name, missing, jobs, words, processes, env, verb="serve"):
        super().__init__(name, output(HOLDFAST, "version").split()[1], missing, jobs, words("fill"), words(verb),
                         [("HLEN", "hf:{default}:jobs")], env=env)
        self.words, self.processes, self.sections = words, processes, {}

    def start(self, m, server):
        os.environ.update(self.env, PEER_SOCKET=server.socket)
        words = [word.format(socket=server.socket, jobs=0) for word in self.serve]
        worker = m.worker(server, [{"pool": words, "processes": self.processes, "env": "all"}],
                          log={"level": "warn"}, **self.sections)
        return worker.child, worker.log

    def handlers(self, pid):
        return [found.pid for found in descendants(pid) if found.words[1:2] != ["minder"]]


def ours_env(**more):
    return {"HOLDFAST_LUA": os.path.join(BUILD, "lua"), "HOLDFAST_BIN": HOLDFAST, **more}


def failed_step(*words, cwd=None, env=None):
    """The last line of a step of an installation that did not end well, or ""."""
    try:
        done = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, text=True, timeout=INSTALL_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        return f"{words[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{os.path.basename(words[0])} did not end within {INSTALL_S} s"
    lines = done.stdout.strip().splitlines()
    return "" if done.returncode == 0 else lines[-1] if lines else f"exit {done.returncode}"


# ---- Python ---------------------------------------------------------------------------


def python_place(name):
    return os.path.join(PLACE, "python-" + name)


def requirements(name):
    """The text of requirements-NAME.txt, and the version of each package."""
    with open(os.path.join(PYTHON, f"requirements-{name}.txt")) as file:
        text = file.read()
    return text, dict(line.split("==") for line in text.splitlines())


def install_python(name):
    """A virtual environment with what requirements-NAME.txt names. Why not, or ""."""
    place, (text, _) = python_place(name), requirements(name)
    stamp = os.path.join(place, "requirements")
    if os.path.exists(stamp) and open(stamp).read() == text:
        return ""
    shutil.rmtree(place, ignore_errors=True)
    python = shutil.which("python3") or "python3"
    problem = failed_step(python, "-m", "venv", place) or failed_step(
        os.path.join(place, "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "-r",
        os.path.join(PYTHON, f"requirements-{name}.txt"))
    if problem:
        return "not installed: " + problem
    with open(stamp, "w") as file:
        file.write(text)
    return ""


def find_python():
    """Holdfast with a sync handler in one process, Holdfast with an async one in two, and the others."""
    problems = {name: install_python(name) for name in ("main", "arq")}
    (_, main), (_, arq) = requirements("main"), requirements("arq")

    def program(place, file, *words):
        return [os.path.join(python_place(place), "bin/python"), os.path.join(PYTHON, file), *words]

    def command(place, *words):
        return [os.path.join(python_place(place), "bin", words[0]), *words[1:]]

    def holdfast(verb):
        return program("main", "holdfast_jobs.py", verb, JOBS)

    env = ours_env(PYTHONPATH=os.path.join(SOURCE, "clients/python/src"))

    def pool(name, processes, verb):
        return Pool("Holdfast, " + name, problems["main"], 80000, holdfast, processes, env, verb)
    pools = [pool("a sync handler, 1 process", 1, "serve"),
             pool("an async handler, 2 processes with 16 jobs each", 2, "serve-async"),
             pool("a handler that tells its starts", 1, "starts")]
    cores = str(CORES)

    def dramatiq(processes, times=None):
        name = f"dramatiq, {processes} {'process' if processes == '1' else 'processes'} with 8 threads"
        return Queue(name, main["dramatiq"], problems["main"], 6000, program("main", "dramatiq_jobs.py", JOBS),
                     command("main", "dramatiq", "dramatiq_jobs", "--processes", processes, "--threads", "8"),
                     [("HLEN", "dramatiq:default.msgs")], times)
    others = [
        dramatiq("1", 10),
        dramatiq(cores),
        Queue("arq", arq["arq"], problems["arq"], 6000, program("arq", "arq_jobs.py", JOBS),
              program("arq", "arq_jobs.py"), [("ZCARD", "arq:queue")], 10),
        Queue("Celery, prefork", main["celery"], problems["main"], 4000, program("main", "celery_jobs.py", JOBS),
              command("main", "celery", "-A", "celery_jobs", "worker", "--pool", "prefork", "--concurrency", cores,
                      "--loglevel", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"),
              [("LLEN", "celery"), ("HLEN", "unacked")], 20, {"C_FORCE_ROOT": "1"}),
        Queue("RQ", main["rq"], problems["main"], 300, program("main", "rq_jobs.py", JOBS),
              command("main", "rq", "worker", "--url", "unix://" + SOCKET, "--logging_level", "WARNING", "default"),
              [("LLEN", "rq:queue:default"), ("ZCARD", "rq:wip:default")])]
    here = output(os.path.join(python_place("main"), "bin/python"), "--version").split()
    return pools, others, {"Python": here[-1] if here else "none", "redis-py": main["redis"]}


# ---- Node -----------------------------------------------------------------------------


def build_node():
    """The client of this tree. Why it is not here, or ""."""
    client = os.path.join(SOURCE, "clients/node")
    if not os.path.exists(os.path.join(client, "node_modules/lock")):
        return "not built: ./dev test installs what clients/node needs"
    problem = failed_step(os.path.join(client, "node_modules/.bin/tsc"), cwd=client)
    return problem and "not built: " + problem


def find_node():
    """Holdfast in one process, BullMQ in its worker's process, and BullMQ with processes of its own."""
    node, env, packages, problem = node_here()
    script = os.path.join(HERE, "holdfast.js")
    pool = Pool("Holdfast, 1 process with 16 jobs", build_node(), 100000,
                lambda verb: [node, script, verb, SOCKET, JOBS], 1, ours_env(NODE_ENV="production"))
    bullmq = [node, os.path.join(HERE, "bullmq.js")]
    waiting = [("LLEN", "bull:peer:wait"), ("LLEN", "bull:peer:active")]

    def queue(name, jobs, times, **more):
        env_of = {**env, **more}
        return Queue(name, packages["node_modules/bullmq"]["version"], problem, jobs, [*bullmq, "each", SOCKET, JOBS],
                     [*bullmq, "serve", SOCKET], waiting, times, env_of)
    others = [queue("BullMQ, in its process, 16 at a time", 30000, 1.5, PEER_CONCURRENCY="16"),
              queue("BullMQ, in 4 processes of its sandbox", 6000, 15, PEER_CONCURRENCY="4", PEER_SANDBOX="1")]
    with open(os.path.join(SOURCE, "clients/node/package.json")) as file:
        client = json.load(file)["devDependencies"]["redis"]
    return pool, others, {"Node": output(node, "--version").strip().lstrip("v") or "none", "node-redis": client,
                          "ioredis": packages["node_modules/ioredis"]["version"]}


# ---- Go -------------------------------------------------------------------------------


def build_go(go):
    """The program for both queues, in the build directory. Why it is not here, or ""."""
    os.makedirs(PLACE, exist_ok=True)
    problem = failed_step(go, "build", "-buildvcs=false", "-mod=readonly", "-o", os.path.join(PLACE, "peer-go"), ".",
                          cwd=GO, env={"GOTOOLCHAIN": "local", "GOWORK": "off"})
    return problem and "not built: " + problem


def find_go():
    """Holdfast in one process, and Asynq."""
    go = shutil.which("go", path=os.environ["PATH"] + os.pathsep + "/usr/local/go/bin") or "go"
    problem, program = build_go(go), os.path.join(PLACE, "peer-go")
    with open(os.path.join(GO, "go.mod")) as file:
        pinned = dict(re.findall(r"^\t(\S+) v(\S+)", file.read(), re.M))
    pool = Pool("Holdfast, 1 process with 100 jobs", problem, 100000,
                lambda verb: [program, "holdfast", verb, SOCKET, JOBS], 1, ours_env())
    asynq = Queue("Asynq, 100 at a time", pinned["github.com/hibiken/asynq"], problem, 30000,
                  [program, "asynq", "fill", SOCKET, JOBS], [program, "asynq", "serve", SOCKET],
                  [("LLEN", "asynq:{default}:pending"), ("LLEN", "asynq:{default}:active")], 2.5)
    here = re.search(r"go([\d.]+)", output(go, "version"))
    return pool, [asynq], {"Go": here[1] if here else "none", "go-redis": pinned["github.com/redis/go-redis/v9"]}
