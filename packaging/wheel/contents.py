"""What is inside the static command: the libraries, their licences, and a list of them for scanners (CycloneDX). As a
program, contents.py [CPU], it prints the list."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "clients" / "python"))
import backend  # noqa: E402


def sources(cpu="x64"):
    """Each package that is inside: its version, its licence, and the hashes of its files."""
    packages = {}
    for line in (HERE / "sources.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, version, licence, file, digest = line.split()
            packages.setdefault(name, (version, licence, {}))[2][file] = digest
    if cpu == "arm64":  # the compiler brings its musl (packaging/wheel/libraries)
        pin = re.compile(r"^(\w+)==(\S+) --hash=sha256:(\w+)$", re.M)
        zig, version, digest = pin.search((HERE / "zig.txt").read_text()).groups()
        packages["musl"] = (packages["musl"][0].split("-")[0], packages["musl"][1], {})
        packages[zig] = (version, "MIT", {f"{zig}-{version}": digest})
    return packages


def purl(name, version):
    if name == "ziglang":
        return f"pkg:pypi/{name}@{version}"
    if "-" not in version:
        return f"pkg:generic/{name}@{version}"
    return f"pkg:deb/debian/{name}@{version.replace('~', '%7E')}?arch=source&distro=trixie"


def bill(packages, cpu="x64"):
    """What is inside, for scanners that look for known defects."""
    about = backend.project()
    components = [
        {"type": "library", "bom-ref": name, "name": name, "version": version,
         "licenses": [{"license": {"id": licence}}],
         "purl": purl(name, version),
         "externalReferences": [{"type": "distribution", "url": file, "hashes": [{"alg": "SHA-256", "content": digest}]}
                                for file, digest in files.items()]}
        for name, (version, licence, files) in sorted(packages.items())]
    if cpu == "x64":
        gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, check=True, text=True).stdout.strip()
        components.append({"type": "library", "bom-ref": "libgcc", "name": "libgcc", "version": gcc,
                           "licenses": [{"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}]})
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(backend.epoch())),
                     "component": {"type": "application", "bom-ref": "holdfast", "name": "holdfast",
                                   "version": about["version"], "licenses": [{"license": {"id": about["license"]}}]}},
        "components": components,
        "dependencies": [{"ref": "holdfast", "dependsOn": [entry["bom-ref"] for entry in components]}],
    }


def licences(packages, folder):
    """The texts of their licences, by name of the library and of the file."""
    texts = {}
    for name in packages:
        found = sorted(Path(folder, name).iterdir()) if Path(folder, name).is_dir() else []
        if not found:
            raise SystemExit(f"expected the licence of {name} in {folder}, found none")
        texts |= {f"{name}/{path.name}": path.read_bytes() for path in found}
    return texts


def expression(packages):
    """All licences together, as SPDX writes it."""
    return " AND ".join(sorted({licence for _, licence, _ in packages.values()} | {backend.project()["license"]}))


if __name__ == "__main__":
    print(json.dumps(bill(sources(*sys.argv[1:]), *sys.argv[1:]), indent=1))
