"""The scripts of a queue, called as the library calls them: for tests that go through millions of ms of
virtual time. Every call returns the answer of the script, whose second element is Redis's time in ms."""
import hashlib
import json
import os

from support import BUILD, RedisError


class Scripts:
    def __init__(self, server, queue="q", producer=""):
        self.server, self.prefix, self.producer = server, f"hf:{{{queue}}}:", producer
        self.texts, self.numbers, self.claims, self.shown = {}, 0, 0, ""

    def run(self, name, *args):
        if name not in self.texts:
            with open(os.path.join(BUILD, "lua", name + ".lua"), "rb") as file:
                text = file.read()
            self.texts[name] = hashlib.sha1(text).hexdigest(), text
        sha1, text = self.texts[name]
        try:
            return self.server.call("EVALSHA", sha1, 1, self.prefix, *args)
        except RedisError as error:
            if not str(error).startswith("NOSCRIPT"):
                raise
            return self.server.call("EVAL", text, 1, self.prefix, *args)

    def key(self, name):
        return self.prefix + name

    def enqueue(self, jobs, number=None, checked=True):
        """jobs: (id, due, options, payload), ...; number: of an earlier request, sent again."""
        words = []
        for job_id, due, options, payload in jobs:
            line = json.dumps({"type": "t", "created": 1, **options}, separators=(",", ":"))
            words += [job_id, due, line + "\n" + payload]
        if self.producer and number is None:
            self.numbers += 1
        return self.run("enqueue_with", self.producer, number or self.numbers, 0, 86400000, 0, *words,
                        *(["C"] if checked else []))

    def claim(self, worker, most, lease, baton=""):
        self.claims += 1
        answer = self.run("claim", worker, self.claims, most, lease, 0, 60000, baton, most,
                          "0 10000 15552000000")
        now, fence, pairs = answer[1], answer[2], answer[8:]
        if len(pairs) == 2 and isinstance(pairs[0], list):
            pairs = [word for pair in zip(*pairs) for word in pair]
        return now, fence, list(zip(pairs[::2], pairs[1::2]))

    def complete(self, worker, jobs):
        """jobs: (id, fence, key or None), ...; neighbours may share a fence."""
        fences = [word for job in jobs for word in (job[1], 1)]
        keys = [job[2] or "" for job in jobs] if any(job[2] for job in jobs) else []
        return self.run("complete", worker, 0, "0 leaving" if keys else 0, len(jobs), *fences,
                        *(job[0] for job in jobs), *keys)

    def retry(self, worker, job_id, fence, delay):
        return self.run("retry", worker, 0, 0, job_id, fence, delay, "failed", 5, 0)

    def release(self, worker, job_id, fence, due, text=""):
        return self.run("release", worker, 0, 0, job_id, fence, due, "started", text)

    def bury(self, worker, job_id, fence, most=10000):
        return self.run("bury", worker, 0, 0, most, 15552000000, job_id, fence, 1, "attempts", "failed", 5)

    def unclaim(self, worker):
        return self.run("unclaim", worker, self.claims)

    def cancel(self, job_id):
        return self.run("cancel", 0, job_id)

    def delete(self, *job_ids):
        return self.run("delete", 0, 0, *job_ids)

    def requeue(self, *job_ids):
        return self.run("requeue", 0, 0, 0, 0, 0, *job_ids)

    def purge(self, state, before, most, name):
        return self.run("purge", 0, state, before, most, name)

    def check(self, worker):
        """All workers are on one machine, whose boot clock is Redis's."""
        seconds, micros = self.server.call("TIME")
        boot = int(seconds) * 1000 + int(micros) // 1000
        answer = self.run("check", worker, 60000, 0, 30000, "machine", boot, self.shown)
        clock, number, _ = answer[7][0]
        self.shown = f"{number}:{clock}:{answer[1]}:{answer[1]}" if clock else ""
        return answer
