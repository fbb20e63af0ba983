"""What a learner's environment has, and how another one is made to look the same.

The tests run where the tools are installed too, and a lab could lean on one of them by
accident.  So the server of these tests, its kernels and their ranks start with a
``sitecustomize`` that hides every package that ``requirements.txt`` does not bring, and the
extensions of JupyterLab that such packages bring are switched off.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Every new environment has it.
_BROUGHT_BY_VENV = frozenset({"pip"})

_HIDE = '''\
"""Hides what a learner does not install."""
import sys
from importlib.machinery import PathFinder

HIDDEN = frozenset({hidden!r})


class LearnersFinder:
    invalidate_caches = PathFinder.invalidate_caches
    find_distributions = PathFinder.find_distributions

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            return None
        return PathFinder.find_spec(name, path, target)


sys.meta_path[:] = [LearnersFinder if one is PathFinder else one for one in sys.meta_path]
'''


def brought(requirements: Path) -> set[str]:
    """Return the distributions that a file of requirements brings, with all that they need."""
    lines = (line.partition("#")[0].strip() for line in requirements.read_text().splitlines())
    waiting = [Requirement(line) for line in lines if line]
    found: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        if (name, frozenset(asked.extras)) in seen:
            continue
        seen.add((name, frozenset(asked.extras)))
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # for another platform
        found.add(name)
        for need in map(Requirement, needs):
            extras = [{"extra": extra} for extra in ("", *asked.extras)]
            if need.marker is None or any(map(need.marker.evaluate, extras)):
                waiting.append(need)
    return found


def hidden(requirements: Path) -> list[str]:
    """Return the modules that are installed here and that a learner does not get."""
    theirs = brought(requirements) | _BROUGHT_BY_VENV | {"gather-round", "headcount"}
    return sorted(
        module
        for module, owners in metadata.packages_distributions().items()
        if not theirs & set(map(canonicalize_name, owners))
    )


def hidden_extensions(requirements: Path) -> list[str]:
    """Return JupyterLab's extensions of packages that a learner does not get."""
    theirs = brought(requirements)
    found = set()
    for one in metadata.distributions():
        if canonicalize_name(one.metadata["Name"]) not in theirs:
            for file in one.files or ():
                match = re.search(r"/labextensions/((?:@[^/]+/)?[^/]+)/package\.json$", str(file))
                if match:
                    found.add(match[1])
    return sorted(found)


def hide(folder: Path, requirements: Path) -> None:
    """Write a ``sitecustomize`` into a folder, for the front of ``PYTHONPATH``."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_HIDE.format(hidden=hidden(requirements)))
