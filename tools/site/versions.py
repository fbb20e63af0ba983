"""The versions of the course on its web site.

A site that is published holds a folder for each release, such as ``v1.0``, the folder ``main`` for
what is being changed, and the newest release once more at the root.  Pages name their version at
their foot and lead to ``versions.html`` beside them.  That page alone is written anew in every
folder whenever something is published, so that old pages lead to newer ones and need no script.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.release import version

__all__ = ["LIST", "CourseVersion", "publish", "version_of", "write_list"]

#: The page in each folder that leads to the others.
LIST = "versions.html"

#: The folder of what is not released.
_UNRELEASED = "main"

#: The folder of a release; a later one with other mends replaces it.
_RELEASE = re.compile(r"v(\d+)\.(\d+)")

#: What is at the root besides the pages of a version.
_KEPT = {".git", "CNAME", ".nojekyll", _UNRELEASED}

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Versions of Gather Round</title>
<style>
body {{ font: 1.05rem/1.6 system-ui, sans-serif; max-width: 36em; margin: 3rem auto;
  padding: 0 1rem; }}
a {{ color: light-dark(#0b5394, #8ab4f8); }}
</style>
</head>
<body>
<main>
<h1>Versions of Gather Round</h1>
<p>You were reading {here}.</p>
<ul>
{entries}
</ul>
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class CourseVersion:
    """What pages are built from.

    Attributes:
        number: the version that the grader names, such as ``1.0.2``.
        tagged: whether that version has been released.
        changed: whether the checkout differs from the release.
    """

    number: str
    tagged: bool
    changed: bool

    @property
    def released(self) -> bool:
        """Whether the pages are those of a release."""
        return self.tagged and not self.changed

    @property
    def label(self) -> str:
        """What a reader is told."""
        if self.released:
            return f"Version {self.number}"
        if self.tagged:
            return f"Changes since version {self.number}"
        return f"Version {self.number}, not yet released"

    @property
    def folder(self) -> str:
        """The folder of a published site that the pages belong in."""
        major, minor = self.number.split(".")[:2]
        return f"v{major}.{minor}" if self.released else _UNRELEASED

    @property
    def reference(self) -> str:
        """The tag or branch that links to the repository name."""
        return f"v{self.number}" if self.released else "main"


def version_of(root: Path) -> CourseVersion:
    """Return the version of a checkout; without git it counts as not yet released."""
    number = version(root)

    def commit(name: str) -> str:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.strip()

    tag = commit(f"refs/tags/v{number}")
    return CourseVersion(number, bool(tag), tag != commit("HEAD"))


def _releases(pages: Path) -> list[str]:
    """Return the folders of the releases in a published site, the newest first."""
    found = [match for path in pages.iterdir() if (match := _RELEASE.fullmatch(path.name))]
    return [one[0] for one in sorted(found, key=lambda one: (int(one[1]), int(one[2])))][::-1]


def write_list(folder: Path, here: str, entries: list[tuple[str, str]]) -> None:
    """Write the page that leads from a folder to the others.

    Args:
        folder: the folder.
        here: the version that is in it, in words.
        entries: the versions, in words, and where they are from this folder.
    """
    lines = (f'<li><a href="{link}">{html.escape(words)}</a></li>' for words, link in entries)
    page = _PAGE.format(here=html.escape(here), entries="\n".join(lines))
    (folder / LIST).write_text(page, encoding="utf-8")


def publish(built: Path, pages: Path, what: CourseVersion) -> None:
    """Put pages into a site, beside those of other versions.

    Args:
        built: the folder with the pages.
        pages: the folder of the site, which may be empty, or not there yet.
        what: the version of the pages.
    """
    pages.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(pages / what.folder, ignore_errors=True)
    shutil.copytree(built, pages / what.folder)
    releases = _releases(pages)
    if what.folder == [*releases, _UNRELEASED][0]:
        for path in pages.iterdir():
            if path.name in _KEPT or _RELEASE.fullmatch(path.name):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(built, pages, dirs_exist_ok=True)
    # else GitHub leaves out files whose names begin with an underscore
    (pages / ".nojekyll").touch()
    words = {name: f"version {name[1:]}" for name in releases}
    words[_UNRELEASED] = "the course as it is being changed"
    folders = [name for name in words if (pages / name).is_dir()]
    for name in ("", *folders):
        up = "../" if name else ""
        entries = [(f"{words[other].capitalize()}", f"{up}{other}/index.html") for other in folders]
        if releases:
            entries.insert(0, ("The newest release", f"{up}index.html"))
        write_list(pages / name, words[name or [*releases, _UNRELEASED][0]], entries)
