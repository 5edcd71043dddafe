"""A primary, its replicas and the Sentinels that watch them, for the scripts about failovers."""
import os
import shutil

from support import Redis, RedisError, eventually, free_port, require

MASTER, QUORUM = "m", 2
CONFIG = """port {port}
bind 127.0.0.1
dir {directory}
sentinel monitor {master} 127.0.0.1 {primary} {quorum}
sentinel down-after-milliseconds {master} 1000
sentinel failover-timeout {master} 3000
sentinel parallel-syncs {master} 3
"""


class Sentinel:
    """One redis-server --sentinel. It remembers what it learns in its file."""

    def __init__(self, rig, primary_port):
        self.rig, self.port = rig, free_port()
        self.directory = rig.make_directory("sentinel")
        self.file = os.path.join(self.directory, "conf")
        with open(self.file, "w") as file:
            file.write(CONFIG.format(port=self.port, directory=self.directory, master=MASTER,
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
