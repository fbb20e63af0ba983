"""Builds the course as static pages: ``make site`` leaves them in ``build/site``.

    python -m tools.site                    # or: make site
    python -m tools.site --publish PAGES    # and puts them beside those of other versions

Sphinx does it, with MyST-NB for notebooks and Furo for the looks, from a copy of the repository's
files: both editions of every chapter, the pictures, and the documents, headcount's too; a page that
has moved is found at its old address.  No cell is run: the solved edition shows its stored outputs,
whose replays and timelines play without a kernel.  The front page alone runs something, the example
that it shows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from tools import address
from tools.site.front import front_page
from tools.site.versions import publish, version_of, write_list

__all__ = ["EDITIONS", "build", "lay_out", "main"]

ROOT = Path(__file__).resolve().parent.parent.parent

#: Where Sphinx's configuration and the templates are.
HERE = Path(__file__).resolve().parent

#: The folders of both editions, and what a reader calls them.
EDITIONS = {"notebooks": "The chapters", "solutions": "The chapters, solved"}


#: The folders of documents: the course's, and headcount's.
DOCUMENTS = ("docs", "headcount/docs")

#: Documents that were in the first of these folders and are now in the second.
MOVED = ("hangs", "nccl", "run", "script_faults")


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
    for folder in DOCUMENTS:
        shutil.copytree(ROOT / folder / "recorded", source / folder / "recorded")
    course, headcount = (sorted((ROOT / folder).glob("*.md")) for folder in DOCUMENTS)
    headcount.insert(0, ROOT / "headcount" / "README.md")
    for path in (*course, *headcount):
        text = _page(path, {*course, *headcount})
        (source / path.relative_to(ROOT)).write_text(text, encoding="utf-8")
    toc = "\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"
    editions = "\n".join(f"{edition}/index" for edition in EDITIONS)
    chapters = [path.stem for path in sorted((source / "notebooks").glob("*.ipynb"))]
    (source / "index.md").write_text(
        front_page(_readme(), chapters)
        + toc.format("The course", editions)
        + toc.format("Documents", _pages(course))
        + toc.format("Your own scripts: headcount", _pages(headcount)),
        encoding="utf-8",
    )


def _pages(documents: Sequence[Path]) -> str:
    return "\n".join(str(path.relative_to(ROOT).with_suffix("")) for path in documents)


def _redirect(built: Path) -> None:
    """Lead from the old address of each page that has moved to its new one."""
    for name in MOVED:
        new = f"../headcount/docs/{name}.html"
        (built / "docs" / f"{name}.html").write_text(
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Moved</title>'
            f'<meta http-equiv="refresh" content="0; url={new}">'
            f'<p>This page has moved: <a href="{new}">{name}</a></p></html>\n',
            encoding="utf-8",
        )


def _repository() -> str:
    """Return the address of the repository's files; empty as long as it is not known."""
    known = address.repository()
    return f"https://github.com/{known}/blob/{version_of(ROOT).reference}" if known else ""


def _page(path: Path, pages: Collection[Path]) -> str:
    """Return a document, whose links lead to pages, and to the repository where there are none."""

    def lead(match: re.Match[str]) -> str:
        words, target, anchor = match.groups()
        to = Path(os.path.normpath(path.parent / target))
        if to == ROOT / "README.md":
            return f"[{words}]({target.replace('README', 'index')}{anchor or ''})"
        if to in pages or to.suffix in (".ipynb", ".png", ".svg"):
            return match[0]
        return _to_repository(words, str(to.relative_to(ROOT)))

    text = address.without_comments(path.read_text(encoding="utf-8"))
    return re.sub(r"\[([^\]]*)\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)", lead, text)


def _to_repository(words: str, path: str) -> str:
    """Return a link that leads to the repository; its words alone if that has no address."""
    repository = _repository()
    return f"[{words}]({repository}/{path})" if repository else words


def _readme() -> str:
    """Return the README, whose links lead to pages, and to the repository where there are none."""
    text = address.without_comments((ROOT / "README.md").read_text(encoding="utf-8"))

    def lead(match: re.Match[str]) -> str:
        words, target = match.groups()
        path = target.partition("#")[0]
        if "://" in target or not path or path.startswith(("imgs/", "docs/", "headcount/")):
            return match[0]
        if path.rstrip("/") in EDITIONS:
            return f"[{words}]({path.rstrip('/')}/index.md)"
        if path.endswith(".ipynb"):
            return match[0]
        return _to_repository(words, target)

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
        _redirect(target / "html")
        warnings.seek(0)
        return [line for line in warnings.read().splitlines() if line.strip()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site, and return 1 if there is something wrong with it."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "site", help="the folder")
    parser.add_argument(
        "--publish", type=Path, metavar="PAGES", help="the folder of a site with all its versions"
    )
    request = parser.parse_args(arguments)
    try:
        found = build(request.to)
    except ModuleNotFoundError as error:
        print(f"the site needs {error.name}: make site installs it", file=sys.stderr)
        return 2
    for line in found:
        print(line, file=sys.stderr)
    what, built = version_of(ROOT), request.to / "html"
    # of a site that is not published, this is the only version
    here = what.label[0].lower() + what.label[1:]
    write_list(built, here, [(what.label, "index.html")])
    print(built / "index.html")
    if request.publish and not found:
        publish(built, request.publish, what)
        print(request.publish / what.folder / "index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
