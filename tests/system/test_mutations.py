"""The mutation tool: what it changes, and that a survivor is seen."""

from __future__ import annotations

import ast
import json
import sys

import pytest

from tools import mutants as run
from tools.mutations import mutants

EVERYWHERE = range(1000).__contains__


def changes(source, inside=EVERYWHERE):
    return {mutant.change for mutant in mutants(source, inside)}


@pytest.mark.parametrize(
    "before, after",
    [
        ("x = a + 1", "x = a - 1"),
        ("x = a + 1", "x = a + 2"),
        ("x = a + 1", "x = a + 0"),
        ("x = (r - 1) % n", "x = r - 1"),
        ("x = a < b", "x = a <= b"),
        ("x = f(a, b)", "x = f(b, a)"),
        ("x = range(n)", "x = range(n - 1)"),
        ("x = dist.isend(y, 1)", "x = dist.send(y, 1)"),
        ("x = dist.ReduceOp.SUM", "x = dist.ReduceOp.MAX"),
        ("x = y.clone()", "x = y"),
        ("request.wait()", "pass"),
        ("x += y", "x = y"),
        ("x += y", "x -= y"),
        ("x[0] = y", "pass"),
        ("x = a if b else c", "x = c if b else a"),
        ("x = not a", "x = a"),
    ],
)
def test_a_kind_of_mistake_is_made(before, after):
    assert f"{before}  →  {after}" in changes(before)


def test_statements_are_exchanged_loops_shortened_and_branches_forced():
    found = changes("f(1)\ng(2)\nfor i in s:\n    h(i)\nif c:\n    k()\n")
    assert "f(1)  →  g(2); f(1)" in found
    assert "for i in s:  →  for i in list(s)[:-1]:" in found
    assert "for i in s:  →  for i in ():" in found
    assert "if c:  →  if False:" in found


def test_every_mutant_is_a_program_that_differs_from_the_others():
    source = "def f(x):\n    for i in range(3):\n        x += i * 2\n    return x\n"
    texts = [mutant.source for mutant in mutants(source, EVERYWHERE)]
    assert len(texts) > 10
    assert len(set(texts)) == len(texts)
    assert source.strip() not in texts
    for text in texts:
        ast.parse(text)


def test_only_the_lines_asked_for_are_changed():
    assert changes("x = 1\ny = 2\n", {2}.__contains__) == {"y = 2  →  y = 3", "y = 2  →  y = 1"}


def test_a_helper_concerns_the_exercises_that_use_it_and_practice_none(tmp_path):
    lines = []
    for name, body in (
        ("half", "return x / 2"),
        ("mean", "return half(x + x)"),
        ("one", "return mean(x)"),
        ("other", "return x * 3"),
        ("practice", "return half(x) + 7"),
    ):
        lines += [
            f"def {name}(x):",
            "    ### BEGIN SOLUTION",
            f"    {body}",
            "    ### END SOLUTION",
        ]
    path = tmp_path / "chapter.py"
    path.write_text("\n".join(lines))
    concerned = {
        suspect.mutant.line: suspect.exercises
        for suspect in run.suspects(path, ["one", "other"], ["one", "other"])
    }
    assert concerned == {3: ("one",), 7: ("one",), 11: ("one",), 15: ("other",)}


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="ast.unparse writes some tuples differently before 3.11"
)
def test_the_list_of_equivalent_mutants_has_reasons_and_names_what_exists():
    entries = json.loads(run.EQUIVALENT.read_text(encoding="utf-8"))
    assert all(entry["reason"] for entry in entries)
    known = set(run.equivalent())
    assert len(known) == len(entries)
    catalogue = run.discover()
    made = {
        (suspect.name, suspect.mutant.change)
        for chapter, exercises in catalogue.chapters().items()
        for suspect in run.suspects(
            run.ROOT / "solutions" / f"{chapter}.py",
            [exercise.name for exercise in exercises],
            list(catalogue),
        )
    }
    assert known <= made, f"no such mutants any more: {known - made}"


@pytest.mark.exhaustive
def test_survivors_fail_the_run_and_are_named(monkeypatch, capsys):
    monkeypatch.setattr(run, "equivalent", lambda: {})
    assert run.main(["neighbours"]) == 0
    assert "13 of 13 mutants that change something: 100.0 %" in capsys.readouterr().out
    assert run.main(["broadcast"]) == 1
    assert "survives: broadcast: for dst in range" in capsys.readouterr().out
