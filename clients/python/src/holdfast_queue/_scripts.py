"""The scripts that a client sends, as the build has written them: byte for byte those of all languages."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from .errors import HoldfastError


@functools.lru_cache(None)
def script(name: str) -> tuple[str, bytes]:
    """The SHA-1 of a script, and its text."""
    import hashlib  # loads OpenSSL, which a process that enqueues nothing does not need
    here = Path(__file__)
    folder = Path(os.environ.get("HOLDFAST_LUA") or here.parent / "lua")
    if not folder.is_dir() and len(here.parents) > 4:
        folder = here.parents[4] / "build" / "lua"  # in a clone
    try:
        text = (folder / f"{name}.lua").read_bytes()
    except OSError as error:
        raise HoldfastError(f"expected the script {name}.lua in {folder}, {error.strerror}: install the wheel, "
                            "build the clone, or name the folder of the scripts in HOLDFAST_LUA") from None
    return hashlib.sha1(text).hexdigest(), text
