#!/usr/bin/env python3
"""What tests/transcripts/play takes for the same output, and what not; and what it does when a worker ends."""
import importlib.machinery
import importlib.util
import os
import sys
import types

HERE = os.path.dirname(os.path.realpath(__file__))

# What stands in a transcript, what is printed, and whether that is the same.
ROWS = (
    (["a  b"], ["a b"], True),
    (["a"], ["b"], False),
    (["a"], ["a", "b"], False),
    ([], ["a"], False),
    (["a ..."], ["a b"], True),
    (["a", "..."], ["a", "b", "c"], True),
    (["<...>"], ["a"], True),
    (["<...>"], ["a", "b"], False),
    (["! a [exit 1]"], ["! a [exit 1]"], True),
    (["! ... [exit 1]"], ["! a [exit 1]"], True),
    (["[exit 1]"], ["[exit 1]"], True),
    # A failure is no part of what is left out.
    (["a ..."], ["a b [exit 1]"], False),
    (["..."], ["a", "b [exit 1]"], False),
    (["<...>"], ["a [exit 1]"], False),
    (["..."], ["[exit none]"], False),
    (["! ... [exit 1]"], ["! a [exit 2]"], False),
    (["! ... [exit 1]"], ["! a"], False),
    ([], ["[exit 1]"], False),
)


# In place of the command: a worker that ends or does not, and a wait that nobody ends.
COMMAND = """#!/bin/sh
case "$1 $3" in
"worker fails") echo "no Redis"; exit 69 ;;
*) exec sleep 1000 ;;
esac
"""


def ends(fixture, player, steps):
    """What the last of these steps prints, and the faults."""
    server = types.SimpleNamespace(url="", socket="", pid=0)
    session = player.Session(fixture, server)
    for step in steps:
        found = session.run(step)
    faults = session.faults()
    session.close()
    return found, faults


def play_workers(player):
    """A command that waits in vain ends with its worker; one that is stopped is no fault."""
    support = sys.modules["support"]
    fixture, failed = support.Fixture(), []
    try:
        os.chmod(fixture.write("holdfast", COMMAND), 0o755)
        player.HOLDFAST, player.STEP_S = fixture.path("holdfast"), 60
        began = support.fair_s()
        found, faults = ends(fixture, player, ["serve fails; holdfast enqueue --wait"])
        if found != ["[exit none]"] or "ended with 69" not in "".join(faults[:1]) or faults[1:] != ["    no Redis"]:
            failed.append((found, faults))
        if support.fair_s() - began > player.STEP_S / 3:
            failed.append((found, "late"))
        for signal in "TERM", "KILL":
            found, faults = ends(fixture, player, ["serve goes on", f"stop {signal}; echo on"])
            if found != ["on"] or faults:
                failed.append((found, faults))
    finally:
        fixture.close()
    for found, faults in failed:
        print(f"[  FAILED  ] a worker in the background: {found}, {faults}")
    return failed


def main():
    path = os.path.join(os.path.dirname(HERE), "transcripts", "play")
    loader = importlib.machinery.SourceFileLoader("play", path)
    player = importlib.util.module_from_spec(importlib.util.spec_from_loader("play", loader))
    loader.exec_module(player)
    failed = [row for row in ROWS if player.matches(*row[:2]) != row[2]]
    for expected, found, same in failed:
        print(f"[  FAILED  ] {expected} and {found} are {'the same' if same else 'not the same'}")
    print(f"{len(ROWS)} outputs")
    return 1 if failed + play_workers(player) else 0


if __name__ == "__main__":
    sys.exit(main())
