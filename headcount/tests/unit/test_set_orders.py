"""What a rewritten program finds in the order of its rank."""

from __future__ import annotations

import ast

import pytest

from headcount.core.set_orders import rewrite, sets_of_rank


def found_on(rank, source):
    """Return ``found`` of a program on a rank, and the lines that took a set in its order."""
    space, lines = {}, []
    sets_of_rank(rank, lambda file, line: lines.append(line))
    try:
        exec(compile(rewrite(ast.parse(source)), "answer.py", "exec"), space)
    finally:
        sets_of_rank(None)
    return space["found"], lines


@pytest.mark.parametrize(
    "source",
    [
        "found = [name for name in {'loss', 'accuracy'}]",
        "found = list({'loss', 'accuracy'})",
        "found = [*{'loss', 'accuracy'}]",
        "first, second = {'loss', 'accuracy'}\nfound = [first, second]",
        "names = {'loss', 'accuracy'}\nfound = [names.pop(), names.pop()]",
    ],
)
def test_two_ranks_take_a_set_of_strings_in_opposite_orders(source):
    (one, lines), (other, _) = found_on(0, source), found_on(1, source)
    assert lines
    assert one == other[::-1]
    assert sorted(one) == ["accuracy", "loss"]


def test_numbers_lists_and_what_is_no_set_keep_their_order():
    source = "found = [*{3, 1, 2}, *['b', 'a'], *{'b': 1, 'a': 2}, [1, 2].pop()]"
    assert found_on(0, source) == found_on(1, source)
    assert found_on(1, source)[1] == []


def test_hashes_and_addresses_differ_and_those_of_numbers_do_not():
    source = "thing = object()\nfound = (hash('loss'), id(thing) == id(thing), hash(7))"
    (one, lines), (other, _) = found_on(0, source), found_on(1, source)
    assert one[0] != other[0]
    assert one[1:] == other[1:] == (True, 7)
    assert 0 in lines


def test_a_set_that_changes_while_it_is_taken_raises_as_ever():
    source = "names = {'a', 'b'}\nfor name in names:\n    names.add(name + 'c')\nfound = 1"
    with pytest.raises(RuntimeError, match="changed size during iteration"):
        found_on(1, source)


def test_without_a_rank_nothing_is_changed():
    source = "names = {'loss', 'accuracy'}\nfound = list(names) == [n for n in names]"
    assert found_on(None, source) == (True, [])
