"""Chapter 04: many values become one, on one rank."""

from collections.abc import Iterator

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import (
    OPS,
    Case,
    Draw,
    demo,
    magnitude,
    reduced,
    reductions,
    tags,
)
from grader.course.chapters import evidence
from grader.course.costs import tree_levels
from grader.course.exercise import Evidence, Exercise, Mistake
from grader.course.limits import combined, messages, point, rounds


def _inputs(draw: Draw) -> Iterator[Case]:
    for i, (name, kind) in enumerate(reductions(draw.n)):
        dst = (draw.n - 1 + i) % draw.n
        x = draw.per_rank(kind, name)
        yield draw.case(f"{name} of {kind} to rank {dst}", x=x, dst=dst, op=OPS[name])


def _reduced(c: Case) -> list[torch.Tensor]:
    return [reduced(c.op, c.x) if r == c.dst else c.x[r] for r in c.ranks]


def _others_changed(e: Evidence) -> bool:
    """Return whether dst is right and the x of another rank has changed."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    got, right = e.actual[e.case.dst].double(), reduced(e.case.op, e.case.x).double()
    return torch.allclose(got, right, rtol=1e-2, atol=1e-5) and any(
        not torch.equal(t, e.case.x[r]) for r, t in enumerate(e.actual) if r != e.case.dst
    )


_CHANGED = Mistake(
    "dst is right, but another rank's x has changed, which must stay as it was. Where a rank"
    " combines what it is going to pass on, let it do so in a copy: x.clone().",
    when=_others_changed,
)

reduce = Exercise(
    signature="reduce(x: Tensor, dst: int, op: dist.ReduceOp) -> None",
    summary="in place on dst: SUM, AVG, MIN, MAX or PRODUCT; unchanged elsewhere",
    inputs=_inputs,
    result="x",
    expected=_reduced,
    least=combined,
    reduced=lambda c: c.n,
    # off dst x must not change by a bit, so there nothing is allowed for rounding
    magnitude=lambda c: [
        magnitude(c.op, c.x) if r == c.dst else torch.zeros_like(c.x[r]) for r in c.ranks
    ],
    limits=(messages("=", lambda c: c.n - 1),),
    demo=lambda n: demo(n, x=tags(n, 2), dst=0, op=OPS["SUM"]),
    hints=(
        "gather brings everything to dst. Does dst have to keep it all, or can it combine each"
        " tensor as it comes?",
        "dst receives into a buffer of its own, once per other rank, and combines the buffer into"
        " x: +=, torch.minimum, torch.maximum, *=. The others send x and leave it alone.",
        "AVG is SUM, divided by n once at the end. To write a result into x:"
        " torch.minimum(x, buffer, out=x), or x.copy_(torch.minimum(x, buffer)).",
        "This is the whole answer:\n"
        "    R, n = dist.ReduceOp, dist.get_world_size()\n"
        "    if dist.get_rank() != dst:\n"
        "        dist.send(x, dst)\n"
        "        return\n"
        "    buffer = torch.empty_like(x)\n"
        "    for src in range(n):\n"
        "        if src == dst:\n"
        "            continue\n"
        "        dist.recv(buffer, src)\n"
        "        if op == R.MIN:\n"
        "            torch.minimum(x, buffer, out=x)\n"
        "        elif op == R.MAX:\n"
        "            torch.maximum(x, buffer, out=x)\n"
        "        elif op == R.PRODUCT:\n"
        "            x *= buffer\n"
        "        else:\n"
        "            x += buffer\n"
        "    if op == R.AVG:\n"
        "        x /= n",
    ),
    mistakes=(
        *evidence.BUFFER_RACES,
        evidence.AVERAGE_ALONE,
        _CHANGED,
        Mistake(
            "dst sends, too. Each of the other n − 1 ranks sends once, and dst only receives:"
            " telling everyone the result is an all-reduce, which comes later.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_MESSAGES
                and any(op.rank == e.case.dst for op in e.trace.sends())
            ),
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "reduce works in place, on dst's x, and returns nothing.",
        Diagnosis.TOO_MANY_MESSAGES: "n − 1 messages are enough: each of the other ranks sends"
        " once.",
        Diagnosis.DEADLOCK: "Every send needs its receive. The plain way: dst receives once from"
        " each of the others, and the others only send.",
    },
)


tree_reduce = Exercise(
    signature="tree_reduce(x: Tensor, dst: int, op: dist.ReduceOp) -> None",
    summary="the same as reduce on a tree: ⌈log₂ n⌉ rounds",
    inputs=_inputs,
    result="x",
    expected=_reduced,
    least=combined,
    reduced=lambda c: c.n,
    magnitude=reduce.magnitude,
    limits=(
        messages("=", lambda c: c.n - 1),
        point(rounds("=", lambda c: tree_levels(c.n))),
    ),
    demo=lambda n: demo(n, x=tags(n, 1), dst=0, op=OPS["SUM"]),
    hints=(
        "In the picture, which ranks are finished after the first round, and which go on? What does"
        " rank 4 hold when it sends in the last round?",
        "Pair the ranks in every round: one of each pair sends what it has combined so far, and is"
        " done, the other combines it with its own and goes on. A rank without a partner waits for"
        " the next round. Draw that for 5 ranks and dst 0; for another dst, a rank's place in the"
        " drawing is its distance from dst.",
        "In the round with step 1, 2, 4, … a rank whose number has that bit sends what it has"
        " combined so far to rank − step, and is done. The others receive from rank + step, if"
        " there is one, and combine. Work in a copy of x, and for another dst count the ranks from"
        " it: v = (rank − dst) % n.",
        "This is the whole answer:\n"
        "    R, n = dist.ReduceOp, dist.get_world_size()\n"
        "    v = (dist.get_rank() - dst) % n\n"
        "    total, buffer, step = x.clone(), torch.empty_like(x), 1\n"
        "    while step < n:\n"
        "        if v & step:\n"
        "            dist.send(total, (v - step + dst) % n)\n"
        "            return\n"
        "        if v + step < n:\n"
        "            dist.recv(buffer, (v + step + dst) % n)\n"
        "            if op == R.MIN:\n"
        "                torch.minimum(total, buffer, out=total)\n"
        "            elif op == R.MAX:\n"
        "                torch.maximum(total, buffer, out=total)\n"
        "            elif op == R.PRODUCT:\n"
        "                total *= buffer\n"
        "            else:\n"
        "                total += buffer\n"
        "        step *= 2\n"
        "    x.copy_(total / n if op == R.AVG else total)",
    ),
    mistakes=(
        *evidence.BUFFER_RACES,
        evidence.AVERAGE_ALONE,
        _CHANGED,
        Mistake(
            "It is right with 2 and 4 ranks and wrong with 3 and 5, where some partners do not"
            " exist. Does each rank but dst still send once, and does none wait for a rank that is"
            " not there?",
            when=evidence.on_powers_of_two_only,
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "tree_reduce works in place, on dst's x, and returns nothing.",
        Diagnosis.TOO_MANY_ROUNDS: "In the first round half of the ranks send, in the second a"
        " quarter, until one is left. Which of your messages could travel in an earlier round?",
        Diagnosis.TOO_MANY_MESSAGES: "Each of the other n − 1 ranks sends once, and is done.",
        Diagnosis.DEADLOCK: "Each rank but dst sends once, after it has received all that it is to"
        " combine, to a partner that receives from it in the same round. With 3 or 5 ranks some"
        " partners do not exist.",
        Diagnosis.WRONG_VALUE: "Take four ranks and dst 0, and write down what each holds after"
        " each round. Does an x count twice, or not at all?",
    },
)
