"""The address of the repository: ``make own OWNER=name/repository`` fills it in, once.

Until then what needs the address is in comments that no reader sees: in Markdown between
``<!-- published`` and ``-->``, each alone on its line; in TOML and CFF on lines that begin with
``# published: ``.  There ``{owner}`` and ``{name}`` stand for its two halves.  Filling in removes
the marks of the comments.  From then on the address is that of ``Repository`` in
``pyproject.toml``, and whatever asks for it reads it there.  When the repository moves, the same
command replaces the old address by the new one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["PLACES", "main", "own", "repository", "without_comments"]

ROOT = Path(__file__).resolve().parent.parent

#: The files that hold the address, or wait for it.
PLACES = ("pyproject.toml", "README.md", "CITATION.cff", "CHANGELOG.md", "docs/servers.md")

#: An owner and a name, as GitHub allows them.
_ADDRESS = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([\w.-]{1,100})", re.ASCII)

#: Where the address is, once it is known.
_KNOWN = re.compile(r'^Repository = "https://github\.com/([^/"]+/[^/"]+)"$', re.M)

_BLOCK = re.compile(r"^<!-- published\n(.*?)^-->\n", re.M | re.S)
_LINE = re.compile(r"^# published: ?(.*\n)", re.M)


def repository(root: Path = ROOT) -> str:
    """Return the address, as ``owner/name``; empty as long as it is not known."""
    found = _KNOWN.search((root / "pyproject.toml").read_text(encoding="utf-8"))
    return found[1] if found else ""


def without_comments(text: str) -> str:
    """Return a text in Markdown without what waits for the address."""
    return re.sub(r"\n*" + _BLOCK.pattern, "\n\n", text, flags=re.M | re.S)


def _filled(text: str, address: str, old: str) -> str:
    """Return a text with the address in it.

    Args:
        text: the text of a file.
        address: the address, as ``owner/name``.
        old: the address that it has been until now; empty if there was none.
    """

    def fill(match: re.Match[str]) -> str:
        owner, _, name = address.partition("/")
        return match[1].replace("{owner}", owner).replace("{name}", name)

    if old:
        # as GitHub, Colab and Binder write it
        moved = rf"((?:github\.com|github|gh)/){re.escape(old)}(?![\w.-])"
        text = re.sub(moved, rf"\g<1>{address}", text).replace(_pages(old), _pages(address))
    return _LINE.sub(fill, _BLOCK.sub(fill, text))


def _pages(address: str) -> str:
    """Return where GitHub shows a repository's web pages, without the scheme."""
    owner, _, name = address.partition("/")
    return f"{owner}.github.io/{name}"


def own(address: str, root: Path = ROOT) -> list[str]:
    """Fill in the address, and return the files that have changed.

    Args:
        address: the repository on GitHub, as ``owner/name``.
        root: a checkout of the course.

    Raises:
        ValueError: what is given is no such address.
    """
    if not _ADDRESS.fullmatch(address):
        raise ValueError(f"expected the repository as name/repository, and got {address!r}")
    old, changed = repository(root), []
    for place in PLACES:
        before = (root / place).read_text(encoding="utf-8")
        after = _filled(before, address, old)
        if after != before:
            (root / place).write_text(after, encoding="utf-8")
            changed.append(place)
    return changed


def main(arguments: Sequence[str]) -> int:
    """Fill in the address that is given; 2 if there is none."""
    if len(arguments) != 1:
        print("Name the repository: make own OWNER=name/repository", file=sys.stderr)
        return 2
    try:
        changed = own(arguments[0])
    except ValueError as error:
        print(f"{error}: make own OWNER=name/repository", file=sys.stderr)
        return 2
    print(f"The repository is https://github.com/{repository()}.")
    print("\n".join(changed) if changed else "Nothing had to be changed.")
    if changed:
        print("Look at it with git diff, and commit it.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
