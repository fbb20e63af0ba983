"""What an adapter gets of a function's result."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import pytest

from headcount.rank.calling import plain


class LyingList(list):
    def __iter__(self):
        return iter(["something else"])

    def __len__(self):
        return 1


class LyingTuple(tuple):
    __class__ = list

    def __iter__(self):
        return iter(["something else"])


class LyingDict(dict):
    def items(self):
        return {"something": "else"}.items()


Pair = namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LyingList([1, 2, 3]), [1, 2, 3]),
        (LyingTuple((1, 2)), (1, 2)),
        (LyingDict(a=1), {"a": 1}),
        (OrderedDict(a=LyingList([1])), {"a": [1]}),
        ([(LyingList([LyingTuple([1])]),)], [([(1,)],)]),
        (Pair([1], LyingList([2])), ([1], [2])),
    ],
)
def test_subclasses_of_lists_tuples_and_dicts_become_these_whatever_their_methods_say(
    value, expected
):
    def types(tree):
        kind = type(tree)
        parts = tree.values() if kind is dict else tree if kind in (list, tuple) else ()
        return kind, *map(types, parts)

    found = plain(value)
    assert types(found) == types(expected)
    assert found == expected


def test_what_holds_no_subclass_is_the_same_object():
    for value in ([1, (2, {"a": [3]})], {"a": ()}, "text", None, object()):
        assert plain(value) is value


def test_a_list_in_itself_comes_to_an_end():
    endless = []
    endless.append(endless)
    assert plain(endless) is endless
