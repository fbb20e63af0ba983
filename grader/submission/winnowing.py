"""Fingerprints of functions, by which copies are found even if names were changed.

A function becomes a sequence of tokens, without comments and docstrings, in which all its own
names are equal; a stub has no tokens.  Every run of K tokens is hashed, and of every W hashes in a
row the smallest is kept.  So every copied passage of at least K + W − 1 tokens leaves a common
fingerprint, and shorter ones may be missed.
The method is winnowing: Schleimer, Wilkerson and Aiken, "Winnowing: local
algorithms for document fingerprinting", SIGMOD 2003,
https://doi.org/10.1145/872757.872770.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import io
import keyword
import tokenize
from collections.abc import Iterable

__all__ = ["K", "W", "fingerprints", "prints_of", "tokens"]

#: Tokens of a fingerprint, and hashes of a window: copies of 19 tokens are found.
K, W = 12, 8

#: Limit on the fingerprints of a function; the longest solution has a third of that.
_MANY = 400

_BUILTINS = frozenset(dir(builtins))
_LAYOUT = frozenset({tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.ENCODING})


def prints_of(sources: Iterable[str], names: Iterable[str]) -> dict[str, list[int]]:
    """Return the fingerprints of functions by name; of a name's last definition.

    Args:
        sources: pieces of Python; those that do not parse are skipped.
        names: the names of the functions.
    """
    wanted = set(names)
    found: dict[str, list[int]] = {}
    for source in sources:
        try:
            tree = ast.parse(source)
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and node.name in wanted:
                    found[node.name] = fingerprints(tokens(node))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return found


def tokens(function: ast.FunctionDef) -> list[str]:
    """Return a function as tokens, in which all its own names are equal, and all numbers."""
    body = list(function.body)
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    # source made anew, so that layout, brackets and quotes make no difference
    text = "\n".join(ast.unparse(node) for node in body)
    found: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _LAYOUT:
            continue
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            # the names of attributes and builtins say what is done; own names do not
            known = token.string in _BUILTINS or (found and found[-1] == ".")
            found.append(token.string if known else "name")
        elif token.type == tokenize.NUMBER:
            found.append("0")
        elif token.type == tokenize.STRING:
            found.append("''")
        elif token.type == tokenize.INDENT:
            found.append("{")
        elif token.type == tokenize.DEDENT:
            found.append("}")
        elif token.string:
            found.append(token.string)
    return found


def fingerprints(sequence: list[str]) -> list[int]:
    """Return the winnowed hashes of a sequence of tokens, sorted, none twice."""
    hashes = [_hash(sequence[i : i + K]) for i in range(len(sequence) - K + 1)]
    if len(hashes) <= W:
        return sorted({min(hashes)}) if hashes else []
    windows = (hashes[i : i + W] for i in range(len(hashes) - W + 1))
    return sorted({min(window) for window in windows})[:_MANY]


def _hash(words: list[str]) -> int:
    digest = hashlib.blake2b("\0".join(words).encode("utf-8", "replace"), digest_size=6)
    return int.from_bytes(digest.digest(), "big")
