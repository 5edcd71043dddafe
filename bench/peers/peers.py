"""The systems that Holdfast is measured beside: whether each is here, its version, its server, and
its client, one program with the verbs that README.md beside this file describes.

What npm installs goes into the build directory, exactly as package-lock.json has it."""
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import time

from support import BUILD, HOLDFAST, Failure, eventually, require

HERE = os.path.dirname(os.path.realpath(__file__))
PLACE = os.path.join(BUILD, "bench/peers")  # of our programs, and of what npm installs
INSTALL_S, STEP_S = 120, 60
LOGGED = """With an append-only file each claim and each end is written there too. The less time a job
    takes otherwise, the more this matters; rows below give the bytes."""


class Peer:
    """`jobs`: of a rate, for about a second. `times`: how often as fast Holdfast is expected to be.
    `crash`: its shortest sensible settings for a worker that is killed, in words. `settle_s`: until
    its worker has begun to look for delayed jobs. `why`: what is to be known when Holdfast is not
    so often as fast. `missing`: why it cannot be measured, or ""."""

    def __init__(self, name, words, jobs, times=None, crash="", more=(), env=None, settle_s=0,
                 serve=None, rates_only=False, why=""):
        self.name, self.words, self.jobs, self.times, self.crash = name, words, jobs, times, crash
        self.more, self.env, self.settle_s, self.serve = list(more), env or {}, settle_s, serve
        self.rates_only, self.missing, self.version = rates_only, "", ""
        self.why = " ".join(why.split())

    def server(self, m):
        return self.serve(m) if self.serve else m.server()

    def start(self, m, verb, server, n=0, ms=0, more=()):
        words = [*self.words, verb, server.socket, str(n), str(ms), *more]
        return Client(m, words, {**os.environ, **self.env}, f"{self.name} {verb}")

    def run(self, m, verb, server, n=0, ms=0):
        """Until it ends: the object in its last line, or None."""
        client = self.start(m, verb, server, n, ms, self.more)
        lines = client.rest(STEP_S)
        return json.loads(lines[-1]) if lines else None


class Client:
    """A client that runs, and the lines that it says."""

    def __init__(self, m, words, env, what, cwd=None):
        self.what, self.pending = what, b""
        self.errors = open(m.path(f"client-{len(m.children)}.err"), "w+")
        self.child = m.start(words, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=self.errors)
        self.pid = self.child.pid

    def line(self, seconds):
        """The next line, or None when there is none within so long, or at its end."""
        until = time.monotonic() + seconds
        while b"\n" not in self.pending:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                return None
            read = os.read(self.child.stdout.fileno(), 65536)
            if not read:
                return None
            self.pending += read
        line, _, self.pending = self.pending.partition(b"\n")
        return line.decode()

    def rest(self, seconds):
        """All lines until it ends, which must be well and in time."""
        try:
            out, _ = self.child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"not within {seconds} s: {self.what}") from None
        require(self.child.returncode == 0, f"{self.what}: exit {self.child.returncode}: "
                                            f"{self.said() or 'it said nothing'}")
        return (self.pending + out).decode().splitlines()

    def expect(self, word, seconds=20):
        line = self.line(seconds)
        require(line == word, f"{self.what}: expected {word!r}, found {line!r}: {self.said()}")

    def starts(self, n, seconds):
        """(mark, when) of n jobs that it starts within so long, or of fewer."""
        until, found = time.monotonic() + seconds, []
        while len(found) < n:
            line = self.line(until - time.monotonic())
            if line is None:
                break
            if line == "ready":
                continue
            found.append(tuple(map(int, line.split())))
        return found

    def said(self):
        self.errors.seek(0)
        return self.errors.read()[-500:].strip()

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()


class Beanstalkd:
    """A beanstalkd of one's own, with a log that is synced every second where Redis has one."""

    def __init__(self, m):
        self.m, self.directory = m, m.make_directory("beanstalkd")
        self.socket = os.path.join(self.directory, "s")
        self.start()

    def start(self):
        log = ["-b", self.directory, "-f", "1000"] if self.m.appendonly == "yes" else []
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        with open(os.path.join(self.directory, "err"), "ab") as errors:
            self.child = self.m.start(["beanstalkd", "-l", "unix:" + self.socket, *log],
                                      stderr=errors)
        eventually(10, "beanstalkd listens", lambda: os.path.exists(self.socket))

    def kill(self):
        self.child.kill()
        self.child.wait()

    def restart(self):
        self.kill()
        self.start()


# ---- what is here ---------------------------------------------------------------------


