"""Shared by the acceptance scripts: private servers, workers, waiting, judging, cleaning up.

A script is a function that gets a Fixture, prints what it sees, raises Failure when a promise is
broken, and returns the one line that sums it up:

    #!/usr/bin/python3 -B
    from support import main
    def check(fixture): ...
    main(check, seconds=60)

The script is the reaper of everything below it: what a killed worker leaves behind becomes its
child. So it sees what is left, and at the end no process that it started is alive, by its
number, whatever happened. Python's standard library, redis-server and the command are all it
needs. From the environment: HOLDFAST (the command), HF_BUILD, HF_SOURCE, HF_ROUNDS (fewer
rounds while one develops), HF_SEED (of what is random), HF_KEEP=1 (keep the directory), HF_TLS=1
(everything but the script's own questions reaches Redis by TLS).
"""
import collections
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

SOURCE = os.environ.get("HF_SOURCE") or os.path.realpath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.environ.get("HF_BUILD") or os.path.join(SOURCE, "build")
HOLDFAST = os.path.abspath(os.environ.get("HOLDFAST") or os.path.join(BUILD, "holdfast"))

os.environ.pop("REDIS_URL", None)  # it would take a worker to another server than the script's
TLS = os.environ.get("HF_TLS") == "1"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """A promise that was not kept, as a sentence."""


def say(text=""):
    print(text, flush=True)


def require(condition, text):
    if not condition:
        raise Failure(text)


def table(headers, rows):
    rows = [[str(cell) for cell in row] for row in [headers] + list(rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(headers))]
    for row in rows:
        say("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def boottime_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Pressure:
    """For what share of the time since it was made, processes waited for a processor (0 to 1). The
    kernel counts it every two seconds, for the whole machine; where it does not, it is 0."""

    def __init__(self):
        self.began, self.waited = time.monotonic(), self._waited_s()

    @staticmethod
    def _waited_s():
        try:
            with open("/proc/pressure/cpu") as file:
                return int(file.readline().rpartition("total=")[2]) / 1e6
        except OSError:
            return 0.0

    def share(self):
        return min(1.0, (self._waited_s() - self.waited) / (time.monotonic() - self.began))


class FairClock:
    """A clock for deadlines and upper bounds. While more threads want a processor than there are, it runs slower: as
    fast as each of them gets on, but at least by LEAST. So a busy machine has more time, and a script that has failed
    ends."""

    LEAST = 0.125

    def __init__(self):
        self.seconds, self.seen, self.share = 0.0, time.monotonic(), self._share()

    @classmethod
    def _share(cls):
        with open("/proc/loadavg") as file:
            running = int(file.read().split()[3].partition("/")[0])
        return max(cls.LEAST, min(1.0, os.cpu_count() / max(1, running)))

    def __call__(self):
        now, share = time.monotonic(), self._share()
        self.seconds += (now - self.seen) * min(share, self.share)
        self.seen, self.share = now, share
        return self.seconds


fair_s = FairClock()


def eventually(seconds, what, condition, every=0.01):
    """The first true answer of condition(); Failure after this many seconds of the fair clock. A condition that starts
    a command takes long; it is asked for a quarter of the time."""
    until = fair_s() + seconds
    while True:
        asked = time.monotonic()
        answer = condition()
        if answer:
            return answer
        require(fair_s() < until, f"not within {seconds} s: {what}")
        time.sleep(max(every, min(0.2, 3 * (time.monotonic() - asked))))


def waited(child, seconds):
    """The exit status of a process; None: it has not ended within this many seconds of the fair clock."""
    until = fair_s() + seconds
    while fair_s() < until:
        try:
            return child.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
    return child.poll()


def talked(child, data, seconds):
    """What a process wrote until its end, and None where it has not ended within this many seconds of the fair clock:
    then it was killed. By a thread, because communicate() sends no more of `data` after its own time-out."""
    said, until = [], fair_s() + seconds
    thread = threading.Thread(target=lambda: said.append(child.communicate(data)), daemon=True)
    thread.start()
    while thread.is_alive() and fair_s() < until:
        thread.join(0.5)
    if said or not thread.is_alive():
        return said[0]
    child.kill()
    thread.join(5)  # others may hold what it wrote to
    return None


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] if ordered else None


def helper(name):
    path = os.path.join(BUILD, "tests/helpers", name)
    require(os.path.exists(path), f"{path} was not built")
    return path


