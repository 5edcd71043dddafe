#!/usr/bin/python3 -B
"""links.py SITE: every link of its pages to another page, or to a place in one, leads there."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, _tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def is_broken(pages, page, link):
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    known = pages.get(target)
    return not target.exists() or bool(parts.fragment and known and urllib.parse.unquote(parts.fragment) not in known.ids)


def main(site):
    # print.html repeats all pages in one, 404.html is served from any folder, and toc.html is part of a frame.
    left_out = {site / name for name in ("print.html", "404.html", "toc.html")}
    pages = {path: Page(path) for path in site.rglob("*.html") if path not in left_out}
    broken = [f"{page.relative_to(site)}: {link}" for page, content in sorted(pages.items()) for link in content.links
              if is_broken(pages, page, link)]
    print(f"{len(pages)} pages, {len(broken)} links that lead nowhere")
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
