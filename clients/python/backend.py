"""Builds this package with nothing but Python's standard library (PEP 517, PEP 660). The same files and the same
SOURCE_DATE_EPOCH give the same bytes.

The scripts that a client sends are those of the build of the repository (build/lua, or the folder that HOLDFAST_LUA
names), so there is one text of each. A source distribution carries them along."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import stat
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
SCRIPTS = ("register", "enqueue", "enqueue_with", "await", "job", "cancel", "requeue")
IN_SDIST = ("pyproject.toml", "backend.py", "README.md")
PURE = "py3-none-any"


class Entry(NamedTuple):
    data: bytes
    executable: bool = False


Files = dict[str, Entry]


# ---- what goes in ----

def project() -> dict[str, Any]:
    return tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def stem() -> str:
    about = project()
    return f"{about['name'].replace('-', '_')}-{about['version']}"


def scripts(folder: Path | None = None) -> Files:
    """lua/NAME.lua of each script. Without a folder: those of a source distribution, or of the build."""
    if folder is None:
        named = os.environ.get("HOLDFAST_LUA")
        inside = HERE / "lua"
        folder = Path(named) if named else inside if inside.is_dir() else HERE.parents[1] / "build" / "lua"
    files = {}
    for name in SCRIPTS:
        script = folder / f"{name}.lua"
        if not script.is_file():
            raise SystemExit(f"holdfast-queue: expected the script {script}: run ./dev build first, "
                             "or name the folder in HOLDFAST_LUA")
        files[f"lua/{name}.lua"] = Entry(script.read_bytes())
    return files


def modules() -> Files:
    return {str(path.relative_to(HERE / "src")): Entry(path.read_bytes())
            for path in sorted((HERE / "src").rglob("*")) if path.suffix == ".py" or path.name == "py.typed"}


def licence() -> bytes:
    here = HERE / "LICENSE"
    return (here if here.is_file() else HERE.parents[1] / "LICENSE").read_bytes()


def metadata(licences: list[str], expression: str | None = None) -> bytes:
    about = project()
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}", f"Version: {about['version']}",
             f"Summary: {about['description']}", f"License-Expression: {expression or about['license']}"]
    lines += [f"License-File: {name}" for name in licences]
    lines += [f"Classifier: {name}" for name in about["classifiers"]]
    lines += [f"Requires-Python: {about['requires-python']}"]
    lines += [f"Requires-Dist: {name}" for name in about["dependencies"]]
    for extra, names in about["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f"Requires-Dist: {name}; extra == '{extra}'" for name in names]
    lines += ["Description-Content-Type: text/markdown", "", (HERE / about["readme"]).read_text()]
    return "\n".join(lines).encode()


def entry_points() -> bytes:
    return "".join(f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
                   for group, entries in project()["entry-points"].items()).encode()


# ---- archives ----

def epoch() -> int:
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800)  # a ZIP archive begins in 1980


def write_wheel(folder: str | Path, tag: str, files: Files, licences: Files | None = None,
                expression: str | None = None) -> str:
    """The name of the wheel. `tag` may name several platforms (`a.b`); `licences` come beside our own."""
    info = f"{stem()}.dist-info"
    texts = {"LICENSE": Entry(licence()), **(licences or {})}
    python, abi, platforms = tag.split("-")
    wheel = ["Wheel-Version: 1.0", "Generator: holdfast-queue", f"Root-Is-Purelib: {str(tag == PURE).lower()}"]
    wheel += [f"Tag: {python}-{abi}-{platform}" for platform in platforms.split(".")]
    every = {**files,
             f"{info}/METADATA": Entry(metadata(sorted(texts), expression)),
             f"{info}/WHEEL": Entry("\n".join([*wheel, ""]).encode()),
             f"{info}/entry_points.txt": Entry(entry_points()),
             **{f"{info}/licenses/{name}": entry for name, entry in texts.items()}}
    record = io.StringIO()
    name = f"{stem()}-{tag}.whl"
    with zipfile.ZipFile(Path(folder, name), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(every, key=lambda path: (path.startswith(info), path)):
            digest = base64.urlsafe_b64encode(hashlib.sha256(every[path].data).digest()).rstrip(b"=").decode()
            record.write(f"{path},sha256={digest},{len(every[path].data)}\n")
            _add(archive, path, every[path])
        record.write(f"{info}/RECORD,,\n")
        _add(archive, f"{info}/RECORD", Entry(record.getvalue().encode()))
    return name


def _add(archive: zipfile.ZipFile, path: str, entry: Entry) -> None:
    item = zipfile.ZipInfo(path, time.gmtime(epoch())[:6])
    item.compress_type = zipfile.ZIP_DEFLATED
    item.create_system = 3  # Unix: the mode below counts
    item.external_attr = (stat.S_IFREG | (0o755 if entry.executable else 0o644)) << 16
    archive.writestr(item, entry.data)


def package(files: Files) -> Files:
    return {f"holdfast_queue/{name}": entry for name, entry in files.items()}


# ---- what pip calls ----

def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    return write_wheel(wheel_directory, PURE, {**modules(), **package(scripts())})


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    return write_wheel(wheel_directory, PURE, {"holdfast_queue.pth": Entry(f"{HERE / 'src'}\n".encode())})


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    files = {name: Entry((HERE / name).read_bytes()) for name in IN_SDIST}
    files |= {f"src/{name}": entry for name, entry in modules().items()}
    files |= scripts() | {"LICENSE": Entry(licence()), "PKG-INFO": Entry(metadata(["LICENSE"]))}
    name = f"{stem()}.tar.gz"
    with open(Path(sdist_directory, name), "wb") as raw, gzip.GzipFile("", "wb", 9, raw, epoch()) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            item = tarfile.TarInfo(f"{stem()}/{path}")
            item.size, item.mtime, item.mode = len(files[path].data), epoch(), 0o644
            archive.addfile(item, io.BytesIO(files[path].data))
    return name
