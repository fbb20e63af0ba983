"""Chapter 27: attention over a sequence that is split among ranks (context parallelism)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, Kind, PerRank, nbytes
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import (
    combined,
    held,
    neighbours_only,
    point,
    sent,
    sent_elements,
)
from grader.instruments import ReceivedStorages
from grader.instruments.marks import memory_mark
from headcount.core.values import describe, show
from headcount.core.verdict import Diagnosis

# Inputs. ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sequence:
    """The shape of a case, and what its scores are like.

    Attributes:
        name: the name of the case.
        heads: the number of heads; for Ulysses, of each rank's.
        tokens: of each rank.
        dim: numbers of a head for each token.
        causal, dtype: as they say.
        offset: the scores of a rank's keys are larger by so much, given the rank.
        mixed: whether they are smaller by it in every other row, by head and by token.
    """

    name: str
    heads: int
    tokens: int
    dim: int
    causal: bool = False
    dtype: torch.dtype = torch.float32
    offset: Callable[[int], float] | None = None
    mixed: bool = False


#: The plainest come first; the one with a single number for each token and zeros for q is before
#: all of them.
_SETTINGS = (
    _Sequence("2 heads, 3 tokens a rank", 2, 3, 4),
    _Sequence("2 heads, 3 tokens a rank, causal", 2, 3, 4, causal=True),
    _Sequence("one token a rank, causal", 1, 1, 5, causal=True, dtype=torch.float64),
    _Sequence("scores near 140 and −140", 2, 2, 8, offset=lambda rank: 140.0, mixed=True),
    _Sequence("scores that grow from rank to rank", 1, 3, 6, offset=lambda rank: 5.0 * rank),
    _Sequence(
        "scores that fall from rank to rank, causal", 1, 4, 6, causal=True,
        dtype=torch.float64, offset=lambda rank: -3.0 * rank,
    ),
    _Sequence("4 heads, 16 tokens a rank, causal", 4, 16, 32, causal=True),
)  # fmt: skip


def _inputs(draw: Draw, heads: Callable[[int, int], int]) -> Iterator[Case]:
    """Draw q, k and v for every rank; ``heads`` takes a setting's number of heads, and n."""
    kind = Kind(torch.float32, (heads(1, draw.n), 1, 3))
    yield draw.case(
        "one token a rank, zeros for q: the mean of all v",
        q=PerRank(torch.zeros(kind.shape) for _ in draw.ranks),
        k=PerRank(draw.tensor(kind) for _ in draw.ranks),
        v=draw.per_rank(kind, "AVG"),
        causal=False,
    )
    for one in _SETTINGS:
        kind = Kind(one.dtype, (heads(one.heads, draw.n), one.tokens, one.dim))
        q, k, v = (draw.per_rank(kind) for _ in range(3))
        if one.offset is not None:
            # the product of the first numbers of q and k, and the other products as they are drawn
            rows = torch.arange(kind.shape[0])[:, None] + torch.arange(one.tokens)
            sign = 1 - 2 * (rows % 2) if one.mixed else 1
            for rank in draw.ranks:
                q[rank][..., 0] = 8.0 * sign
                k[rank][..., 0] = one.offset(rank) * math.sqrt(one.dim) / 8
        yield draw.case(one.name, q=q, k=k, v=v, causal=one.causal)


# The oracle. ------------------------------------------------------------------------


def attend(c: Case) -> list[torch.Tensor]:
    """Return softmax(q·kᵀ/√dim)·v of every rank's queries over the tokens of all ranks.

    They are in rank order; with a mask query i of the sequence sees keys 0 … i.
    """
    keys, values = (torch.cat([x.double() for x in c.columns[name]], 1) for name in "kv")
    found = []
    for rank, q in zip(c.ranks, c.q, strict=True):
        scores = q.double() @ keys.mT / math.sqrt(q.shape[2])
        if c.causal:
            later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(rank * q.shape[1] + 1)
            scores = scores.masked_fill(later, -math.inf)
        # torch's own softmax starts threads, however small the rows are
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        found.append((weights / weights.sum(-1, keepdim=True) @ values).to(q.dtype))
    return found


