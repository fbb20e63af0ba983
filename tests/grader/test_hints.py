"""Hints: given only where all that was seen proves them."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from grader.exercise.cases import Kind, PerRank
from grader.exercise.declaration import Evidence, JudgedCase, Mistake
from grader.exercise.help import Help
from grader.exercise.hints import agree, choose_hint
from grader.exercise.verdict import Grade, Hint
from grader.judge.judge import Judge, Settings
from grader.submission.outline import outline, outline_live
from grader.submission.submission import Submission
from headcount.core.verdict import Diagnosis, Failure
from headcount.launch.launchers import default_launcher
from headcount.launch.root_cause import RootCause
from headcount.rank.arguments import PeerIsSelf
from headcount.rank.calling import raised as as_data
from headcount.trace.message_matcher import MessageMatcher
from headcount.trace.trace import Trace
from tests import declarations
from tests.grader import test_judge

SIZES = (2, 3)
_KIND = Kind(torch.float32, (3,))


def declare(*mistakes, **more):
    """Everybody's x to the left; with one kind of input for each of two world sizes."""
    return declarations.declare(
        signature="from_the_right(x: Tensor) -> Tensor",
        summary="the right neighbour's x",
        inputs=lambda draw: [draw.case("one", x=draw.per_rank(_KIND))],
        expected=lambda c: [c.x[(r + 1) % c.n] for r in c.ranks],
        hints=("Who is right of you?", "In code:\n    ..."),
        mistakes=mistakes,
        world_sizes=SIZES,
        **more,
    )


def judged(exercise, gives):
    """The cases of both sizes, judged as if an answer gave this."""
    found = []
    for n in SIZES:
        (case,) = exercise.cases(1, n)
        actual, right = gives(case), exercise.values.expected(case)
        same = all(map(torch.equal, actual, right))
        word = None if same else Diagnosis.WRONG_VALUE
        found.append(JudgedCase(case, word, actual, None, Trace(((),) * n)))
    return tuple(found)


def hint(exercise, gives, source=()):
    evidence = Evidence(judged(exercise, gives), tuple(source))
    return choose_hint(exercise, evidence.diagnosis, evidence).text


def left(c):
    return [c.x[r - 1] for r in c.ranks]


def own(c):
    return list(c.x)


def first(c):
    return [c.x[0]] * c.n


def test_of_conditions_that_hold_the_first_counts():
    wrong = Mistake("wrong", lambda e: e.diagnosis is Diagnosis.WRONG_VALUE)
    silent = Mistake("silent", lambda e: e.trace.traffic.messages == 0)
    loud = Mistake("loud", lambda e: e.trace.traffic.messages > 0)
    assert hint(declare(loud, silent, wrong), own) == "silent"
    assert hint(declare(wrong, silent), own) == "wrong"
    assert "Take 2 ranks" in hint(declare(loud), own)


def test_a_hint_says_how_well_it_is_known():
    """A condition and a mistake's program only show what the same comes of; a source proves it."""
    text = "def from_the_right(x):\n    y = x\n    x = y + y\n"
    rebinds = outline([text], ["from_the_right"])["from_the_right"]
    wrong = Mistake("wrong", lambda e: e.diagnosis is Diagnosis.WRONG_VALUE)
    evidence = Evidence(judged(declare(), own), ())
    grades = [
        choose_hint(exercise, evidence.diagnosis, replace(evidence, source=source), recognise).grade
        for exercise, source, recognise in (
            (declare(), (), lambda _: ""),
            (declare(wrong), (), lambda _: ""),
            (declare(), (), lambda _: "like it"),
            (declare(), tuple(rebinds), lambda _: ""),
        )
    ]
    assert grades == [Grade.OPEN, Grade.SUPPORTED, Grade.SUPPORTED, Grade.ESTABLISHED]