# ---- processes ------------------------------------------------------------------------


Process = collections.namedtuple("Process", "pid state parent group words started_ns")  # started_ns: CLOCK_BOOTTIME


def process(pid):
    """The entry of /proc about it, or None. A zombie counts as gone: it does not run."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    started_ns = int(fields[19]) * 10**9 // os.sysconf("SC_CLK_TCK")
    return Process(pid, fields[0], int(fields[1]), int(fields[2]), words, started_ns)


def alive(pid):
    return process(pid) is not None


def descendants(root=None):
    """Everything alive below a process, zombies left out."""
    children, seen = collections.defaultdict(list), []
    for name in os.listdir("/proc"):
        found = process(int(name)) if name.isdigit() else None
        if found:
            children[found.parent].append(found)
    todo = [root or os.getpid()]
    while todo:
        for child in children[todo.pop()]:
            seen.append(child)
            todo.append(child.pid)
    return seen


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ends_with_us():
    """In a child before it executes: when this script is killed, it is too."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# ---- Redis ----------------------------------------------------------------------------


class RedisError(Exception):
    """An answer that is an error."""


class Redis:
    """One connection, made again when it broke. Texts are returned as str."""

    def __init__(self, address, auth=None, db=0, timeout=30.0):
        self.address, self.auth, self.db, self.timeout = address, auth, db, timeout
        self.socket = self.file = None

    def _connect(self):
        family = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(self.timeout)
        self.socket.connect(self.address)
        self.file = self.socket.makefile("rb")
        if self.auth:
            self._ask("AUTH", *self.auth)
        if self.db:
            self._ask("SELECT", self.db)

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = self.file = None

    def send(self, *words):
        if not self.socket:
            self._connect()
        out = [b"*%d\r\n" % len(words)]
        for word in words:
            raw = word if isinstance(word, bytes) else str(word).encode(errors="surrogateescape")
            out.append(b"$%d\r\n%s\r\n" % (len(raw), raw))
        self.socket.sendall(b"".join(out))

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            body = self.file.read(int(rest) + 2)
            return body[:-2].decode(errors="surrogateescape")
        return None if rest == b"-1" else [self.read() for _ in range(int(rest))]

    def _ask(self, *words):
        self.send(*words)
        answer = self.read()
        if isinstance(answer, RedisError):
            raise answer
        return answer

    def __call__(self, *words):
        try:
            return self._ask(*words)
        except OSError:
            self.close()
            raise


class Clock:
    """The wall clock of one private server, by tests/preload/hf-clock-preload.c. It moves at once,
    for that server alone, and outlives its restart."""

    def __init__(self, path):
        self.object = helper("hf-clock-preload.so")
        self.environment = {"LD_PRELOAD": self.object, "HF_SERVER_CLOCK": path}
        self.library = ctypes.CDLL(self.object)
        for name, *args in (("open", ctypes.c_char_p), ("step", ctypes.c_void_p, ctypes.c_int64),
                            ("slew", ctypes.c_void_p, ctypes.c_int),
                            ("stand", ctypes.c_void_p, ctypes.c_int64), ("used", ctypes.c_void_p)):
            getattr(self.library, f"hf_preload_{name}").argtypes = args
        self.library.hf_preload_open.restype = ctypes.c_void_p
        self.file = self.library.hf_preload_open(os.fsencode(path))
        require(self.file, f"{path} cannot be made")

    def used(self):
        """A server reads it."""
        return self.library.hf_preload_used(self.file) == 1

    def step(self, ms):
        """It jumps, forward or (below 0) back."""
        self.library.hf_preload_step(self.file, int(ms))

    def slew(self, permille):
        """From now on it runs faster (below 0: slower) by this much; up to 100."""
        self.library.hf_preload_slew(self.file, int(permille))

    def stand(self, unix_ms):
        """It stands at this time until it is set again, so nothing depends on real time."""
        self.library.hf_preload_stand(self.file, int(unix_ms))


