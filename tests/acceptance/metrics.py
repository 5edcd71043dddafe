"""Metrics for acceptance scripts: asks for them, reads their text, and knows the names of docs/metrics.md."""
import collections
import http.client
import os
import re
import socket

from support import SOURCE, eventually, require

OPEN = "application/openmetrics-text; version=1.0.0"
SAMPLE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


class Connection(http.client.HTTPConnection):
    """To 127.0.0.1:PORT, or to a path."""

    def __init__(self, at, seconds):
        super().__init__("127.0.0.1", at if isinstance(at, int) else 0, timeout=seconds)
        self.at = at

    def connect(self):
        if isinstance(self.at, int):
            super().connect()
            return
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.at)


def ask(at, path, method="GET", accept=None, seconds=60):
    """(status, Content-Type, text)"""
    connection = Connection(at, seconds)
    try:
        connection.request(method, path, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type"), answer.read().decode()
    finally:
        connection.close()


def status(at, path):
    """0: nobody answers."""
    try:
        return ask(at, path)[0]
    except (OSError, http.client.HTTPException):
        return 0


class Figures:
    """A text of metrics: .families {name: type}, .samples {(name, ((label, value), ...)): number}"""

    def __init__(self, text):
        self.text, self.families, self.samples, family = text, {}, {}, None
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                family, kind = line.split()[2:]
                require(family not in self.families, f"{family} comes twice")
                self.families[family] = kind
            elif line and not line.startswith("#"):
                found = SAMPLE.match(line)
                require(found, f"this is no sample: {line}")
                key = found[1], tuple(sorted(LABEL.findall(found[2] or "")))
                require(key not in self.samples, f"{key} comes twice")
                require(found[1].startswith(family), f"{found[1]} stands in {family}")
                self.samples[key] = float(found[3])

    def get(self, name, **labels):
        """The sum of all samples with these labels; None: there is none."""
        found = [value for (n, have), value in self.samples.items()
                 if n == name and labels.items() <= dict(have).items()]
        return sum(found) if found else None

    def labels(self, family):
        """All names of labels in a family; without `le`."""
        ends = ("", "_bucket", "_sum", "_count") if self.families[family] == "histogram" else ("",)
        return {name for (n, have) in self.samples for name, _ in have
                if n in [family + end for end in ends]} - {"le"}


def answer(at, **options):
    """(Content-Type, text) of the metrics. A worker on a busy machine may be late at first."""
    def asked():
        code, kind, text = ask(at, "/metrics", **options)
        require(code in (200, 503), f"/metrics: {code}: {text[:200]}")
        return code == 200 and (kind, text)
    return eventually(60, "there are metrics", asked)


def figures(at, **options):
    return Figures(answer(at, **options)[1])


def documented(title):
    """{name: (type, labels)} of a table of docs/metrics.md."""
    with open(os.path.join(SOURCE, "docs/metrics.md")) as file:
        section = file.read().partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(holdfast_\w+)` \| (\w+) \|([^|]*)\|", section, re.M)
    require(rows, f"docs/metrics.md has no names in '{title}'")
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def agree(found, title):
    """What is emitted is what the document has."""
    want = documented(title)
    require(set(found.families) == set(want), f"{title}: {set(found.families) ^ set(want)} is only in one place")
    for name, (kind, labels) in want.items():
        require(found.families[name] == kind, f"{name} is a {found.families[name]}, not a {kind}")
        require(found.labels(name) == labels, f"{name} has the labels {found.labels(name)}, not {labels}")


def alerts():
    """The alerts of the rules are those of the document."""
    with open(os.path.join(SOURCE, "packaging/prometheus/holdfast.rules.yml")) as file:
        rules = set(re.findall(r"- alert: (\w+)", file.read()))
    with open(os.path.join(SOURCE, "docs/metrics.md")) as file:
        names = set(re.findall(r"^\| `(Holdfast\w+)` \|", file.read(), re.M))
    require(rules == names, f"alerts: {rules ^ names} is only in one place")


def names_used():
    """What the rules and the dashboard of Grafana ask for is documented."""
    known = {**documented("Names of a worker"), **documented("Names of the exporter")}
    for path in "prometheus/holdfast.rules.yml", "grafana/holdfast.json":
        with open(os.path.join(SOURCE, "packaging", path)) as file:
            used = set(re.findall(r"holdfast_[a-z_]+", file.read()))
        used = {re.sub(r"_(bucket|count|sum)$", "", name) for name in used}
        require(used <= set(known), f"{path} asks for {used - set(known)}")


def total(list_of_figures, name, **labels):
    return sum(f.get(name, **labels) or 0 for f in list_of_figures)


def by_label(found, name, label):
    sums = collections.Counter()
    for (n, have), value in found.samples.items():
        if n == name:
            sums[dict(have).get(label)] += value
    return sums