def _sizes(c: Case) -> list[torch.Tensor]:
    """Return the largest magnitude among all v, in units of float32's accuracy."""
    values = torch.cat([v.double() for v in c.v], 1)
    unit = torch.finfo(torch.float32).eps / torch.finfo(c.v[0].dtype).eps
    return [values.abs().amax(1, keepdim=True).expand_as(c.q[r]) * unit for r in c.ranks]


#: Roundings that are granted: scores near 140 are exact to 10⁻⁵ at best, and so are weights.
_ROUNDINGS = 2000


def _told(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that ranks must be told, where all of them need what others have.

    One rank alone needs nothing, nor does the first one with a mask; and where scores are large,
    a few tokens may have all of the weight.
    """
    mild = all(float(q.abs().max()) < 8 for q in c.q)
    return combined(c, expected) if c.n > 1 and mild and not c.causal else 0


# Ring attention. --------------------------------------------------------------------


def block(c: Case) -> int:
    """Return the bytes of the k and v of one rank."""
    return int(nbytes(c.k[0]) + nbytes(c.v[0]))


def watched(
    answer: Callable[..., Any],
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool,
) -> Any:
    """Call the answer, and mark the most that it has held of what came from other ranks."""
    group: Any = dist.group.WORLD
    if not hasattr(group, "watch_receives"):
        return answer(q, k, v, causal)  # simulated ranks share the memory of one process
    storages = ReceivedStorages()
    group.watch_receives(storages)
    with storages:
        result = answer(q, k, v, causal)
    group.mark(memory_mark(storages.most, "as it begins to wait", storages.fullest))
    return result


def _blocks_held(e: Evidence) -> float:
    """Return how many blocks are held where more than two are, on the most ranks that show it."""
    over = [one for one in e.failed if one.diagnosis is Diagnosis.MEMORY_LIMIT and one.limit]
    largest = max(over, key=lambda one: one.case.n)
    return float(largest.limit.measured / block(largest.case)) if largest.limit else 0.0


ring_attention = Exercise(
    signature="ring_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor",
    summary="attention of own queries over all tokens; keys and values travel round the ring",
    inputs=lambda draw: _inputs(draw, lambda heads, n: heads),
    adapter=watched,
    values=Values(attend, reduced=lambda c: _ROUNDINGS, magnitude=_sizes),
    traffic=TrafficRules(
        limits=(
            point(held("bytes held of other ranks' k and v", "≤", lambda c: 2 * block(c))),
            neighbours_only(),
            sent("=", lambda c: (c.n - 1) * block(c)),
        ),
        least=_told,
    ),
    points=2.0,
    mistakes=(
        Mistake(
            "All blocks are gathered first, and attention is computed at the end: the more ranks,"
            " the more each of them holds. Add a block to your sums while you have it, pass it on,"
            " and let it go.",
            when=lambda e: e.diagnosis is Diagnosis.MEMORY_LIMIT and _blocks_held(e) >= 4,
        ),
        Mistake(
            "There is one block more than needed: the one that you are working on, the one that is"
            " coming, and another. A copy of a block also counts, and so does one that an old"
            " variable still refers to.",
            when=lambda e: e.diagnosis is Diagnosis.MEMORY_LIMIT and _blocks_held(e) < 4,
        ),
        Mistake(
            "All ranks wait for what they send to be received, and none of them has posted its"
            " receive yet. Start with isend and irecv, compute, then wait for both.",
            when=evidence.all_send,
        ),
        *evidence.BUFFER_RACES,
    ),
)


# Ulysses. ---------------------------------------------------------------------------


def _all_tokens_of_some_heads(e: Evidence) -> bool:
    """Return whether all ranks hold what each of them computes, before it is given back."""
    n = e.case.n
    return n > 1 and all(
        isinstance(x, torch.Tensor) and x.shape == (q.shape[0] // n, n * q.shape[1], q.shape[2])
        for x, q in zip(e.actual, e.case.q, strict=True)
    )


ulysses_attention = Exercise(
    signature="ulysses_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor",
    summary="the same with all-to-alls: each rank takes all tokens of some heads",
    inputs=lambda draw: _inputs(draw, lambda heads, n: heads * n),
    values=Values(attend, reduced=lambda c: _ROUNDINGS, magnitude=_sizes),
    traffic=TrafficRules(
        limits=(
            point(
                sent_elements("≤", lambda c: 4 * (c.n - 1) * c.q[0].numel() // c.n),
            ),
        ),
        least=_told,
        allowed=frozenset({"all_to_all"}),
    ),
    mistakes=(
        Mistake(
            "The last step is missing: these are all tokens of some heads. They have to become own"
            " tokens of all heads again, by a fourth all-to-all.",
            when=_all_tokens_of_some_heads,
        ),
    ),
)


# Zigzag. ----------------------------------------------------------------------------


def _plans(draw: Draw) -> Iterator[Case]:
    for n, chunk in ((2, 2), (3, 1), (4, 1), (1, 3), (4, 5), (5, 16), (8, 4), (16, 128)):
        ranks = f"{n} rank{'s' * (n > 1)}"
        yield draw.case(f"{2 * n * chunk} tokens, {ranks}", tokens=2 * n * chunk, n=n)


def zigzag(tokens: int, n: int) -> list[list[int]]:
    """Return the two chunks of each rank, one from either end of a sequence of 2n."""
    size = tokens // (2 * n)
    chunk = [list(range(i * size, (i + 1) * size)) for i in range(2 * n)]
    return [chunk[r] + chunk[2 * n - 1 - r] for r in range(n)]


def pairs(plan: Sequence[Sequence[int]]) -> list[int]:
    """Return the pairs of query and key of each rank, with a causal mask."""
    return [sum(token + 1 for token in tokens) for tokens in plan]


_PAIRS = "pairs of query and key on each rank"


def _report(c: Case, plan: Any) -> dict[str, str]:
    """Return what holds of the lists of tokens of all ranks."""
    tokens, n = c.tokens, c.columns["n"]
    facts = {"the result": _malformed(plan, tokens, n), "tokens that no rank takes": "none"}
    facts[_PAIRS] = f"at most {tokens // (2 * n)} apart"
    if facts["the result"] != _sound(tokens, n):
        return facts
    missing = sorted(set(range(tokens)) - {token for own in plan for token in own})
    if missing:
        facts["tokens that no rank takes"] = ", ".join(map(str, missing[:8]))
    elif max(pairs(plan)) - min(pairs(plan)) > tokens // (2 * n):
        facts[_PAIRS] = ", ".join(map(str, pairs(plan)))
    return facts


def _sound(tokens: int, n: int) -> str:
    return f"{n} lists of {tokens // n} tokens"


def _malformed(plan: Any, tokens: int, n: int) -> str:
    """Return what is wrong with the form of a result; what it should be if nothing is."""
    if not isinstance(plan, (list, tuple)):
        return f"{describe(plan)}, not a list"
    for rank, own in enumerate(plan):
        if not isinstance(own, (list, tuple)):
            return f"a list whose entry {rank} is {describe(own)}"
        for token in own:
            if type(token) is not int or not 0 <= token < tokens:
                return f"a list with {show(token)} as a token of rank {rank}"
    lengths = sorted({len(own) for own in plan})
    return f"{len(plan)} lists of {' or '.join(map(str, lengths))} tokens"


def _expected(c: Case) -> list[dict[str, str]]:
    return [_report(c, zigzag(c.tokens, c.columns["n"]))]


def _wrong_fact(e: Evidence, name: str) -> bool:
    """Return whether this is the first fact that is wrong."""
    got, want = e.actual[0], _expected(e.case)[0]
    return next((key for key in want if got[key] != want[key]), "") == name


zigzag_split = Exercise(
    signature="zigzag_split(tokens: int, n: int) -> list[list[int]]",
    summary="which tokens each rank takes, so that all have as much causal work",
    inputs=_plans,
    world_sizes=(1,),
    values=Values(_expected, facts=_report),
    mistakes=(
        Mistake(
            "Return a list of lists, one for each rank, with tokens / n of the numbers 0 … tokens"
            " − 1 in each, as Python ints. (If one rank had more than another, their blocks of"
            " keys would not be of one size.)",
            when=lambda e: _wrong_fact(e, "the result"),
        ),
        Mistake(
            "Some tokens are taken twice and others by no rank. Chunk i begins at"
            " i · tokens // (2n) and has tokens // (2n) tokens; every chunk has to go to one rank.",
            when=lambda e: _wrong_fact(e, "tokens that no rank takes"),
        ),
    ),
)