def with_first(number, factor=1.0):
    """Twice one's own x, of which the first element is another number."""

    def gives(c):
        found = [2 * factor * x for x in c.x]
        for x in found:
            x[0] = number
        return found

    return gives


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_not_finite_in_a_mistake_is_no_measure_of_the_rest(number):
    exercise = declare(reduced=lambda c: 10, magnitude=lambda c: [x.abs() for x in c.x])
    (case,) = exercise.cases(1, 2)
    would = with_first(number)(case)
    assert agree(exercise, case, would, with_first(number, 1 + 1e-7)(case))
    assert not agree(exercise, case, would, with_first(number, 1.5)(case))


def test_without_a_proof_the_smallest_world_that_is_wrong_is_named():
    assert "Take 2 ranks" in hint(declare(), own)
    assert "Take 3 ranks" in hint(declare(), left)
    assert "With 2 all cases pass" in hint(declare(), left)
    # what is right on more ranks is nothing new
    right_on_3 = lambda c: own(c) if c.n == 2 else [c.x[(r + 1) % c.n] for r in c.ranks]  # noqa: E731
    assert "all cases pass" not in hint(declare(), right_on_3)


def test_a_last_hint_without_code_is_not_the_whole_answer():
    assert declare().help.tells_all
    assert not Help(("Who is right of you?", "Send to the left.")).tells_all


# What an exception proves. ----------------------------------------------------------


class OwnPeerIsSelf(ValueError):
    """A class of the program's that has the name of one of headcount's."""


OwnPeerIsSelf.__name__ = "PeerIsSelf"


_NAMES = {"torch": torch, "ranks": dist, "PeerIsSelf": PeerIsSelf, "Own": OwnPeerIsSelf}


def raised(statements, source):
    """The hint for an answer that ends with what these statements raise."""
    causes = RootCause(MessageMatcher(2))
    with pytest.raises(
        (NameError, AttributeError, TypeError, PeerIsSelf, OwnPeerIsSelf, NotImplementedError)
    ) as caught:
        exec(statements, {**_NAMES})
    causes.raised(0, as_data("call", caught.value))
    exercise, failure = declare(), causes.first()
    (case,) = exercise.cases(1, 2)
    seen = JudgedCase(case, failure.diagnosis, (), failure, Trace(((),) * 2))
    outlines = outline([source], ["from_the_right"])["from_the_right"]
    return choose_hint(exercise, failure.diagnosis, Evidence((seen,), tuple(outlines))).text


NOTHING_PROVED = "It failed in the quoted line"


@pytest.mark.parametrize(
    "statements, text",
    [
        ("bufer", "There is no bufer. Did you mean buffer?"),
        ("quux", "Nothing is called quux"),
        ("dist.get_rank()", "import torch.distributed as dist."),
        ("rank", "function: rank = dist.get_rank()."),
        ("raise NameError(\"name 'rank' is not defined\")", NOTHING_PROVED),
        ("raise NameError('', name='rank')", NOTHING_PROVED),
        ("raise AttributeError('', name='Send', obj=ranks)", NOTHING_PROVED),
        ("raise Own('the peer is the same as the rank')", NOTHING_PROVED),
        ("def f():\n    def g(): return rank\n    g()\n    rank = 1\nf()", NOTHING_PROVED),
        ("ranks.Send()", "torch.distributed has no Send. Did you mean send?"),
        ("torch.quuxes(1)", "torch has no quuxes."),
        ("torch.ones(1).summ()", "Tensor has no summ. Did you mean sum?"),
        ("[].summ()", NOTHING_PROVED),
        ("class Tensor: pass\nTensor().summ()", NOTHING_PROVED),
        ("def f(x):\n    if not x: y = 1\n    return y\nf(1)", "y is used here before"),
        ("def f(x):\n    x += y\n    y = 1\nf(1)", "y is used here before"),
        ("raise PeerIsSelf('the peer is the same as the rank')", "A rank sends to itself"),
        ("def from_the_right(): pass\nfrom_the_right(1)", "keep these"),
        ("def combine(a, b): pass\ncombine(1)", "You have defined it as combine(a, b)"),
        ("def combine(a, b): pass\ncombine(1, 2, c=3)", "You have defined it as combine(a, b)"),
        ("def elsewhere(a, b): pass\nelsewhere(1)", NOTHING_PROVED),
        ("len(3)", NOTHING_PROVED),
    ],
)
def test_what_an_exception_proves(statements, text):
    source = "def combine(a, b): pass\ndef from_the_right(x):\n    buffer = x\n    combine(x)"
    assert text in raised(statements, source)


