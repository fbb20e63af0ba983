"""Copies are found whatever they are called, and answers that are only alike are not."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

from grader.classroom.outputs.results import ClassResults, Row
from grader.classroom.outputs.similar import similar_page
from grader.classroom.similarity import Pair, alike
from grader.exercises import discover
from grader.winnowing import K, W, fingerprints, prints_of, tokens

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("ring_all_reduce", "ring_reduce_scatter", "reduce_scatter", "all_gather", "all_to_all")


def answers(name):
    """The accepted answers of an exercise, in different styles."""
    chapter = discover()[name].chapter
    found = []
    for path in sorted((ROOT / "tests" / "accepted" / chapter).glob("*.py")):
        text = path.read_text()
        if re.search(rf"^# exercise: {name}$", text, re.MULTILINE):
            found.append(text)
    return found


def disguised(text):
    """The same program with other names, other layout, and comments."""

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node):
            own = node.id not in ("torch", "dist") and not hasattr(builtins, node.id)
            return ast.Name(f"my_{node.id}" if own else node.id, node.ctx)

        def visit_arg(self, node):
            return ast.arg(f"my_{node.arg}")

    tree = ast.fix_missing_locations(Renamed().visit(ast.parse(text)))
    return ast.unparse(tree).replace("\n    ", "\n    # my own idea\n    ")


def handed_in(texts):
    return prints_of(texts, NAMES)


@pytest.fixture(scope="module")
def students():
    """Students who each found a way of their own: the accepted answers, one each."""
    texts = [text for name in NAMES for text in answers(name)]
    assert len(texts) > 20
    return {f"s{i:02}": [text] for i, text in enumerate(texts)}


def test_layout_names_comments_and_numbers_make_no_difference():
    text = answers("ring_all_reduce")[0]
    name = {"ring_all_reduce"}
    assert prints_of([disguised(text)], name) == prints_of([text], name)
    assert len(prints_of([text], name)["ring_all_reduce"]) > 5


def test_other_programs_have_other_fingerprints():
    first, second = answers("all_gather")[:2]
    one, other = (set(prints_of([text], NAMES)["all_gather"]) for text in (first, second))
    assert one != other


def test_a_stub_leaves_nothing():
    text = 'def all_gather(x):\n    """Everyone\'s x, by rank."""\n    raise NotImplementedError\n'
    assert prints_of([text], NAMES) == {"all_gather": []}


def test_a_copied_passage_leaves_a_common_fingerprint():
    passage = [f"t{i}" for i in range(K + W - 1)]
    for before, after in ((0, 5), (9, 0), (3, 40)):
        a = [f"a{i}" for i in range(before)] + passage + [f"b{i}" for i in range(after)]
        b = [f"c{i}" for i in range(after)] + passage + [f"d{i}" for i in range(before)]
        assert set(fingerprints(a)) & set(fingerprints(b))


def test_what_does_not_parse_costs_itself_only():
    texts = ["def all_gather(:", "x = " + "(" * 10_000, "def all_to_all(x):\n    return x\n"]
    assert prints_of(texts, NAMES) == {"all_to_all": []}


def test_tokens_are_what_a_program_does():
    function = ast.parse("def f(x):\n    'doc'\n    return dist.isend(x[1:], dst=3)").body[0]
    assert " ".join(tokens(function)) == "return name . isend ( name [ 0 : ] , name = 0 )"


def test_a_copy_stands_at_the_top(students):
    honest = alike({key: handed_in(texts) for key, texts in students.items()})
    copied = {**students, "copy": [disguised(text) for text in students["s02"]]}
    pairs = alike({key: handed_in(texts) for key, texts in copied.items()})
    assert {pairs[0].first, pairs[0].second} == {"s02", "copy"}
    assert pairs[0].share == 1
    assert len(honest) <= 3, honest


def test_what_everybody_wrote_does_not_count():
    """Everybody wrote the same thing: that is what the exercise explains."""
    (text, *_) = answers("all_gather")
    assert alike({f"s{i}": handed_in([text]) for i in range(20)}) == []
    assert alike({}) == alike({"alone": handed_in([text])}) == []


def test_the_page_is_data_and_no_verdict():
    rows = tuple(
        Row(key, name) for key, name in (("a", "<script>alert(1)</script>"), ("b", "=cmd()"))
    )
    results = ClassResults("Lab", "2026-01-01T00:00:00+00:00", rows)
    text = similar_page(results, [Pair("a", "b", 0.913, 12.5, ("all_gather",))])
    assert "&lt;script&gt;" in text
    assert "<script>alert" not in text
    assert "91 %" in text
    assert "no\nverdict" in text
    assert "No pair stands out" in similar_page(results, [])
    assert "No pair stands out" in similar_page(results, [Pair("a", "gone", 1.0, 9.0, ())])
