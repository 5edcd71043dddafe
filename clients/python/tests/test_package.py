"""What backend.py builds: wheels and source distributions, by the standard library alone."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

CLIENT = Path(__file__).parents[1]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if sys.version_info < (3, 11):
        pytest.skip("it needs Python 3.11, or tomli")
    if "HOLDFAST_LUA" not in os.environ:
        pytest.skip("HOLDFAST_LUA names the scripts")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    spec = importlib.util.spec_from_file_location("backend", CLIENT / "backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_files_give_the_same_bytes(backend: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    for build in (backend.build_wheel, backend.build_sdist, backend.build_editable):
        name = build(tmp_path)
        assert build(tmp_path / "again") == name
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_record_of_a_wheel_is_right(backend: ModuleType, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / backend.build_wheel(tmp_path)) as wheel:
        record = wheel.read(f"{backend.stem()}.dist-info/RECORD").decode().splitlines()
        assert [line.split(",")[0] for line in record] == wheel.namelist()
        for line in record[:-1]:
            path, digest, size = line.split(",")
            data = wheel.read(path)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={found}", len(data))
        assert wheel.read("holdfast_queue/lua/enqueue.lua") == Path(
            os.environ["HOLDFAST_LUA"], "enqueue.lua").read_bytes()
        assert not any(name.startswith("holdfast_queue/bin") for name in wheel.namelist())


def test_a_wheel_can_be_built_from_a_source_distribution(backend: ModuleType, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / backend.build_sdist(tmp_path)) as sdist:
        for member in sdist.getmembers():
            assert member.name.startswith(backend.stem() + "/") and member.isfile()
        sdist.extractall(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_LUA"}
    subprocess.run([sys.executable, "-c", "import backend; backend.build_wheel('.')"], check=True,
                   cwd=tmp_path / backend.stem(), env=environment)
    name = backend.build_wheel(tmp_path)
    assert (tmp_path / backend.stem() / name).read_bytes() == (tmp_path / name).read_bytes()


def test_a_missing_script_is_named(backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_LUA", str(tmp_path))
    with pytest.raises(SystemExit, match="expected the script .*register.lua"):
        backend.build_wheel(tmp_path)
    assert not list(tmp_path.iterdir())
