"""Several servers, for the scripts about failovers: a cluster of primaries with one replica each, and what
its operator does to it, failovers and slots that move; and a Group, which is one primary, its replicas
and the Sentinels that watch them."""
import binascii
import datetime
import math
import os
import re
import shutil
import signal
import time

from support import Redis, RedisError, boottime_ns, eventually, free_port, require

SLOTS, FAILOVER_S = 16384, 6
# How long a node may be silent, ms. BRIEF: the nodes of a new cluster soon know each other, and a failover is soon.
BRIEF_MS, PATIENT_MS = 1000, 60000
# How a slot moves.
STEP_BY_STEP, ATOMIC = "step by step", "atomic"
# Of the Sentinels.
MASTER, QUORUM = "m", 2
SENTINEL_CONFIG = """port {port}
bind 127.0.0.1
dir {directory}
sentinel monitor {master} 127.0.0.1 {primary} {quorum}
sentinel down-after-milliseconds {master} 1000
sentinel failover-timeout {master} 3000
sentinel parallel-syncs {master} 3
"""


# ---- a cluster ------------------------------------------------------------------------


def slot_of(key):
    """Of a key, or of its tag."""
    tag = key.partition("{")[2].partition("}")[0] or key
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS


class Cluster:
    """The primaries, then a replica of each. `meanwhile` is called often while it waits. Without replicas no node is
    taken for failed that only gets no processor."""

    def __init__(self, rig, primaries, replicas=True):
        self.nodes, self.meanwhile = [], lambda: None
        self.replicas = primaries if replicas else 0
        args = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(BRIEF_MS),
                "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"]
        for i in range(2 * primaries if replicas else primaries):
            self.nodes.append(self._node(rig, args))
            self.nodes[i].call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for i, node in enumerate(self.nodes[:primaries]):
            first, end = (n * SLOTS // primaries for n in (i, i + 1))
            node.call("CLUSTER", "ADDSLOTS", *range(first, end))
        for node in self.nodes[1:]:
            node.call("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        for replica, primary in zip(self.nodes[primaries:], self.nodes):
            self.until(20, "a replica finds its primary", lambda: self._try(
                replica, "CLUSTER", "REPLICATE", primary.id) == "OK")
        places = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        self.url = f"redis+cluster://{places}"
        self.settle()
        if not replicas:
            for node in self.nodes:
                node.call("CONFIG", "SET", "cluster-node-timeout", PATIENT_MS)
            self.settle(4 * PATIENT_MS / 1000)  # one may have been taken for failed just then

    @staticmethod
    def _node(rig, args):
        node = rig.server(port=free_port(cluster=True), aof=True, args=args)
        node.id = node.call("CLUSTER", "MYID")
        return node

    @staticmethod
    def _try(node, *words):
        """None: it does not answer, or refuses it."""
        try:
            return node.call(*words)
        except (OSError, RedisError):
            return None

    def until(self, seconds, what, condition):
        def waited():
            self.meanwhile()
            return condition()
        return eventually(seconds, what, waited, every=0.02)

    # ---- how it is ----

    def is_primary(self, node):
        role = self._try(node, "ROLE")
        return bool(role) and role[0] == "master"

    def primaries(self):
        return [node for node in self.nodes if self.is_primary(node)]

    def owner(self, slot):
        """The node that serves a slot, by what it says of itself."""
        for node in self.nodes:
            for first, last, place, *_ in self._try(node, "CLUSTER", "SLOTS") or []:
                if first <= slot <= last and place[2] == node.id:
                    return node
        return None

    def replica_of(self, primary):
        for node in self.nodes:
            role = self._try(node, "ROLE")
            if role and role[0] == "slave" and role[2] == primary.port:
                return node
        return None

    def view(self, node):
        """Which node has which slots, as this one tells it; None: not all is well there."""
        info = self._try(node, "CLUSTER", "INFO") or ""
        if "cluster_state:ok" not in info or f"cluster_slots_ok:{SLOTS}" not in info:
            return None
        return sorted((first, last, place[2]) for first, last, place, *_ in
                      self._try(node, "CLUSTER", "SLOTS") or [])

    def is_settled(self):
        views = [self.view(node) for node in self.nodes]
        roles = [self._try(node, "ROLE") or [""] for node in self.nodes]
        linked = [role[2] for role in roles if role[0] == "slave" and role[3] == "connected"]
        return (views[0] and all(view == views[0] for view in views) and
                len(linked) == len(set(linked)) == self.replicas)

    def settle(self, seconds=60):
        """All nodes agree, and each primary has its replica."""
        self.until(seconds, "all nodes of the cluster agree", self.is_settled)

    # ---- what its operator does ----

    def fail_over(self, primary):
        """On purpose. One that is busy may not come to it in the time that Redis allows."""
        replica, asked = self.replica_of(primary), -math.inf

        def is_promoted():
            nonlocal asked
            if time.monotonic() > asked + FAILOVER_S:
                self._try(replica, "CLUSTER", "FAILOVER")
                asked = time.monotonic()
            return self.is_primary(replica)

        self.until(30, "the replica is promoted", is_promoted)

    def kill(self, primary):
        """Its replica is the primary then, and it comes back as the replica."""
        replica = self.replica_of(primary)
        primary.kill()
        self.until(30, "the replica is promoted", lambda: self.is_primary(replica))
        primary.start()

    def stall(self, primary, silent_s=0):
        """It stands still until its replica is the primary, and so long after that."""
        replica = self.replica_of(primary)
        primary.signal(signal.SIGSTOP)
        self.until(30, "the replica is promoted", lambda: self.is_primary(replica))
        until = time.monotonic() + silent_s
        self.until(silent_s + 1, "it is silent", lambda: time.monotonic() >= until)
        primary.signal(signal.SIGCONT)

    def kill_all(self, seconds):
        """And starts them again after so long."""
        for node in self.nodes:
            node.kill()
        back = time.monotonic() + seconds
        self.until(seconds + 1, "they are away", lambda: time.monotonic() > back)
        for node in self.nodes:
            node.start()
        self.settle()

    def move(self, slot, target, how, hold_s=0):
        """hold_s: step by step it takes so long."""
        source = self.owner(slot)
        if how == STEP_BY_STEP:
            self._move_step_by_step(slot, source, target, hold_s)
        else:
            self._move_at_once(slot, source, target)

    def _move_step_by_step(self, slot, source, target, hold_s):
        """As redis-cli --cluster reshard does it."""
        began = time.monotonic()
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        while keys := source.call("CLUSTER", "GETKEYSINSLOT", slot, 10):
            source.call("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, "KEYS",
                        *keys[:len(keys) // 2 + 1])
            if len(keys) < 10:  # some are still there
                self.until(60, "a move is held", lambda: time.monotonic() >= began + hold_s)
        for node in [target, source, *self.primaries()]:
            node.call("CLUSTER", "SETSLOT", slot, "NODE", target.id)

    def _move_at_once(self, slot, source, target):
        """As Valkey 9 does it."""
        def migrations():
            return {job["name"]: job["state"] for job in
                    (dict(zip(words[::2], words[1::2]))
                     for words in source.call("CLUSTER", "GETSLOTMIGRATIONS"))}

        before = set(migrations())
        source.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)

        def has_moved():
            state, = (state for name, state in migrations().items() if name not in before)
            require(state not in ("failed", "canceled"), f"a move of a slot has {state}")
            return state == "success"

        self.until(30, "the slot has moved", has_moved)


# ---- a primary and its Sentinels ------------------------------------------------------


class Sentinel:
    """One redis-server --sentinel. It remembers what it learns in its file."""

    def __init__(self, rig, primary_port):
        self.rig, self.port = rig, free_port()
        self.directory = rig.make_directory("sentinel")
        self.file = os.path.join(self.directory, "conf")
        with open(self.file, "w") as file:
            file.write(SENTINEL_CONFIG.format(port=self.port, directory=self.directory, master=MASTER,
                                              primary=primary_port, quorum=QUORUM))
        self.call = Redis(("127.0.0.1", self.port), timeout=1.0)
        self.start()

    def start(self):
        program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.child = self.rig.start(["redis-server", self.file, "--sentinel"],
                                        executable=program, stdout=log, stderr=log)
        eventually(60, "a Sentinel answers", lambda: self.ask("PING") == "PONG")

    def ask(self, *words):
        """None: it does not answer."""
        try:
            return self.call(*words)
        except (OSError, RedisError):
            return None

    def named(self):
        """The port of the primary, or None."""
        place = self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        return int(place[1]) if place else None

    def knows(self, sentinels, replicas):
        words = self.ask("SENTINEL", "MASTER", MASTER)
        facts = dict(zip(words[::2], words[1::2])) if words else {}
        good = [self.healthy(dict(zip(words[::2], words[1::2])))
                for words in self.ask("SENTINEL", "REPLICAS", MASTER) or []]
        return (facts.get("flags") == "master" and sum(good) == replicas and
                int(facts["num-other-sentinels"]) == sentinels - 1)

    @staticmethod
    def healthy(replica):
        return replica["flags"] == "slave" and replica["master-link-status"] == "ok"

    def switches(self):
        """When it learned that another server is the primary, by its log; ns of the boot clock."""
        ahead = time.time_ns() - boottime_ns()
        with open(os.path.join(self.directory, "log"), errors="replace") as log:
            times = re.findall(r"^\d+:X (\d+ \w+ \d+ [\d:.]+) \S \+switch-master ", log.read(), re.MULTILINE)
        return [int(datetime.datetime.strptime(text, "%d %b %Y %H:%M:%S.%f").timestamp() * 1e9) - ahead
                for text in times]

    def kill(self):
        self.call.close()
        self.child.kill()
        self.child.wait()


class Group:
    """The servers (one is the primary) and the Sentinels."""

    def __init__(self, rig, replicas, sentinels, args=()):
        self.args = [*args, "--repl-diskless-sync-delay", "0"]
        primary = rig.server(tcp=True, aof=True, args=self.args)
        self.servers = [primary] + [
            rig.server(tcp=True, aof=True,
                       args=self.args + ["--replicaof", "127.0.0.1", str(primary.port)])
            for _ in range(replicas)]
        self.sentinels = [Sentinel(rig, primary.port) for _ in range(sentinels)]
        places = ",".join(f"127.0.0.1:{s.port}" for s in self.sentinels)
        self.url = f"redis+sentinel://{places}/{MASTER}"
        self.settle()

    def majority(self):
        """The port that most Sentinels name, or None."""
        named = [s.named() for s in self.sentinels]
        best = max(named, key=named.count)
        return best if named.count(best) > len(named) // 2 else None

    def by_port(self, port):
        return next((s for s in self.servers if s.port == port), None)

    @staticmethod
    def is_primary(server):
        try:
            return server.call("ROLE")[0] == "master"
        except (OSError, RedisError):
            return False

    def primary(self):
        """The server that most Sentinels name, if its role agrees, or None."""
        server = self.by_port(self.majority())
        return server if server and self.is_primary(server) else None

    def settle(self, seconds=60):
        """Each Sentinel knows all others and sees every replica in step."""
        eventually(seconds, "the Sentinels see all replicas",
                   lambda: self.primary() and all(
                       s.knows(len(self.sentinels), len(self.servers) - 1)
                       for s in self.sentinels), every=0.05)
        return self.primary()

    def start_as_replica(self, server):
        """A killed server comes back as its Sentinels would have configured it."""
        primary = self.primary()
        require(primary and primary is not server, "there is no other primary")
        server.args = self.args + ["--replicaof", "127.0.0.1", str(primary.port)]
        primary.args = self.args
        server.start()