def test_a_misspelt_name_is_compared_with_a_bounded_number_of_short_ones(monkeypatch):
    compared = []
    matches = difflib.get_close_matches

    def counting(name, names, *more):
        compared.extend(names)
        return matches(name, names, *more)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    names = [
        *("f" * 70 + str(n) for n in range(100)),
        *(f"other_{n}" for n in range(3000)),
        "buffer",
    ]
    text = "\n    ".join(f"{name} = x" for name in names)
    source = f"def from_the_right(x):\n    {text}"
    assert raised("bufer", source) == "There is no bufer. Did you mean buffer?"
    assert len(compared) == 1000
    assert max(map(len, compared)) < 60
    assert "Nothing is called" in raised("f" * 71, source)


@pytest.mark.parametrize(
    "call, proved",
    [
        ("dist.all_reduce(torch.ones(rank + 1))", "bring different sizes"),
        ("dist.all_reduce(torch.ones(2, dtype=dtype))", "bring different dtypes"),
        ("dist.all_gather([torch.empty(rank + 1) for _ in 'ab'], torch.ones(rank + 1))", ""),
        ("(dist.recv if rank else dist.send)(torch.ones(rank + 1), 1 - rank)", ""),
        ("(dist.recv if rank else dist.send)(torch.ones(2, dtype=dtype), 1 - rank)", ""),
    ],
)
def test_different_tensors_in_one_call_of_a_collective(call, proved):
    exercise = test_judge.declare(allowed=frozenset({"all_reduce", "all_gather"}), world_sizes=(2,))
    source = (
        "import torch\nimport torch.distributed as dist\n"
        "def f(x):\n    rank = dist.get_rank()\n    dtype = (torch.int, torch.float)[rank]\n"
        f"    {call}\n"
    )
    submission = Submission.from_bytes(source.encode(), "a.py", {"f"})
    verdict = Judge(default_launcher(), Settings(1)).judge(exercise, submission)
    assert verdict.diagnosis in ("size_mismatch", "dtype_mismatch")
    found = re.search("The ranks meet in one call, and (bring different [a-z]+)", verdict.hint)
    assert (found[1] if found else "") == proved


# What the source says. --------------------------------------------------------------


def lost_in(source):
    (found, *_) = outline([source], ["f"])["f"]
    return [(lost.parameter, lost.line) for lost in found.lost]


@pytest.mark.parametrize(
    "body, lost",
    [
        ("a = a + b", [("a", 2)]),
        ("a = torch.minimum(a, b)", [("a", 2)]),
        ("for i in range(3):\n        a = a + b", [("a", 3)]),
        ("if b:\n        a = a + b\n    else:\n        send(a)", [("a", 3)]),
        ("a += b", []),
        ("a = a + b\n    send(a)", []),
        ("a = a + b\n    return a", []),
        ("for i in range(3):\n        send(a)\n        a = a + b", []),
        ("a = a.contiguous()", []),
        ("c = a + b", []),
    ],
)
def test_a_parameter_that_is_rebound_for_nothing(body, lost):
    assert lost_in(f"def f(a, b):\n    {body}\n") == lost


def test_a_lost_value_in_a_helper_is_named_with_its_line_of_code():
    source = outline(
        ["def add(a, b):\n    a = a + b\ndef from_the_right(x):\n    add(x, x)\n"],
        ["from_the_right"],
    )["from_the_right"]
    assert "`a = a + b` in add makes a new tensor" in hint(declare(), own, source)


def test_a_lost_value_in_a_function_inside_the_answer_is_named_too():
    text = "def from_the_right(x):\n    def add(a, b):\n        a = a + b\n    add(x, x)\n"
    parts = outline([text], ["from_the_right"])["from_the_right"]
    assert [(part.name, part.line) for part in parts] == [("from_the_right", 1), ("add", 2)]
    assert "`a = a + b` in add makes a new tensor" in hint(declare(), own, parts)


