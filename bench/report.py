"""How the bench's figures get into docs/performance.md: what is between `<!-- bench NAME -->` and
`<!-- end -->` is made here, and nothing else of the file is touched."""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), "questions"))
from measure import HEADERS, cells, lines_below, number  # noqa: E402

BUSY_LOAD = 0.5
BEGIN, END = "<!-- bench {} -->", "<!-- end -->"


def too_busy(load):
    """Why figures of now would not be worth writing, or None."""
    return None if load <= BUSY_LOAD else (
        f"the machine is busy (load average {load:.2f}, at most {BUSY_LOAD}): nothing is written "
        "that was measured now; --anyway measures and only prints")


# ---- blocks ---------------------------------------------------------------------------


def blocks_of(text):
    """The names of the marked blocks, in order."""
    return re.findall(r"^<!-- bench (\S+) -->$", text, re.M)


def replace_blocks(text, blocks):
    """The text with these blocks (name -> content) anew. ValueError: one is not in it, is in it
    twice, or does not end before the next begins."""
    for name, content in blocks.items():
        begin = BEGIN.format(name)
        parts = re.split(f"^{re.escape(begin)}$", text, flags=re.M)
        if len(parts) != 2:
            raise ValueError(f"expected one line `{begin}`, found {len(parts) - 1}")
        inside, end, after = parts[1].partition(f"\n{END}\n")
        if not end or "\n<!-- bench " in inside:
            raise ValueError(f"expected a line `{END}` after `{begin}`")
        text = f"{parts[0]}{begin}\n{content.strip(chr(10))}\n{END}\n{after}"
    return text


# ---- tables ---------------------------------------------------------------------------


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def markdown_table(headers, rows):
    """Figures to the right, as far as a column has nothing else."""
    rows = [[cell(value) for value in row] for row in rows]
    right = [any(row[i] for row in rows) and all(re.fullmatch(r"[-\d.,]*", row[i]) for row in rows)
             for i in range(len(headers))]
    lines = ["| " + " | ".join(headers) + " |",
             "|" + "|".join("--:" if at_right else "---" for at_right in right) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def block(results):
    """The results of one question, one for each setting of appendonly."""
    parts = []
    for result in results:
        settings = {name: value for name, value in result["settings"].items() if name != "quick"}
        told = ", ".join(f"`{name} {number(value)}`" if name == "appendonly" else
                         f"{name} {number(value)}" for name, value in settings.items())
        parts.append(f"With {told}:\n\n" + markdown_table(HEADERS, map(cells, result["rows"])))
    below = []
    for result in results:
        below += [line for line in lines_below(result) if line not in below]
    if below:
        parts.append("\n".join(f"- {line}" for line in below))
    return "\n\n".join(parts)


# ---- the machine ----------------------------------------------------------------------


def first_line(*words):
    """What a program says first, or None where there is none."""
    if not shutil.which(words[0]):
        return None
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return (done.stdout.decode(errors="replace").strip().splitlines() or [None])[0]


def cpu_model():
    with open("/proc/cpuinfo") as file:
        found = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.M)
    return found[1] if found else platform.machine()


def memory_gib():
    with open("/proc/meminfo") as file:
        return int(re.search(r"^MemTotal:\s*(\d+)", file.read(), re.M)[1]) / 2 ** 20


def versions(build):
    """name -> version of everything that takes part; what is not installed is left out."""
    found = {}
    line = first_line("redis-server", "--version")
    if line:
        found["Redis"] = re.search(r"v=(\S+)", line)[1]
    for library in ("hiredis", "libuv"):
        found[library] = first_line("pkg-config", "--modversion", library)
    for path in glob.glob(os.path.join(build, "CMakeFiles/*/CMakeCCompiler.cmake")):
        with open(path) as file:
            text = file.read()
        compiler = [re.search(rf'set\(CMAKE_C_COMPILER_{word} "([^"]*)"', text)[1]
                    for word in ("ID", "VERSION")]
        found["compiler"] = " ".join(compiler)
    line = first_line("node", "--version")
    found["Node"] = line and line.lstrip("v")
    line = first_line("beanstalkd", "-v")
    found["beanstalkd"] = line and line.split()[-1]
    line = first_line("sidekiq", "--version")
    found["Sidekiq"] = line and line.split()[-1]
    return {name: version for name, version in found.items() if version}


def machine(build, date, load):
    """Rows about it."""
    system = platform.uname()
    rows = [("measured", f"{date}, load average {load:.2f} before"),
            ("machine", f"{os.cpu_count()} cores, {cpu_model()}, {memory_gib():.1f} GiB"),
            ("kernel", f"{system.system} {system.release}")]
    return rows + list(versions(build).items())


def measured(rows):
    """The rows about the machine that matter for one question, as a sentence."""
    found = dict(rows)
    redis = f", Redis {found['Redis']}" if "Redis" in found else ""
    return f"Measured {found['measured']}: {found['machine']}{redis}."
