"""What a rank counts inside its own process, and whether anything outside confirms it.

An answer can patch whatever counts in its process.  ``docs/security.md`` names the exercises in
which a point rests on that alone, and this keeps the list true.
"""

import re
import sys
from pathlib import Path
from types import CodeType, FunctionType

from grader.course.chapters import discover

SECURITY = Path(__file__).resolve().parents[2] / "docs" / "security.md"

#: How the names of the modules of instruments begin.
INSTRUMENTS = "grader.instruments."

#: Those that count, watch or refuse, or show a clock; others compute, as autograd does.
COUNTING = {
    *("Clock", "Device", "HeldStorages", "PeakStorages", "ReceivedStorages"),
    *("mark_unseen_collectives", "count_operations", "refuse_operations", "count_lines"),
    "elementwise_by_hand",
}

#: What an adapter asks of the recording group that counts: by name, as an attribute or for getattr.
ASKED = {"mark", "watch_receives"}


def used(thing, seen):
    """The instruments that a function or a class of a chapter uses, directly or through others."""
    if id(thing) in seen:
        return set()
    seen.add(id(thing))
    if isinstance(thing, type):
        bases = COUNTING & {
            one.__name__ for one in thing.__mro__ if one.__module__.startswith(INSTRUMENTS)
        }
        parts = [part for part in vars(thing).values() if isinstance(part, FunctionType)]
        return (COUNTING & bases).union(*(used(part, seen) for part in parts))
    return in_code(thing.__code__, vars(sys.modules[thing.__module__]), thing.__module__, seen)


def in_code(code, names, module, seen):
    found = ASKED & {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}
    for name in code.co_names:
        thing = names.get(name)
        if isinstance(thing, (FunctionType, type)):
            if thing.__module__.startswith(INSTRUMENTS):
                found |= COUNTING & {thing.__name__}
            elif thing.__module__ == module:
                found |= used(thing, seen)
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= in_code(part, names, module, seen)
    return found


def counted_inside():
    """The exercises whose adapters count, by name, with what they count with."""
    found = {}
    for name, exercise in discover().items():
        if exercise.adapter is not None and (instruments := used(exercise.adapter, set())):
            found[name] = instruments
    return found


def confirmed():
    """The exercises with a case in which the judge measures."""
    return {
        name
        for name, exercise in discover().items()
        if any(case.pauses for n in exercise.world_sizes for case in exercise.cases(1, n))
    }


def section(title):
    text = SECURITY.read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_document_names_what_only_the_rank_itself_has_counted():
    table = section("What a rank counts itself")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (yes|no)\b", table, re.M)
    inside, outside = set(counted_inside()), confirmed()
    assert {name for name, answer in rows} == inside
    assert {name for name, answer in rows if answer == "yes"} == inside & outside
    assert outside <= inside


def test_the_document_counts_the_exercises_that_allow_collectives():
    allowing = [name for name, exercise in discover().items() if exercise.traffic.allowed]
    text = " ".join(section("What the kernel counters cannot see").split())
    found = re.search(
        r"which (\d+) exercises allow, from `(\w+)` in chapter 02 to `(\w+)` in chapter 31", text
    )
    assert found is not None
    assert found.groups() == (str(len(allowing)), allowing[0], allowing[-1])


def test_instruments_are_found_through_helpers_and_classes():
    found = counted_inside()
    assert "HeldStorages" in found["train"]  # by a class of its own, which inherits from it
    assert "refuse_operations" in found["scatter_reduce_1d"]
    assert "sum_of_survivors" not in found
