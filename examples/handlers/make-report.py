#!/usr/bin/python3
"""A handler in Python. It may say more than an exit code can: one line of JSON on the
descriptor HOLDFAST_VERDICT_FD."""
import json
import os
import sys


def verdict(**members):
    with open(int(os.environ["HOLDFAST_VERDICT_FD"]), "w", encoding="utf-8") as out:
        json.dump(members, out)


text = sys.stdin.buffer.read().decode(errors="replace")
if not text.strip():
    verdict(verdict="dead", error="nothing to report")
elif text.startswith("busy") and os.environ["HOLDFAST_ATTEMPT"] == "1":
    verdict(verdict="retry", **{"in": "200ms"}, error="the printer is busy")
else:
    # Whoever stores the report refuses one whose fence is lower than that of the last.
    print(f"report of {len(text.split())} words, fence {os.environ['HOLDFAST_FENCE']}")