def output(*words):
    """What a command says, or "" when it is not there or fails."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def install_modules():
    """What package-lock.json names, in the build directory. Why not, or ""."""
    if not shutil.which("npm"):
        return "not installed: there is no npm"
    lock = os.path.join(HERE, "package-lock.json")
    stamp = os.path.join(PLACE, "installed")
    with open(lock, "rb") as file:
        wanted = hashlib.sha256(file.read()).hexdigest()
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return ""
    os.makedirs(PLACE, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, name), PLACE)
    words = ["npm", "install", "--no-save", "--legacy-peer-deps", "--ignore-scripts",
             "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(words, cwd=PLACE, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        return f"not installed: npm did not end within {INSTALL_S} s"
    if done.returncode != 0:
        said = re.findall(r"npm (?:ERR!|error) (?!code)(.+)", done.stderr)
        return "not installed: npm: " + (said[0] if said else f"exit {done.returncode}")
    with open(stamp, "w") as file:
        file.write(wanted)
    return ""


def node_needed(packages, name):
    """The oldest Node, as [major, minor, patch], that a package and all it depends on allow."""
    oldest, todo, seen = [0, 0, 0], [name], set()
    while todo:
        entry = packages.get("node_modules/" + todo.pop(), {})
        for number in re.findall(r">= ?([\d.]+)", entry.get("engines", {}).get("node", ""))[:1]:
            oldest = max(oldest, ([int(part) for part in number.split(".")] + [0, 0])[:3])
        todo += [other for other in entry.get("dependencies", {}) if other not in seen]
        seen.update(entry.get("dependencies", {}))
    return oldest


def check_node(peer, packages, names, problem):
    """Fills in version and missing of a peer whose client is made of these packages."""
    here = output(peer.words[0], "--version").strip().lstrip("v")
    needed = max(node_needed(packages, name) for name in names)
    shown = ".".join(map(str, needed))
    peer.version = ", ".join([packages["node_modules/" + names[0]]["version"],
                              *(f"{name} {packages['node_modules/' + name]['version']}"
                                for name in names[1:]), f"Node {here or 'not found'}"])
    if not here:
        peer.missing = "not installed: there is no node"
    elif [int(part) for part in here.split(".")] < needed:
        peer.missing = f"needs Node {shown}, here is {here}"
    else:
        peer.missing = problem


def node_here():
    """The program, its environment, what the lock file names, and why nothing can be used, or ""."""
    node = shutil.which("node") or shutil.which("nodejs") or "node"
    with open(os.path.join(HERE, "package-lock.json")) as file:
        packages = json.load(file)["packages"]
    env = {"NODE_PATH": os.path.join(PLACE, "node_modules"), "NODE_ENV": "production"}
    return node, env, packages, install_modules()


def find_redlock():
    """The package for locks; its client has verbs of its own."""
    node, env, packages, problem = node_here()
    peer = Peer("redlock", [node, os.path.join(HERE, "redlock.js")], 8000, env=env)
    check_node(peer, packages, ["redlock", "ioredis"], problem)
    return peer


def find_node_peers():
    node, env, packages, problem = node_here()
    why = """Its rate is that of a process that is warm: for its first thousands of jobs, which are
        not counted, Node is several times slower."""
    bullmq = Peer("BullMQ", [node, os.path.join(HERE, "bullmq.js")], 40000, 7.5, env=env, why=why,
                  crash="lockDuration and stalledInterval 1 s")
    bee = Peer("bee-queue", [node, os.path.join(HERE, "bee-queue.js")], 80000, 3.5, env=env,
               why=f"{why} {LOGGED}", crash="stallInterval 1 s")
    check_node(bullmq, packages, ["bullmq", "ioredis"], problem)
    check_node(bee, packages, ["bee-queue"], problem)
    return [bullmq, bee]


def find_sidekiq():
    words = ["ruby", os.path.join(HERE, "sidekiq.rb")]
    peer = Peer("Sidekiq, with a driver in C", words, 40000, settle_s=6,
                crash="it has no such setting")
    plain = Peer("Sidekiq", words, 20000, 12, env={"PEER_PLAIN": "1"}, rates_only=True,
                 why=f"""{LOGGED} Sidekiq's job leaves Redis as soon as a worker takes it.""")
    for each in (peer, plain):
        each.version = output(*words, "version").strip()
        each.missing = "" if each.version else "not installed: there is no sidekiq for ruby"
    return [peer, plain]


def find_beanstalkd():
    client = os.path.join(PLACE, "beanstalkd")
    require(os.path.exists(client), f"{client} was not built")
    peer = Peer("beanstalkd", [client], 100000, crash="time to run 1 s", serve=Beanstalkd)
    spread = Peer("beanstalkd, 32 connections with one request each", [client], 100000, 2,
                  more=["32"], serve=Beanstalkd, rates_only=True)
    found = re.search(r"[\d.]+", output("beanstalkd", "-v"))
    for each in (peer, spread):
        each.version = found.group() if found else ""
        each.missing = "" if found else "not installed: there is no beanstalkd"
    return [peer, spread]


def find():
    """Ours, and the list of the others."""
    client = os.path.join(PLACE, "holdfast")
    require(os.path.exists(client), f"{client} was not built")
    ours = Peer("Holdfast", [client], 200000, crash="lease 1 s")
    ours.version = output(HOLDFAST, "version").split()[1]
    return ours, find_node_peers() + find_sidekiq() + find_beanstalkd()
