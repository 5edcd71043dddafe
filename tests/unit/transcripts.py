#!/usr/bin/env python3
"""What tests/transcripts/play takes for the same output, and what not."""
import importlib.machinery
import importlib.util
import os
import sys

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


def main():
    path = os.path.join(os.path.dirname(HERE), "transcripts", "play")
    loader = importlib.machinery.SourceFileLoader("play", path)
    player = importlib.util.module_from_spec(importlib.util.spec_from_loader("play", loader))
    loader.exec_module(player)
    failed = [row for row in ROWS if player.matches(*row[:2]) != row[2]]
    for expected, found, same in failed:
        print(f"[  FAILED  ] {expected} and {found} are {'the same' if same else 'not the same'}")
    print(f"{len(ROWS)} outputs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
