"""What a verdict depends on, as one short text."""

from __future__ import annotations

import ast
import hashlib
import hmac
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from grader.exercise import Exercise
from grader.version import __version__

__all__ = ["declaration", "fingerprint", "seed_for"]

#: Bytes of a hash, and of a seed.
_SIZE = 16


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
    parts = (__version__, declaration(exercise), digest, seed, limits)
    return hashlib.blake2b(repr(parts).encode(), digest_size=_SIZE).hexdigest()


def declaration(exercise: Exercise) -> str:
    """A hash of an exercise's declaration, with every module of ours that it uses."""
    chapter = f"grader.exercises.ch{exercise.chapter}"
    return _sources(frozenset({chapter, exercise.inputs.__module__}))


@lru_cache(maxsize=256)
def _sources(modules: frozenset[str]) -> str:
    texts = {name: _text(name) for module in modules for name in _closure(module)}
    return hashlib.blake2b(repr(sorted(texts.items())).encode(), digest_size=_SIZE).hexdigest()


def _closure(module: str) -> set[str]:
    """A module and every module of ours that it imports, directly or not."""
    found: set[str] = set()
    coming = [module]
    while coming:
        name = coming.pop()
        if name in found or not name.startswith("grader."):
            continue
        text = _text(name)
        if text:
            found.add(name)
            coming += _imports(text)
    return found


@lru_cache(maxsize=256)
def _text(module: str) -> str:
    """The source of a module; empty where there is no such module."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        # "grader.cases.Draw" is a name in a module
        return ""
    if spec is None or spec.origin is None:
        return ""
    return Path(spec.origin).read_text(encoding="utf-8")


def _imports(text: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
