"""Copies are found whatever they are called, and answers that are only alike are not."""

from __future__ import annotations

import ast
import builtins
import re
from itertools import combinations
from pathlib import Path

import pytest

from grader.classroom.pages import class_page, similar_page
from grader.classroom.results import ClassResults, Pair, SubmissionRow, alike
from grader.course.chapters import discover
from grader.submission.submission import K, W, fingerprints, prints_of, tokens

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("ring_all_reduce", "ring_reduce_scatter", "reduce_scatter", "all_gather", "all_to_all")


def answers(name):
    """The right answers to an exercise, in different styles."""
    chapter = discover()[name].chapter
    found = []
    for path in sorted((ROOT / "grader/course/answers" / chapter / "right").glob("*.py")):
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
    """Students who each found a way of their own: the right answers, one each."""
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


@pytest.mark.parametrize("size", [5, 6, 8, 10])
def test_three_alike_are_seen_in_a_small_class(size):
    """Everybody has found a way of their own, and two have copied the first one's."""
    texts = answers("ring_all_reduce")[: size - 2]
    texts += [texts[0], disguised(texts[0])]
    assert len(texts) == size
    pairs = alike({f"s{i}": handed_in([text]) for i, text in enumerate(texts)})
    copies = {"s0", f"s{size - 2}", f"s{size - 1}"}
    assert [pair for pair in pairs[:3] if pair.share < 1] == []
    assert {frozenset((pair.first, pair.second)) for pair in pairs} == {
        frozenset(pair) for pair in combinations(copies, 2)
    }


def test_three_alike_are_seen_among_others_who_did_other_exercises(students):
    copied = {**students, "one": students["s02"], "two": [disguised(students["s02"][0])]}
    pairs = alike({key: handed_in(texts) for key, texts in copied.items()})
    assert {key for pair in pairs[:3] for key in (pair.first, pair.second)} == {"s02", "one", "two"}


@pytest.mark.parametrize("size", [10, 14, 30])
def test_the_obvious_way_is_nobodys(size):
    """Most have written the same, and the others in ways of their own."""
    ways = answers("all_gather")
    most = size // 2 + 1
    texts = [ways[0]] * most + [ways[1 + i % 4] for i in range(3)]
    texts += [f"def all_gather(x):\n    raise ValueError({i})\n" for i in range(size - len(texts))]
    obvious = {f"s{i}" for i in range(most)}
    pairs = alike({f"s{i}": handed_in([text]) for i, text in enumerate(texts)})
    assert not [pair for pair in pairs if {pair.first, pair.second} <= obvious]


GIVEN = """
    rank, size = dist.get_rank(), dist.get_world_size()
    following, previous = (rank + 1) % size, (rank - 1) % size
    pieces = [piece.clone() for piece in torch.chunk(torch.zeros(64), size)]
    for step, piece in enumerate(pieces):
        if piece.numel() and step != rank:
            piece.add_(step).mul_(following).sub_(previous).div_(size)
        elif piece.numel():
            piece.copy_(torch.arange(piece.numel(), dtype=piece.dtype) + step)
"""


def test_code_that_the_chapter_gives_is_nobodys():
    """Whoever answers has it in the answer, and then goes on in a way of their own."""
    ways = [text for text in answers("ring_all_reduce") if text.count("def ring_all_reduce(")]
    begun = [re.sub(r"(def ring_all_reduce\(.*\n)", rf"\1{GIVEN}", text) for text in ways]
    assert len(prints_of([begun[0]], NAMES)["ring_all_reduce"]) > len(
        prints_of([ways[0]], NAMES)["ring_all_reduce"]
    )
    without = alike({f"s{i}": handed_in([text]) for i, text in enumerate(ways)})
    assert alike({f"s{i}": handed_in([text]) for i, text in enumerate(begun)}) == without == []


def test_what_everybody_wrote_does_not_count():
    """Everybody wrote the same thing: that is what the exercise explains."""
    (text, *_) = answers("all_gather")
    assert alike({f"s{i}": handed_in([text]) for i in range(20)}) == []
    assert alike({}) == alike({"alone": handed_in([text])}) == []


def test_the_page_is_data_and_no_verdict():
    rows = tuple(
        SubmissionRow(key, name)
        for key, name in (("a", "<script>alert(1)</script>"), ("b", "=cmd()"))
    )
    results = ClassResults("Lab", "2026-01-01T00:00:00+00:00", rows)
    text = similar_page(results, [Pair("a", "b", 0.913, 12.5, ("all_gather",))])
    assert "&lt;script&gt;" in text
    assert "<script>alert" not in text
    assert "91 %" in text
    assert "no\nverdict" in text
    assert 'href="similar.html">Similar answers: 1 pair' in class_page(
        results, [Pair("a", "b", 0.913, 12.5, ("all_gather",)), Pair("a", "gone", 1.0, 9.0, ())]
    )
    assert "similar.html" not in class_page(results)
    assert "No pair stands out" in similar_page(results, [])
    assert "No pair stands out" in similar_page(results, [Pair("a", "gone", 1.0, 9.0, ())])
