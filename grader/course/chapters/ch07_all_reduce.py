"""Chapter 07: many values become one, on every rank."""

from collections.abc import Iterator

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import OPS, Case, Draw, demo, magnitude, reduced, reductions, tags
from grader.course.chapters import evidence
from grader.course.exercise import Exercise
from grader.course.limits import calls, combined, given, messages, point


def _inputs(draw: Draw) -> Iterator[Case]:
    for name, kind in reductions(draw.n):
        yield draw.case(f"{name} of {kind}", x=draw.per_rank(kind, name), op=OPS[name])


_RETURNS = "all_reduce works in place: put the result into x itself, with x.copy_(...), and return"

all_reduce_rooted = Exercise(
    signature="all_reduce_rooted(x: Tensor, op: dist.ReduceOp) -> None",
    summary="in place; reduce to one rank, then broadcast from it",
    inputs=_inputs,
    result="x",
    expected=lambda c: [reduced(c.op, c.x)] * c.n,
    least=combined,
    reduced=lambda c: c.n,
    magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
    limits=(messages("=", lambda c: 2 * (c.n - 1)),),
    demo=lambda n: demo(n, x=tags(n, 2), op=OPS["SUM"]),
    hints=(
        "You have written both halves: the reduce of chapter 04 and the broadcast of chapter 02."
        " With one rank as the root of both, what does each rank send, and what does it receive?",
        "The root receives from each of the others and combines what comes into x. When all have"
        " come, it sends x to each of them. The others send x once, and then receive once, into x.",
        "On rank 0: for src in range(1, n): dist.recv(buffer, src), combine into x; divide once if"
        " op is AVG; then for dst in range(1, n): dist.send(x, dst). On the others: dist.send(x,"
        " 0), then dist.recv(x, 0).",
        "This is the whole answer:\n"
        "    R, n = dist.ReduceOp, dist.get_world_size()\n"
        "    if dist.get_rank() != 0:\n"
        "        dist.send(x, 0)\n"
        "        dist.recv(x, 0)\n"
        "        return\n"
        "    buffer = torch.empty_like(x)\n"
        "    for src in range(1, n):\n"
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
        "        x /= n\n"
        "    for dst in range(1, n):\n"
        "        dist.send(x, dst)",
    ),
    mistakes=(
        *evidence.BUFFER_RACES,
        evidence.AVERAGE_ALONE,
    ),
    advice={
        Diagnosis.WRONG_TYPE: f"{_RETURNS} nothing.",
        Diagnosis.FORBIDDEN_CALL: "dist.reduce and dist.broadcast would do it in two lines. Here"
        " you write both halves with send and recv; your own functions of chapters 02 and 04 will"
        " do.",
        Diagnosis.TOO_MANY_MESSAGES: "If every rank sends to every other one, that is n(n − 1)"
        " messages. A root needs only n − 1 to collect, and n − 1 to send the result.",
        Diagnosis.TOO_FEW_MESSAGES: "The root receives from n − 1 ranks, and sends the result to"
        " n − 1 ranks.",
        Diagnosis.DEADLOCK: "The first half goes towards the root: it receives from everyone"
        " before it sends to anyone, and the others send before they receive.",
    },
)


def _share(c: Case) -> int:
    """Return the elements of the largest share of x, cut by elements or by rows."""
    x: torch.Tensor = c.x[0]
    if x.dim() == 0 or not x.numel():
        return 1
    row = x.numel() // len(x)
    return max(-(-x.numel() // c.n), -(-len(x) // c.n) * row)


all_reduce_sharded = Exercise(
    signature="all_reduce_sharded(x: Tensor, op: dist.ReduceOp) -> None",
    summary="in place; a reduce-scatter, then an all-gather, for any length",
    inputs=_inputs,
    result="x",
    expected=lambda c: [reduced(c.op, c.x)] * c.n,
    least=combined,
    reduced=lambda c: c.n,
    magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
    allowed=frozenset({"reduce_scatter", "all_gather"}),
    # to gather everything and reduce it on every rank is to share no work, and a
    # reduce-scatter beside it changes nothing
    limits=(
        point(calls({"reduce_scatter", "send"}, "≥", lambda c: c.n * (1 < c.n <= c.x[0].numel()))),
        point(given("all_gather", "≤", _share)),
    ),
    hints=(
        "Suppose first that n divides the number of elements. Which piece of the result does a rank"
        " hold after a reduce-scatter, and which ranks need that piece?",
        "Where n does not divide it, make a longer tensor: the elements of x, then padding up to"
        " the next multiple of n. What becomes of the padding does not matter, since it is cut off"
        " at the end.",
        "size = -(-x.numel() // n) rounds up, and x.new_zeros(n * size) has room for x and the"
        " padding. Both collectives take its pieces, list(padded.tensor_split(n)):"
        " dist.reduce_scatter(mine, pieces, op=...), then dist.all_gather(pieces, mine). If your"
        " gloo does not know AVG, take SUM and divide mine by n.",
        "This is the whole answer:\n"
        "    n, average = dist.get_world_size(), op == dist.ReduceOp.AVG\n"
        "    size = -(-x.numel() // n)\n"
        "    padded = x.new_zeros(n * size)\n"
        "    padded[: x.numel()] = x.flatten()\n"
        "    pieces = list(padded.tensor_split(n))\n"
        "    mine = torch.empty_like(pieces[0])\n"
        "    dist.reduce_scatter(mine, pieces, op=dist.ReduceOp.SUM if average else op)\n"
        "    if average:\n"
        "        mine /= n\n"
        "    dist.all_gather(pieces, mine)  # fills padded\n"
        "    x.copy_(padded[: x.numel()].view_as(x))",
    ),
    mistakes=(evidence.AVERAGE_ALONE,),
    advice={
        Diagnosis.TOO_MANY_BYTES: "More was gathered than each rank's share, so every rank did all"
        " the work. Gather only the piece that the reduce-scatter has given you.",
        Diagnosis.TOO_FEW_MESSAGES: "Without a reduce_scatter every rank did all the work. Share"
        " it: reduce_scatter first, so that each rank combines one piece.",
        Diagnosis.WRONG_TYPE: f"{_RETURNS} nothing.",
        Diagnosis.FORBIDDEN_CALL: "Not dist.all_reduce, nor any other collective, not even in a"
        " helper: a reduce-scatter and an all-gather are all that you need.",
        Diagnosis.EXCEPTION: "If two sizes do not fit together: which sizes do the pieces have? Try"
        " a length that n does not divide, one below n, and an x with two dimensions.",
        Diagnosis.WRONG_VALUE: "Follow one element from x through its piece and back. If you pad,"
        " what is cut off at the end must be exactly what was added.",
        Diagnosis.ORDER_MISMATCH: "Every rank makes the same calls in the same order.",
        Diagnosis.DEADLOCK: "Every rank makes the same two calls, even one whose piece is empty.",
    },
)
