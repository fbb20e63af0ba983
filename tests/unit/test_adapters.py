"""Adapters run in an answer's own process, so the judge believes none of their words."""

from __future__ import annotations

import dis
import types

import pytest

from grader.course.chapters import discover

#: What makes a text of a value, by methods or names that the answer's author chooses.
WORDS = {"repr", "__name__", "__qualname__", "__repr__", "__str__"}

#: Of ``!r``: an argument of ``FORMAT_VALUE``, or of ``CONVERT_VALUE`` from Python 3.13 on.
REPR = 2

ADAPTERS = {name: one.adapter for name, one in discover().items() if one.adapter is not None}


def functions(adapter):
    """Yield the code of an adapter, and of the functions of its module that it uses."""
    coming, seen = [adapter], {adapter}
    while coming:
        function = coming.pop()
        codes = [function.__code__]
        for code in codes:
            yield code
            codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
            used = [function.__globals__.get(name) for name in code.co_names]
            mine = {
                one
                for one in used
                if isinstance(one, types.FunctionType) and one.__module__ == adapter.__module__
            }
            coming += mine - seen
            seen |= mine


@pytest.mark.parametrize("name", ADAPTERS)
def test_no_adapter_makes_words_of_what_an_answer_returns(name):
    """Objects may be named, and show themselves, like the right report."""
    for code in functions(ADAPTERS[name]):
        for step in dis.get_instructions(code):
            converts = step.opname in ("FORMAT_VALUE", "CONVERT_VALUE")
            assert not (converts and (step.arg or 0) & 3 == REPR), code.co_name
            assert not (isinstance(step.argval, str) and step.argval in WORDS), code.co_name
