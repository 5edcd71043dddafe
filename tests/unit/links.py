#!/usr/bin/env python3
"""Follows each relative link of the documents, and each anchor: links.py [FOLDER].

Without a folder these are the documents of the sources. A link must lead to a file of the same tree,
and its anchor to a heading there. The check tests itself first with documents that are wrong."""
import gzip
import os
import re
import sys
import tempfile

SOURCE = os.environ.get("HF_SOURCE", ".")
LINK = re.compile(r"""!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+)>?(?:\s+"[^"]*")?\s*\)
                   |^\[[^\]]+\]:\s+<?([^\s>]+)
                   |<(?:a|img)\s[^>]*(?:href|src)="([^"]+)""", re.X | re.M)


def prose(path):
    """The text without its blocks and spans of code, which have no links. Debian compresses the one of CHANGELOG.md."""
    with open(path, "rb") as file:
        data = file.read()
    text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
    text = re.sub(r"^(```+|~~~+).*?^\1\s*$", "", text, flags=re.M | re.S)
    return re.sub(r"(`+)[^`]+?\1", lambda span: span.group() if "](" not in span.group() else "", text)


def anchors(path):
    """What GitHub makes of the headings."""
    found, counts = set(), {}
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", prose(path), re.M):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        again = counts.get(slug, 0)
        counts[slug] = again + 1
        found.add(f"{slug}-{again}" if again else slug)
    return found


def documents(folder):
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if folder != SOURCE or name in ("docs", "examples")]
        yield from (os.path.join(place, name) for name in files if name.endswith(".md"))


def wrong(folder):
    """[what is wrong], and how many links were followed."""
    found, n = [], 0
    for document in sorted(documents(folder)):
        for link in map(lambda match: next(filter(None, match.groups())), LINK.finditer(prose(document))):
            if re.match(r"[a-z][a-z+.-]*:", link):
                continue
            n += 1
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(document), path)) if path else document
            shown = os.path.relpath(document, folder)
            if os.path.relpath(target, folder).startswith("..") or not os.path.exists(target):
                found.append(f"{shown}: expected a file of this tree, found {link}")
            elif anchor and (not target.endswith(".md") or anchor not in anchors(target)):
                found.append(f"{shown}: expected a heading for the anchor, found {link}")
    return found, n


def test_itself():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"good.md": "# One `two`, three\n## It's\n## It's\n[a](#one-two-three) [b](sub/c.md#its-1)\n",
                           "sub/c.md": "# Its\n## Its\n[up](../good.md#its) `[no](x)`\n```\n[no](y)\n```\n"}.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        assert wrong(folder) == ([], 3), wrong(folder)
        with gzip.open(os.path.join(folder, "packed.gz"), "wt", encoding="utf-8") as file:
            file.write("# Packed\n[a](good.md#its)\n")
        os.symlink("packed.gz", os.path.join(folder, "packed.md"))
        assert wrong(folder) == ([], 4), wrong(folder)
        with open(os.path.join(folder, "bad.md"), "w", encoding="utf-8") as file:
            file.write("[a](gone.md) [b](good.md#no) ![c](p.svg) [d](../outside)\n[e]: gone.txt\n"
                       '<img src="gone.svg"> [`f` [g]](sub/c.md#no)\n')
        assert len(wrong(folder)[0]) == 7, wrong(folder)[0]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else SOURCE
    test_itself()
    found, n = wrong(folder)
    print(*found, f"{n} links were followed", sep="\n")
    sys.exit(1 if found or n == 0 else 0)


main()
