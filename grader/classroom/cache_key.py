"""What a verdict depends on, as one short text.

A stored verdict is used again only where grading anew would come to the same
one.  Nearly every module of the grader can change a verdict: the judge, the
matcher, the launcher, the hints.  So all of them count, and nobody keeps a list
of those that do.  The exception is ``grader.course.chapters``: of that package, an
exercise depends on its own chapter and on what the chapter imports, so that a
course can grow without being graded anew.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import grader
from grader.course.exercise import Exercise

__all__ = ["Sources", "course_mark", "fingerprint", "seed_for"]

#: Bytes of a hash, and of a seed.
_SIZE = 16

_EXERCISES = "grader.course.chapters"


def seed_for(secret: bytes, key: str) -> int:
    """The seed of a submission's inputs: 128 bits that nobody else can compute.

    Args:
        secret: of the class.
        key: of the submission, so that no two get the same inputs.
    """
    digest = hmac.digest(secret, key.encode("utf-8", "surrogatepass"), "sha256")
    return int.from_bytes(digest[:_SIZE], "big")


def fingerprint(exercise: Exercise, digest: str, seed: int, limits: tuple[float, ...]) -> str:
    """Equal for two gradings just if they would come to the same verdict.

    Args:
        exercise: that is judged.
        digest: of the submission's files.
        seed: of the inputs.
        limits: on time and memory.
    """
    sources = _installed()
    return _hash(sources.engine, sources.declaration(exercise), digest, seed, limits)


def course_mark(exercises: Mapping[str, Exercise]) -> str:
    """Equal for two courses just if a submission would be judged on the same exercises.

    Which exercises a submission is judged on follows from its files, the names and
    chapters of the course, and the grader that reads the files.
    """
    names = [(name, exercise.chapter) for name, exercise in exercises.items()]
    return _hash(_installed().engine, names)


class Sources:
    """The source files of a grader, with the Python and the torch that it runs on.

    Args:
        files: the contents of all files, by path: ``grader/judge/judge.py`` and so on.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._modules: dict[str, bytes] = {}
        others: list[tuple[str, str]] = []
        for path, data in sorted(files.items()):
            name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            if path.endswith(".py") and name.startswith(f"{_EXERCISES}."):
                self._modules[name] = data
            else:
                others.append((path, _digest(data)))
        self.engine = _hash(others, version("torch"), platform.python_version())
        self._declarations: dict[frozenset[str], str] = {}

    @classmethod
    def of(cls, package: Path) -> Sources:
        """Read the sources of a package, which is called ``grader``."""
        return cls(
            {
                path.relative_to(package.parent).as_posix(): path.read_bytes()
                for path in package.rglob("*")
                if "__pycache__" not in path.parts and path.is_file()
            }
        )

    def declaration(self, exercise: Exercise) -> str:
        """A hash of an exercise's declaration, with every module of exercises that it uses."""
        used = frozenset({f"{_EXERCISES}.ch{exercise.chapter}", exercise.inputs.__module__})
        if used not in self._declarations:
            found = sorted(self._closure(used))
            self._declarations[used] = _hash(
                [(name, _digest(self._modules[name])) for name in found]
            )
        return self._declarations[used]

    def _closure(self, modules: frozenset[str]) -> set[str]:
        """Modules of exercises, and all that these import among themselves."""
        found: set[str] = set()
        coming = list(modules)
        while coming:
            name = coming.pop()
            if name in self._modules and name not in found:
                found.add(name)
                # whoever imports a module imports the package around it
                coming += [name.rpartition(".")[0], *_imports(self._modules[name])]
        return found


@cache
def _installed() -> Sources:
    """The grader that runs here, read once."""
    return Sources.of(Path(grader.__file__).resolve().parent)


def _hash(*parts: object) -> str:
    return _digest(repr(parts).encode())


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_SIZE).hexdigest()


@cache
def _imports(source: bytes) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
