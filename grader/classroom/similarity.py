"""Pairs of submissions that are more alike than the exercises explain: a list to look at.

It is never a verdict.  Short answers to the same question are alike by themselves,
friends learn together, and two copies of a page on the web agree as well.  So the
weight of a fingerprint is the logarithm of its rarity, log(answers / submissions that
have it).

A fingerprint that too many submissions have does not count at all: it is given code, or
the obvious way.  Moss, which winnowing was made for, ignores a passage that more than ten
programs share (its option ``-m``).  Here that number follows the class: half of the answers
where there are few, so that three copies among ten are seen and six of one way are not,
and a fifth where there are many.  Three are never too many; a passage that all answers
have weighs log 1 = 0.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

__all__ = ["Pair", "alike"]

#: Smallest share of the smaller submission's weight that both must have.
_LEAST = 0.6

#: Smallest weight of the common part, below which it means nothing.
_LEAST_WEIGHT = 8.0

#: Share of the answers beyond which a fingerprint is common, in small and in large classes.
_HALF, _FIFTH = 0.5, 0.2

#: Number of submissions up to which half of the answers counts, and one that is never too many.
_MANY, _FEW = 10, 3

#: Pairs that are listed.
_MOST = 200


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike.

    Attributes:
        first, second: their keys.
        share: the common weight as a share of the smaller one's weight, 0 to 1.
        weight: the common weight; larger is rarer.
        exercises: the exercises that have common fingerprints, most alike first.
    """

    first: str
    second: str
    share: float
    weight: float
    exercises: tuple[str, ...]


def alike(prints: Mapping[str, Mapping[str, Sequence[int]]]) -> list[Pair]:
    """Return pairs of submissions that are alike, most alike first.

    Args:
        prints: the fingerprints by submission and exercise, see
            :func:`grader.submission.submission.fingerprints`.
    """
    owners: dict[tuple[str, int], list[str]] = defaultdict(list)
    answers: Counter[str] = Counter()
    for key, exercises in prints.items():
        for name, own in exercises.items():
            answers[name] += bool(own)
            for one in set(own):
                owners[name, one].append(key)
    totals: dict[str, float] = defaultdict(float)
    common: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (name, _), keys in owners.items():
        weight = math.log(answers[name] / len(keys))
        if len(keys) > _most(answers[name]) or weight <= 0:
            continue
        for key in keys:
            totals[key] += weight
        for first, second in combinations(keys, 2):
            common[first, second][name] += weight
    found = []
    for (first, second), by_exercise in common.items():
        weight = sum(by_exercise.values())
        share = weight / min(totals[first], totals[second])
        if share >= _LEAST and weight >= _LEAST_WEIGHT:
            names = tuple(sorted(by_exercise, key=by_exercise.__getitem__, reverse=True))
            found.append(Pair(first, second, round(share, 3), round(weight, 1), names))
    found.sort(key=lambda pair: (-pair.share * pair.weight, pair.first, pair.second))
    return found[:_MOST]


def _most(answers: int) -> int:
    """Return how many answers may share a fingerprint that still counts."""
    return max(_FEW, min(_MANY, int(_HALF * answers)), int(_FIFTH * answers))
