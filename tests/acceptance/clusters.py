"""A cluster of primaries with one replica each, and what its operator does to it: failovers, and
slots that move."""
import binascii
import math
import signal
import time

from support import RedisError, eventually, free_port, require

SLOTS, FAILOVER_S = 16384, 6
# How long a node may be silent, ms. BRIEF: the nodes of a new cluster soon know each other, and a failover is soon.
BRIEF_MS, PATIENT_MS = 1000, 60000
# How a slot moves.
STEP_BY_STEP, ATOMIC = "step by step", "atomic"


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
