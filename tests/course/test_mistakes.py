"""Mistakes as programs: which one is recognised, and when none is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from grader.api import catalogue
from grader.exercise.answers import KnownAnswer
from grader.exercise.catalogue import Catalogue
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher

ROOT_ZERO = """
import torch.distributed as dist

def broadcast(x, src):
    if dist.get_rank() == 0:
        for other in range(1, dist.get_world_size()):
            dist.send(x, other)
    else:
        dist.recv(x, 0)
"""

#: Holds the same in the end, and sends along a chain.
CHAIN = """
import torch.distributed as dist

def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        dist.recv(x, rank - 1)
    if rank < n - 1:
        dist.send(x, rank + 1)
"""

NOTHING = "def broadcast(x, src):\n    pass\n"

ALL_SEND = """
import torch.distributed as dist

def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n > 1:
        dist.send(x, (rank + 1) % n)
"""

ALL_RECEIVE = ALL_SEND.replace("send(x", "recv(x")

#: In the style of somebody else: with isend, and another name for everything.
ROOT_ZERO_OTHERWISE = """
import torch.distributed as d

def broadcast(tensor, source):
    if d.get_rank():
        d.recv(tensor, 0)
        return
    for r in [d.isend(tensor, i) for i in range(1, d.get_world_size())]:
        r.wait()
"""


def hint(answer, *known):
    """What is said of an answer to ``broadcast``, with these programs and hints for mistakes.

    A hint that begins with ``!`` says who sends to whom.
    """
    programs = tuple(
        KnownAnswer(
            Path(f"{i}.py"),
            ("broadcast",),
            diagnosis,
            text.removeprefix("!"),
            (source,),
            (styles,),
            alike="messages" if text.startswith("!") else "",
        )
        for i, (diagnosis, text, source, *styles) in enumerate(known)
    )
    exercise = replace(catalogue()["broadcast"], programs=lambda: programs)
    exercises = Catalogue([exercise])
    submission = Submission.from_bytes(answer.encode(), "answer.py", exercises)
    judge = Judge(default_launcher(), Settings(1, until_hint=True))
    return judge.judge(exercises["broadcast"], submission).hint


WRONG = Diagnosis.WRONG_VALUE


def test_a_mistake_is_recognised_whatever_the_style():
    known = ((WRONG, "the source is src", ROOT_ZERO), (WRONG, "nothing is sent", NOTHING))
    assert hint(ROOT_ZERO_OTHERWISE, *known) == "the source is src"
    assert hint(NOTHING, *known) == "nothing is sent"


def test_of_those_that_hold_the_same_the_messages_decide():
    known = ((WRONG, "from rank 0", ROOT_ZERO), (WRONG, "along a chain", CHAIN))
    assert hint(ROOT_ZERO, *known) == "from rank 0"
    assert hint(CHAIN, *known) == "along a chain"


def test_two_that_do_the_same_and_differ_in_words_say_nothing():
    own = [(WRONG, "one", ROOT_ZERO), (WRONG, "two", ROOT_ZERO)]
    assert hint(ROOT_ZERO, *own) not in ("one", "two")
    own[1] = (WRONG, "one", ROOT_ZERO)
    assert hint(ROOT_ZERO, *own) == "one"


def test_a_deadlock_is_recognised_by_who_waits_for_whom_in_what():
    stuck = Diagnosis.DEADLOCK
    known = ((stuck, "all send", ALL_SEND), (stuck, "all receive", ALL_RECEIVE))
    assert hint(ALL_SEND, *known) == "all send"
    assert hint(ALL_RECEIVE, *known) == "all receive"


def test_a_mistake_that_is_right_where_the_answer_is_wrong_is_not_the_one():
    only_on_two = ROOT_ZERO.replace("        dist.recv(x, 0)", "        pass").replace(
        "            dist.send(x, other)", "            pass"
    )
    assert hint(ROOT_ZERO, (WRONG, "another", only_on_two)) != "another"


def test_another_style_of_the_same_mistake_is_tried_where_the_first_disagrees():
    """It agrees in the case that leads the verdict, on two ranks, and no longer on three."""
    half = ROOT_ZERO.replace("range(1, dist.get_world_size())", "range(1, 2)").replace(
        "    else:", "    elif dist.get_rank() == 1:"
    )
    found = hint(ROOT_ZERO, (WRONG, "the source is src", half, ROOT_ZERO))
    assert found == "the source is src"


def test_a_hint_that_says_who_sends_to_whom_needs_such_messages():
    assert hint(CHAIN, (WRONG, "!along a chain", CHAIN)) == "along a chain"
    assert hint(ROOT_ZERO, (WRONG, "!along a chain", CHAIN)) != "along a chain"
    assert hint(ROOT_ZERO, (WRONG, "the source is src", CHAIN)) == "the source is src"


def test_a_mistake_without_messages_is_not_that_of_an_answer_with_some():
    in_vain = NOTHING.replace("pass", "import torch.distributed as dist\n    ") + (
        "    y = x.clone()\n"
        "    rank, n = dist.get_rank(), dist.get_world_size()\n"
        "    if rank == 0:\n"
        "        [dist.send(y, other) for other in range(1, n)]\n"
        "    else:\n"
        "        dist.recv(y, 0)\n"
    )
    assert hint(in_vain, (WRONG, "nothing is sent", NOTHING)) != "nothing is sent"
