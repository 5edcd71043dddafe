"""`holdfast conform`, which plays the worker with any program, finds nothing wrong with this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parent import SRC

APP = Path(__file__).parent / "app_conform.py"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_conform(holdfast: str, mode: str) -> None:
    if subprocess.run([holdfast, "conform", "--list"], capture_output=True).returncode != 0:
        pytest.skip("this command has no conform")
    done = subprocess.run([holdfast, "conform", "--timeout", "2m", "--", sys.executable, str(APP), mode],
                          capture_output=True, text=True, timeout=2000, env={**os.environ, "PYTHONPATH": str(SRC)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: case" not in done.stdout.replace("parallel", "") or mode == "sync"