def test_an_outline_of_a_file_and_of_a_live_function_say_the_same():
    def helper(a):
        for i in range(1, 3):
            a += i

    def answer(x):
        helper(x)
        return x

    live = outline_live(answer)
    assert [part.name for part in live] == ["answer"]  # helper is no global of this module
    assert live[0].returns
    assert (live[0].parameters, live[0].header) == (["x"], "x")
    assert live[0].calls == ["helper"]
    text = "def helper(a):\n    for i in range(1, 3):\n        a += i\ndef f(x):\n    helper(x)\n"
    parts = outline([text], ["f"])["f"]
    assert [part.name for part in parts] == ["f", "helper"]
    evidence = Evidence((), tuple(parts))
    assert evidence.loops(r"range\(1, .*\)")
    assert not evidence.loops(r"range\(.\)")
    assert evidence.calls("helper")
    assert not evidence.calls("elper")
    assert evidence.written(r"a \+= i")


@pytest.mark.parametrize("source", ["def f(:", "x = 1", "\0", "def f():\n" + "(" * 5000])
def test_source_that_cannot_be_outlined_is_left_out(source):
    assert outline([source], ["f"]) == {}


def test_a_file_of_a_stranger_is_outlined_where_it_is_parsed():
    from grader.classroom.grading import parse
    from headcount.launch.launchers import default_launcher

    text = "def broadcast(x, src):\n    x = x + src\n"
    here = Submission.from_bytes(text.encode(), "a.py", ["broadcast"])
    there = parse(default_launcher(), text.encode(), "a.py", ["broadcast"])
    assert there.outlines == here.outlines
    assert [lost.text for lost in there.outlines["broadcast"][0].lost] == ["x = x + src"]


READING = """\
rank = 2
n = 4
CHUNK = 8

def from_the_right(x):
    y = x.clone()
    {body}
    return y
"""


@pytest.mark.parametrize(
    "body, text",
    [
        (
            "dist.recv(y, rank + 1)",
            "`rank` is 2 in your notebook, and from_the_right takes it from there: it is 2 on every"
            " rank. Inside from_the_right, call dist.get_rank().",
        ),
        (
            "dist.recv(y, (dist.get_rank() + 1) % n)",
            "it is 4 however many ranks there are. Inside from_the_right, call"
            " dist.get_world_size().",
        ),
        ("rank, n = dist.get_rank(), CHUNK", ""),
    ],
)
def test_a_rank_that_is_read_from_the_notebook_is_named_with_its_value(body, text):
    def gives(case):
        return [torch.zeros(3)] * case.n

    parts = outline([READING.format(body=body)], ["from_the_right"])["from_the_right"]
    found = hint(declare(), gives, parts)
    assert text in found
    assert ("in your notebook" in found) == bool(text)


def test_a_live_function_reads_what_its_notebook_holds_now(monkeypatch):
    from tests.grader import test_hints

    monkeypatch.setattr(test_hints, "rank", 3, raising=False)
    (part,) = outline_live(test_hints.reads_rank)
    assert part.globals == {"rank": 3}


def reads_rank(x):
    return rank  # noqa: F821


# What the source shows. --------------------------------------------------------------


@pytest.mark.parametrize(
    "lines, begins",
    [
        ("req.wait", "`req.wait` in line 4 only names the function"),
        ("first = dist.get_rank", "`dist.get_rank` in line 4 only names the function"),
        ("x = dist.recv(x, 1)\n    return x", "`x = dist.recv(x, 1)` in line 4: recv works on"),
        ("x = dist.all_reduce(x)\n    return x", "`x = dist.all_reduce(x)` in line 4: all_reduce"),
        ("y = dist.broadcast(x, 0)\n    return y", "`y = dist.broadcast(x, 0)` in line 4: broad"),
    ],
)
def test_code_that_hardly_anybody_means_is_named(lines, begins):
    source = f"def from_the_right(x):\n    dist.send(x, 1)\n    x + 1\n    {lines}\n"
    parts = outline([source], ["from_the_right"])["from_the_right"]
    assert hint(declare(), own, parts).startswith(begins)


