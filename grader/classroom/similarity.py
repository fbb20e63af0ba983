"""Which submissions are alike beyond what the exercise explains: a list to look at.

Never a verdict.  Short answers to the same question are alike by themselves,
friends learn together, and two copies of a page on the web agree as well.  So
a fingerprint counts the less, the more of those who answered the exercise have it:
its weight is the logarithm of how rare it is.

What too many have does not count at all: that is given code, or the obvious way.
Moss, which winnowing was made for, ignores a passage that more than ten programs
share (its option ``-m``).  Here that number follows the class: half of those who
answered where they are few, so that three copies among ten are seen and six of one
way are not, and a fifth where they are many.  Three are never too many; only where
all have a passage, nobody can tell, and its weight is zero.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

__all__ = ["Pair", "alike"]

#: Pairs below this share of the smaller one's weight are nothing to look at.
_LEAST = 0.6

#: And so are those whose common part is too small to mean anything.
_LEAST_WEIGHT = 8.0

#: A fingerprint that more share is common knowledge: of the few, and of the many.
_HALF, _FIFTH = 0.5, 0.2

#: Where half of those who answered are more, they are many; and so many are never too many.
_MANY, _FEW = 10, 3

#: Pairs that a person will look at.
_MOST = 200


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike.

    Attributes:
        first, second: their keys.
        share: of the smaller one's weight that both have, 0 to 1.
        weight: of what both have; larger is rarer.
        exercises: in which, most alike first.
    """

    first: str
    second: str
    share: float
    weight: float
    exercises: tuple[str, ...]


def alike(prints: Mapping[str, Mapping[str, Sequence[int]]]) -> list[Pair]:
    """Pairs of submissions, most alike first.

    Args:
        prints: by submission and exercise, its fingerprints, see
            :mod:`grader.submission.winnowing`.
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
    """How many of those who answered may share a passage that tells something of two of them."""
    return max(_FEW, min(_MANY, int(_HALF * answers)), int(_FIFTH * answers))
