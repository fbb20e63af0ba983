"""Builds the course as static pages: ``make site`` leaves them in ``build/site``.

Sphinx does it, with MyST-NB for notebooks and Furo for the looks, from a copy of the repository's
files: both editions of every chapter, the pictures, and the documents.  No cell is run: the solved
edition shows its stored outputs, whose replays and timelines play without a kernel.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["EDITIONS", "build", "lay_out", "main"]

ROOT = Path(__file__).resolve().parent.parent.parent

#: Where Sphinx's configuration and the templates are.
HERE = Path(__file__).resolve().parent

#: The folders of both editions, and what a reader calls them.
EDITIONS = {"solutions": "Solved", "notebooks": "Student edition"}

#: The address of the repository, as the README's badges have it.
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
        # programs are no pages
        text = text.replace("](../tests/", f"]({_repository()}/tests/")
        (source / "docs" / path.name).write_text(text, encoding="utf-8")
    listed = "\n".join(f"docs/{path.stem}" for path in documents)
    toc = "\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"
    editions = "\n".join(f"{edition}/index" for edition in EDITIONS)
    (source / "index.md").write_text(
        _welcome() + toc.format("The course", editions) + toc.format("Documents", listed),
        encoding="utf-8",
    )


def _repository() -> str:
    """Return the address of the repository's files."""
    badge = _BADGE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert badge is not None, "README.md has no badge that names the repository"
    return f"https://github.com/{badge[1]}/blob/{badge[2]}"


def _welcome() -> str:
    """Return the README as the first page.

    Its links lead to pages where there are some, and to the repository otherwise.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    repository = _repository()

    def lead(match: re.Match[str]) -> str:
        target = match[1]
        path, _, anchor = target.partition("#")
        if "://" in target or not path or path.startswith(("imgs/", "docs/")):
            return match[0]
        if path in ("notebooks/", "solutions/", "notebooks", "solutions"):
            return f"]({path.rstrip('/')}/index.md)"
        if path.startswith(("notebooks/", "solutions/")) and path.endswith(".ipynb"):
            return match[0]
        return f"]({repository}/{path}{'#' + anchor if anchor else ''})"

    # badges are pictures of other servers
    text = re.sub(r"^\[!\[.*\n", "", text, flags=re.M)
    return re.sub(r"\]\(([^)\s]+)\)", lead, text)


def build(target: Path) -> list[str]:
    """Build the site into a folder, and return what is wrong with it, a line each.

    An earlier site in the folder is replaced.
    """
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