@pytest.mark.parametrize(
    "lines",
    [
        "rank = dist.get_rank\n    return rank()",
        "threading.Thread(target=req.wait).start()",
        "sender = dist.recv(x)\n    return sender",
        "x = dist.recv(x, 1)",
        "req = dist.all_reduce(x, async_op=True)\n    req.wait()",
    ],
)
def test_code_that_may_be_meant_is_not(lines):
    source = f"def from_the_right(x):\n    {lines}\n"
    parts = outline([source], ["from_the_right"])["from_the_right"]
    assert "Take 2 ranks" in hint(declare(), own, parts)


def test_a_stubs_raise_that_is_left_over_is_named():
    source = "def from_the_right(x):\n    y = 1\n    raise NotImplementedError\n"
    found = raised("raise NotImplementedError", source)
    assert found.startswith("`raise NotImplementedError` in line 3 is left over")


def test_an_assignment_into_a_tuple_is_named():
    assert "A tuple cannot be changed" in raised("(1, 2)[0] = 3", "def from_the_right(x): ...")


def test_advice_on_a_quoted_line_needs_a_line():
    exercise = declare()
    (case,) = exercise.cases(1, 2)
    failure = Failure(Diagnosis.EXCEPTION, "rank 0: TypeError: no")
    seen = JudgedCase(case, failure.diagnosis, (), failure, Trace(((),) * 2))
    found = choose_hint(exercise, failure.diagnosis, Evidence((seen,)))
    assert found == Hint(exercise.help.hints[0], Grade.OPEN)


def test_with_which_arguments_it_is_wrong_is_told():
    def inputs(draw):
        return [draw.case(f"by {k}", x=draw.per_rank(_KIND), k=k) for k in (1, -1)]

    exercise = declarations.declare(
        signature="moved(x: Tensor, k: int) -> Tensor",
        summary="moved",
        inputs=inputs,
        expected=lambda c: [c.x[(r + c.k) % c.n] for r in c.ranks],
        world_sizes=(3,),
    )
    seen = []
    for case in exercise.cases(1, 3):
        word = Diagnosis.WRONG_VALUE if case.k < 0 else None
        seen.append(JudgedCase(case, word, list(case.x), None, Trace(((),) * 3)))
    found = choose_hint(exercise, Diagnosis.WRONG_VALUE, Evidence(tuple(seen))).text
    assert found.startswith("On 3 ranks the cases with k = -1 fail, and those with k = 1 pass.")


def test_the_only_case_that_fails_is_named():
    exercise = declare()
    (case,) = exercise.cases(1, 2)
    good = JudgedCase(replace(case, name="plain"), None, [1, 1], None, Trace(((),) * 2))
    bad = replace(good, case=replace(case, name="tied"), diagnosis=Diagnosis.WRONG_VALUE)
    found = choose_hint(exercise, Diagnosis.WRONG_VALUE, Evidence((bad, good, good, bad)))
    text = 'On 2 ranks only "tied" fails: what sets it apart?'
    assert found == Hint(text, Grade.ESTABLISHED)  # it is what the run has shown


def test_whole_numbers_that_went_through_a_float_are_recognised():
    exercise = declarations.declare(
        signature="same(x: Tensor) -> Tensor",
        summary="the same",
        inputs=lambda draw: [draw.case("one", x=PerRank([torch.tensor([2**24 + 1])] * 2))],
        expected=lambda c: list(c.x),
        world_sizes=(2,),
    )
    (case,) = exercise.cases(1, 2)
    held = [x.float().long() for x in case.x]
    seen = JudgedCase(case, Diagnosis.WRONG_VALUE, held, None, Trace(((),) * 2))
    assert "above 2**24" in choose_hint(exercise, seen.diagnosis, Evidence((seen,))).text