class Server:
    """A redis-server of the script's own: a unix socket, and a TCP port if it is asked for.
    clock: its wall clock can be moved, see Clock."""

    def __init__(self, fixture, tcp=False, user=None, password=None, db=0, aof=False, args=(),
                 clock=False, port=0):
        self.fixture, self.aof, self.args, self.db = fixture, aof, list(args), db
        self.directory = fixture.make_directory("redis")
        self.clock = Clock(os.path.join(self.directory, "clock")) if clock else None
        self.socket = os.path.join(self.directory, "s")
        self.user, self.password = user, password
        self.port = port or (free_port() if tcp or TLS else 0)
        self.pid = 0
        login = f"{user}:{password}@" if user else f":{password}@" if password else ""
        self.url = f"unix://{login}{self.socket}" + (f"?db={db}" if db else "")
        self.url_without_password = self.url
        if self.port:
            scheme = "rediss" if TLS else "redis"
            self.url = f"{scheme}://{login}127.0.0.1:{self.port}/{db}"
            at = f"{user}@" if user else ""
            self.url_without_password = f"{scheme}://{at}127.0.0.1:{self.port}/{db}"
        auth = [word for word in (user, password) if word]
        self.call = Redis(self.socket, auth, db)
        self.start()

    def start(self):
        program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        require(program, "there is no redis-server in PATH")
        words = ["redis-server", "--port", "0" if TLS else str(self.port), "--bind", "127.0.0.1",
                 "--unixsocket", self.socket, "--dir", self.directory, "--save", "",
                 "--appendonly", "yes" if self.aof else "no",
                 "--appendfsync", "always" if self.aof else "no"]
        if self.clock:  # the thread waits by that clock: behind the real one it spins
            words += ["--jemalloc-bg-thread", "no"]
        if TLS:
            certs = self.fixture.certificates()
            words += ["--tls-port", str(self.port), "--tls-auth-clients", "no",
                      "--tls-cert-file", os.path.join(certs, "server.pem"),
                      "--tls-key-file", os.path.join(certs, "server.key"),
                      "--tls-ca-cert-file", os.path.join(certs, "ca.pem")]
        if self.user:
            words += ["--user", self.user, "on", f">{self.password}", "~*", "&*", "+@all",
                      "--user", "default", "off"]
        elif self.password:
            words += ["--requirepass", self.password]
        log = open(os.path.join(self.directory, "log"), "ab")
        env = {**os.environ, **self.clock.environment} if self.clock else None
        self.child = self.fixture.start(words + self.args, executable=program, stdout=log,
                                        stderr=log, env=env)
        self.pid = self.child.pid
        log.close()
        eventually(60, "redis-server answers", self.answers, every=0.002)
        require(not self.clock or self.clock.used(), "the server runs by the real clock")

    def answers(self):
        require(self.child.poll() is None, "redis-server does not start:\n" +
                open(os.path.join(self.directory, "log"), errors="replace").read()[-2000:])
        try:
            return self.call("PING") == "PONG"
        except (OSError, RedisError):
            return False

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.call.close()
        self.child.kill()
        self.child.wait()

    def restart(self):
        self.kill()
        self.start()


