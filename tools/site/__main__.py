"""Builds the course as static pages: ``make site`` leaves them in ``build/site``.

Sphinx does it, with MyST-NB for notebooks and Furo for the looks, from a copy of the repository's
files: both editions of every chapter, the pictures, and the documents.  No cell is run: the solved
edition shows its stored outputs, whose replays and timelines play without a kernel.  The front
page alone runs something, the example that it shows.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.site.front import front_page

__all__ = ["EDITIONS", "build", "lay_out", "main"]

ROOT = Path(__file__).resolve().parent.parent.parent

#: Where Sphinx's configuration and the templates are.
HERE = Path(__file__).resolve().parent

#: The folders of both editions, and what a reader calls them.
EDITIONS = {"notebooks": "The chapters", "solutions": "The chapters, solved"}

#: The document that has the address of the repository.
SERVERS = ROOT / "docs" / "servers.md"

#: What stands in the address as long as the course is not published.
_UNKNOWN = "OWNER"

#: The address of the repository, as the badges have it.
_BADGE = re.compile(r"colab\.research\.google\.com/github/([^/]+/[^/]+)/blob/([^/]+)/")


def lay_out(source: Path) -> None:
    """Copy what the site is made of into a folder that is not there yet."""
    source.mkdir(parents=True)
    for edition, title in EDITIONS.items():
        (source / edition).mkdir()
        names = []
        for path in sorted((ROOT / edition).glob("[0-9][0-9]_*.ipynb")):
            shutil.copy(path, source / edition)
            names.append(path.stem)
        listed = "\n".join(names)
        (source / edition / "index.md").write_text(
            f"# {title}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n", encoding="utf-8"
        )
    shutil.copytree(ROOT / "imgs", source / "imgs")
    shutil.copytree(ROOT / "docs" / "recorded", source / "docs" / "recorded")
    documents = sorted((ROOT / "docs").glob("*.md"))
    for path in documents:
        text = path.read_text(encoding="utf-8").replace("](../README.md", "](../index.md")
        if path == SERVERS:
            text = _for_readers(text)
        # programs are no pages
        text = re.sub(r"\[([^\]]*)\]\(\.\./(tests/[^)]*)\)", _to_repository, text)
        (source / "docs" / path.name).write_text(text, encoding="utf-8")
    listed = "\n".join(f"docs/{path.stem}" for path in documents)
    toc = "\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"
    editions = "\n".join(f"{edition}/index" for edition in EDITIONS)
    chapters = [path.stem for path in sorted((source / "notebooks").glob("*.ipynb"))]
    (source / "index.md").write_text(
        front_page(_readme(), chapters)
        + toc.format("The course", editions)
        + toc.format("Documents", listed),
        encoding="utf-8",
    )


def _repository() -> str:
    """Return the address of the repository's files; empty as long as it is not known."""
    badge = _BADGE.search(SERVERS.read_text(encoding="utf-8"))
    assert badge is not None, f"{SERVERS} has no badge that names the repository"
    if badge[1].startswith(_UNKNOWN):
        return ""
    return f"https://github.com/{badge[1]}/blob/{badge[2]}"


def _to_repository(link: re.Match[str]) -> str:
    """Return a link, as words and a path, that leads to the repository; else its words alone."""
    words, path = link.groups()
    repository = _repository()
    return f"[{words}]({repository}/{path})" if repository else words


def _for_readers(text: str) -> str:
    """Leave out what is for the publisher, and what works only once the course is published."""
    parts = re.split(r"^(?=## )", text, flags=re.M)
    kept = [part for part in parts if not part.startswith("## Where the course is published")]
    if not _repository():
        kept = [part for part in kept if f"{_UNKNOWN}/" not in part]
    # badges are pictures of other servers
    return re.sub(r"^\[!\[.*\n\n", "", "".join(kept), flags=re.M)


def _readme() -> str:
    """Return the README, whose links lead to pages, and to the repository where there are none."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    def lead(match: re.Match[str]) -> str:
        words, target = match.groups()
        path = target.partition("#")[0]
        if "://" in target or not path or path.startswith(("imgs/", "docs/")):
            return match[0]
        if path.rstrip("/") in EDITIONS:
            return f"[{words}]({path.rstrip('/')}/index.md)"
        if path.endswith(".ipynb"):
            return match[0]
        return _to_repository(match)

    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", lead, text)


def build(target: Path) -> list[str]:
    """Build the site into a folder, and return what is wrong with it, a line each.

    An earlier site in the folder is replaced.
    """
    import latex2mathml.converter  # noqa: F401  # Sphinx would hide that it is missing
    from sphinx.application import Sphinx
    from sphinx.util.console import nocolor

    nocolor()
    shutil.rmtree(target, ignore_errors=True)
    source = target / "source"
    lay_out(source)
    with (target / "warnings.txt").open("w+", encoding="utf-8") as warnings:
        app = Sphinx(
            str(source),
            str(HERE),
            str(target / "html"),
            str(target / "doctrees"),
            "html",
            status=None,  # says nothing but what is wrong
            warning=warnings,
            freshenv=True,
        )
        app.build()
        warnings.seek(0)
        return [line for line in warnings.read().splitlines() if line.strip()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site, and return 1 if there is something wrong with it."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "site", help="the folder")
    request = parser.parse_args(arguments)
    try:
        found = build(request.to)
    except ModuleNotFoundError as error:
        print(f"the site needs {error.name}: make site installs it", file=sys.stderr)
        return 2
    for line in found:
        print(line, file=sys.stderr)
    print(request.to / "html" / "index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
