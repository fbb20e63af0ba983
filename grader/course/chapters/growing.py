"""The inputs of ring exercises on many simulated ranks: as little data as shows the growth."""

from __future__ import annotations

import torch

from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.exercise import Growth
from grader.course.oracles import OPS

__all__ = ["ALL_GATHER", "ALL_REDUCE", "REDUCE_SCATTER"]

#: Up to so many ranks the values are compared where every rank holds one from each:
#: n² tensors take longer to make and to look at than to send.
_COMPARED = 64

_ONE = Kind(torch.int64, (1,))


def _all_gather(draw: Draw) -> Case:
    return draw.case("one number a rank", x=draw.per_rank(_ONE))


def _reduce_scatter(draw: Draw) -> Case:
    if draw.n <= _COMPARED:
        chunks = draw.chunks(_ONE, "SUM")
    else:
        chunks = PerRank([list(draw.per_rank(_ONE))] * draw.n)
    return draw.case("SUM of one number a chunk", chunks=chunks, op=OPS["SUM"])


def _all_reduce(draw: Draw) -> Case:
    x = draw.per_rank(Kind(torch.int64, (draw.n,)), "SUM")
    return draw.case("SUM of one number a chunk", x=x, op=OPS["SUM"])


ALL_GATHER = Growth(_all_gather, values=_COMPARED)
REDUCE_SCATTER = Growth(_reduce_scatter, values=_COMPARED)
ALL_REDUCE = Growth(_all_reduce)