class Forwarder:
    """A service address: a TCP port of 127.0.0.1 that leads to a server, and can be made to lead to
    another one. Connections that exist stay with the server that they were made to."""

    def __init__(self, server):
        self.server, self.connections = server, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, server):
        self.server = server

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            self.connections += 1
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.server.socket)
            except OSError:  # nobody listens there
                client.close()
                continue
            for ends in (client, server), (server, client):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    @staticmethod
    def _pass(source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:  # one side is gone, and the other one learns of it below
            pass
        for end in source, sink:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:  # it is shut already
                pass


def server_names():
    """Of the servers in tests/servers.txt."""
    with open(os.path.join(SOURCE, "tests/servers.txt")) as file:
        names = [line.split()[0] for line in file if not line.startswith("#")]
    return list(dict.fromkeys(names))


def server_folder(fixture, name):
    """A folder with the `redis-server` of that name, for PATH."""
    child = fixture.start([os.path.join(SOURCE, "dev"), "server", name], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    out, err = child.communicate(timeout=120)
    require(child.returncode == 0, f"{name} cannot be had: {err.decode().strip()[-200:]}")
    return out.decode().strip()


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(cluster=False):
    """Below those that the kernel gives to connections, to which it would be lost before a server listens, or while it
    is away. cluster: the port of its bus, which is 10,000 higher, is free as well."""
    while True:
        port = random.randrange(10000, 22000)
        if is_free(port) and (not cluster or is_free(port + 10000)):
            return port


# ---- workers --------------------------------------------------------------------------


class Worker:
    """A `holdfast worker` of its own configuration file, log and process."""

    def __init__(self, fixture, server, config, args=(), number=0, new_session=False, prefix=()):
        """prefix: words before the command, which execute it in their place."""
        self.path = os.path.join(fixture.directory, f"worker-{number}.yaml")
        self.log_path = os.path.join(fixture.directory, f"worker-{number}.log")
        self.number = number
        with open(self.path, "w") as file:
            json.dump(config, file, indent=1)  # what is JSON is YAML
        with open(self.log_path, "ab") as log:
            self.child = fixture.start([*prefix, HOLDFAST, "worker", "-c", self.path, *args],
                                       stdout=log, stderr=log, start_new_session=new_session)
        self.pid = self.child.pid

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def lines(self, text):
        return [line for line in self.log().splitlines() if text in line]

    def minder(self):
        """The number of its minder, 0 while it has none."""
        for found in descendants(self.pid):
            if found.parent == self.pid and found.words[1:2] == ["minder"]:
                return found.pid
        return 0

    def jobs(self):
        """Its log lines about each end of a job, in order: mappings with job=, outcome= ..."""
        return [parse_logfmt(line) for line in self.lines(" msg=job ")]

    def ready(self):
        """It serves, and its minder stands by."""
        require(self.child.poll() is None, f"the worker ended at once:\n{self.log()[-2000:]}")
        return self.lines(" msg=serving ") and self.minder()

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.child.wait()

    def wait(self, seconds, what="the worker ends"):
        code = waited(self.child, seconds)
        require(code is not None, f"not within {seconds} s: {what}")
        return code

    def stop(self, seconds=30):
        """TERM, and its exit status."""
        if self.child.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait(seconds, "the worker ends after TERM")


def parse_logfmt(line):
    pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line)
    return {key: value.strip('"') for key, value in pairs}


def outcomes(workers):
    """(job, outcome) -> how often it was logged, by all of these workers."""
    return collections.Counter((entry["job"], entry["outcome"])
                               for worker in workers for entry in worker.jobs())


def jsonl(jobs):
    return "".join(json.dumps(job) + "\n" for job in jobs).encode()


# ---- the fixture ----------------------------------------------------------------------


Result = collections.namedtuple("Result", "code out err")


class Fixture:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="hf-accept-", dir=os.environ.get("TMPDIR", "/tmp"))
        self.children, self.workers, self.certificate_directory = [], 0, None
        self.seed = int(os.environ.get("HF_SEED") or random.SystemRandom().getrandbits(32))
        self.random = random.Random(self.seed)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def rounds(self, full):
        return min(full, int(os.environ.get("HF_ROUNDS") or full))

    def make_directory(self, name):
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def start(self, words, **options):
        """A process that is ended with the fixture."""
        options.setdefault("stdin", subprocess.DEVNULL)
        child = subprocess.Popen(words, preexec_fn=ends_with_us, **options)
        self.children.append(child)
        return child

    def server(self, **options):
        return Server(self, **options)

    def certificates(self):
        """A directory of certificates, whose authority every child trusts from now on."""
        if not self.certificate_directory:
            self.certificate_directory = self.make_directory("certificates")
            subprocess.run([helper("hf-certs"), self.certificate_directory], check=True)
            os.environ["SSL_CERT_FILE"] = os.path.join(self.certificate_directory, "ca.pem")
        return self.certificate_directory

    def worker(self, server, handlers, args=(), queues=None, new_session=False, prefix=(),
               **sections):
        """handlers: a list of mappings as in the file. sections: worker={...}, retry={...}"""
        config = {"redis": {"url": server.url}, "handlers": handlers, **sections}
        if queues:
            config["queues"] = queues
        self.workers += 1
        return Worker(self, server, config, args, self.workers, new_session, prefix)

    def workers_ready(self, *workers, seconds=60):
        for worker in workers:
            eventually(seconds, f"worker {worker.number} serves", worker.ready)

    def wait_idle(self, server, seconds, queue="default"):
        """Nothing waits, runs or is delayed; gives the queue's figures."""
        prefix, counts = f"hf:{{{queue}}}:", None
        def idle():
            nonlocal counts
            cards = [server.call("ZCARD", prefix + name)
                     for name in ("schedule", "schedule:h", "schedule:l", "running")]
            counts = [sum(cards[:3]), cards[3]]
            return counts == [0, 0]
        try:
            eventually(seconds, "every job is done", idle, every=0.05)
        except Failure:
            raise Failure(f"not within {seconds} s: every job is done; {counts[0]} wait, "
                          f"{counts[1]} run") from None
        return self.stats(server, queue)

    def command(self, server, *words, stdin=b"", seconds=30, code=0, env=None):
        """`holdfast WORDS` against a server (None: against none). code None: any will do."""
        words = [HOLDFAST, *words]
        if server:
            words += ["--redis", server.url]
        environment = {k: v for k, v in os.environ.items() if k != "REDIS_URL"}
        environment.update(env or {})
        child = self.start(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=environment)
        said = talked(child, stdin, seconds)
        if said is None:
            raise Failure(f"not within {seconds} s: {' '.join(words)}")
        self.children.remove(child)
        result = Result(child.returncode, *(part.decode(errors="replace") for part in said))
        require(code is None or result.code == code,
                f"{' '.join(words)}: exit {result.code}, not {code}: {result.err.strip()}")
        return result

    def json(self, server, *words, **options):
        """The objects that `holdfast WORDS --json` printed."""
        out = self.command(server, *words, "--json", **options).out
        return [json.loads(line) for line in out.splitlines()]

    def bulk(self, server, jobs, *args, **options):
        """Enqueues a list of mappings with --bulk; gives their ids."""
        return self.command(server, "enqueue", "--bulk", "-", *args, stdin=jsonl(jobs),
                            **options).out.split()

    def stats(self, server, queue="default"):
        """The queue's figures; all are 0 for a queue that was never used."""
        result = self.command(server, "queue", "show", queue, "--json", code=None)
        if result.code == 1 and "no queue" in result.err:
            return collections.defaultdict(int)
        require(result.code == 0, f"queue show {queue}: exit {result.code}: {result.err}")
        return json.loads(result.out)

    def audit(self, server, idle=False):
        """`holdfast doctor` finds only what the script itself did to its workers."""
        words = ["doctor", "--idle"] if idle else ["doctor"]
        result = self.command(server, *words, "--json", code=None)
        require(result.code in (0, 1) and not result.err, "the audit failed: " + result.err)
        found = [entry for entry in map(json.loads, result.out.splitlines())
                 if entry["check"] not in ("worker", "unserved")]
        require(not found, "the audit found:\n" + "\n".join(map(str, found)))

    def reap(self):
        """Zombies that became ours; never one that subprocess waits for."""
        ours = {child.pid for child in self.children}
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in ours:
                try:
                    with open(f"/proc/{name}/stat") as file:
                        fields = file.read().rpartition(")")[2].split()
                    if fields[0] == "Z" and int(fields[1]) == os.getpid():
                        os.waitpid(int(name), os.WNOHANG)
                except (OSError, IndexError):
                    pass

    def close(self):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            left = descendants()
            for found in left:
                try:
                    os.kill(found.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for child in self.children:
                child.poll()
            self.reap()
            if not left:
                break
            time.sleep(0.01)
        if os.environ.get("HF_KEEP"):
            say(f"kept: {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)


def run_step(fixture, words, cwd, env=None, cores=None):
    """A long program of the project: its output is shown as it comes, and it must end with 0.
    Gives its lines. It may use only these cores."""
    lines = []
    if cores:
        os.sched_setaffinity(0, cores)
    child = fixture.start(words, cwd=cwd, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    for raw in child.stdout:
        lines.append(raw.decode(errors="replace").rstrip("\n"))
        say("  " + lines[-1])
    code = child.wait()
    require(code == 0, f"{' '.join(words)}: exit {code}: {lines[-1] if lines else ''}")
    return lines


def leftovers(server, ns="hf"):
    """Keys that invariant I9 does not allow when all jobs are done."""
    bad = []
    for key in server.call("KEYS", "*"):
        mine = key == f"{ns}:{{/}}:queues" or (key.startswith(ns + ":{") and
                                               key.endswith(("}:meta", "}:leases")))
        if not mine and server.call("PTTL", key) == -1:
            bad.append(key)
    return sorted(bad)


# ---- what handlers wrote --------------------------------------------------------------


class Run:
    """One run of one job by hf-handler. `last`: when it was last seen alive, by itself or by
    the child that it made. `ended`: it came to its end."""

    def __init__(self, pid, job, attempt, fence, start):
        self.pid, self.job, self.attempt, self.fence = pid, job, attempt, fence
        self.start = self.last = start
        self.ended, self.overlap, self.notes = False, False, []

    def __repr__(self):
        return (f"pid {self.pid}, attempt {self.attempt}, fence {self.fence}, "
                f"{self.start / 1e9:.3f}..{self.last / 1e9:.3f}"
                f"{'' if self.ended else ', cut off'}")


def note(run, kind, ns, text):
    run.last = max(run.last, ns)
    if kind == "end":
        run.ended = True
    elif kind == "overlap":
        run.overlap = True
    elif kind != "beat":
        run.notes.append((kind, text))


# A line of tests/helpers/hf-handler.c. A handler that is killed in the middle of writing one
# leaves the beginning of it, with the next handler's line right behind.
NOTE = re.compile(r"(start|beat|end|overlap|dying|term|child|read|fds|cancelled) (\d+) (\S+) (\d+) (\d+) "
                  r"(\d+)(?: (.*))?\n$")


def read_runs(*paths):
    """job -> its runs, by their starts. See tests/helpers/hf-handler.c for the lines."""
    runs, by_key = collections.defaultdict(list), {}
    for path in paths:
        for line in open(path, errors="replace") if os.path.exists(path) else ():
            if not line.endswith("\n"):
                break  # it is being written
            whole = NOTE.search(line)
            require(whole, f"{path}: expected what a handler notes, found {line!r}")
            kind, pid, job, attempt, fence, ns, text = whole.groups("")
            key = (int(pid), job, fence)
            if kind == "start":
                by_key[key] = Run(int(pid), job, int(attempt), int(fence), int(ns))
                runs[job].append(by_key[key])
            else:
                note(by_key[key], kind, int(ns), text)
    for job in runs.values():
        job.sort(key=lambda run: run.start)
    return runs


def overlaps(runs):
    """Pairs of runs of one job that were alive at the same time. Two ways to tell, and either
    is enough: the times that the handlers wrote, and the file lock that each of them holds
    while it, or its child, is alive."""
    bad = []
    for job in runs.values():
        for one, other in zip(job, job[1:]):
            if other.start < one.last or other.overlap:
                bad.append((one, other))
    return bad


def unordered_fences(runs):
    return [(one, other) for job in runs.values() for one, other in zip(job, job[1:])
            if other.fence <= one.fence]


# ---- figures --------------------------------------------------------------------------


class Figures:
    """A measured value and its bound. All points are tried before it is judged."""

    def __init__(self):
        self.told, self.bad = 0, []

    def tell(self, point, what, value, most, unit="ms"):
        holds = value is not None and value <= most
        shown = "never" if value is None else f"{value:.0f}"
        self.told += 1
        say(f"  {point:>2}  {what:<72} {shown:>7} {unit}, at most {most:.0f}"
            f"{'' if holds else '  BROKEN'}")
        if not holds:
            self.bad.append(f"{point} {what}: {shown} {unit}")


def try_points(fixture, points):
    """Calls points[number](fixture, figures): the points that the arguments name, else all."""
    figures = Figures()
    for point in [int(word) for word in sys.argv[1:]] or points:
        started = time.monotonic()
        points[point](fixture, figures)
        say(f"      point {point}: {time.monotonic() - started:.0f} s")
    require(not figures.bad, f"{len(figures.bad)} of {figures.told}: {'; '.join(figures.bad)}")
    return f"{figures.told} figures, all within their bounds"


# ---- the script itself ----------------------------------------------------------------


def main(check, seconds):
    """Runs check(fixture) within this many seconds of the fair clock, prints the last line, ends the process."""
    clock = FairClock()  # the other one may be asked right now

    def expired(number, _frame):
        if number != signal.SIGALRM:
            raise Failure(f"ended by signal {number}")
        if clock() >= seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Failure(f"not finished within {seconds} s")

    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, expired)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    fixture, started, code, last = Fixture(), time.monotonic(), 1, ""
    say(f"seed {fixture.seed}")
    try:
        require(os.path.exists(HOLDFAST), f"{HOLDFAST} was not built")
        last = "passed: " + (check(fixture) or "")
        code = 0
    except Failure as failure:
        last = f"FAILED: {failure}"
    except Exception as error:  # a defect of the script, or of what it read
        traceback.print_exc(file=sys.stdout)
        last = f"FAILED: {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        fixture.close()
    say(f"{time.monotonic() - started:.1f} s")
    say(last)
    sys.exit(code)
