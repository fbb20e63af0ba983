"""Chapter 27: attention over a sequence that is split among ranks (context parallelism)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, PerRank, nbytes
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Gives, Mistake, TrafficRules, Values
from grader.course.limits import (
    combined,
    held,
    holding,
    neighbours_only,
    point,
    sent,
    sent_elements,
)
from grader.rank.instrumentation import ReceivedStorages

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


# The oracle, and what mistakes give. ------------------------------------------------

#: The positions of queries (a column) and of keys (a row), the rank that has the queries, and the
#: number of tokens of a rank, to whether a query sees a key.
Sees = Callable[[torch.Tensor, torch.Tensor, int, int], torch.Tensor]


def every(i: torch.Tensor, j: torch.Tensor, rank: int, tokens: int) -> torch.Tensor:
    """Return that every query sees every key."""
    return (i >= 0) & (j >= 0)


def earlier(i: torch.Tensor, j: torch.Tensor, rank: int, tokens: int) -> torch.Tensor:
    """Return whether the key is the query's own or before it."""
    return j <= i


def _sees(c: Case) -> Sees:
    return earlier if c.causal else every


def _scores(c: Case, rank: int, scale: float = 0.0, sees: Sees | None = None) -> torch.Tensor:
    """Return the scores of a rank's queries with all keys, in float64; −inf is not seen."""
    q, keys = c.q[rank].double(), torch.cat([k.double() for k in c.k], 1)
    tokens = q.shape[1]
    i = rank * tokens + torch.arange(tokens)[:, None]
    seen = (sees or _sees(c))(i, torch.arange(keys.shape[1])[None], rank, tokens)
    scores = q @ keys.mT * (scale or 1 / math.sqrt(q.shape[2]))
    masked: torch.Tensor = scores.masked_fill(~seen, -math.inf)
    return masked


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    """Return the softmax of rows; torch's own starts threads, however small they are."""
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def attend(c: Case, scale: float = 0.0, sees: Sees | None = None) -> list[torch.Tensor]:
    """Return the attention of every rank's queries over all tokens, or a mistake's.

    Args:
        c: the case.
        scale: what products of q and k are multiplied with; 1/√dim if it is 0.
        sees: which keys a query sees; as the case says, if not given.
    """
    values = torch.cat([v.double() for v in c.v], 1)
    return [
        (_softmax(_scores(c, rank, scale, sees)) @ values).to(c.q[rank].dtype) for rank in c.ranks
    ]


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


def _blocks(c: Case, rank: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return, for each block of keys, the maximum and the sum of weights, and the weighted sum.

    The shapes are blocks × heads × tokens × 1, and × dim for the last.
    """
    scores = torch.stack(_scores(c, rank).tensor_split(c.n, -1))
    top = scores.amax(-1, keepdim=True)
    weights = (scores - top.clamp(min=-1e300)).exp()
    return top, weights.sum(-1, keepdim=True), weights @ torch.stack([v.double() for v in c.v])


def _merged(c: Case, how: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
    """Return what every rank has if ``how`` makes one result of maxima, sums and weighted sums."""
    return [how(*_blocks(c, rank), rank).to(c.q[rank].dtype) for rank in c.ranks]


def _order(rank: int, n: int) -> list[int]:
    """Return the blocks in the order in which they come round the ring."""
    return [(rank - s) % n for s in range(n)]


def _mean_of_blocks(top: torch.Tensor, total: torch.Tensor, out: torch.Tensor, _: int) -> Any:
    seen = (total > 0).double()
    return ((out / total.clamp(min=1e-300)) * seen).sum(0) / seen.sum(0)


def _mean_over_all(top: torch.Tensor, total: torch.Tensor, out: torch.Tensor, _: int) -> Any:
    return (out / total.clamp(min=1e-300)).sum(0) / len(out)


def _sum_of_blocks(top: torch.Tensor, total: torch.Tensor, out: torch.Tensor, _: int) -> Any:
    return (out / total.clamp(min=1e-300)).sum(0)


def _own_maxima(top: torch.Tensor, total: torch.Tensor, out: torch.Tensor, _: int) -> Any:
    """Add weights that are relative to the maximum of each block."""
    return out.sum(0) / total.sum(0)


def _rescaled(sums: bool, outs: bool) -> Callable[..., torch.Tensor]:
    """Return the online softmax that rescales only some of what it has when the maximum grows."""

    def merge(top: torch.Tensor, total: torch.Tensor, out: torch.Tensor, rank: int) -> torch.Tensor:
        first, *rest = _order(rank, len(top))
        m, weight, rows = top[first], total[first], out[first]
        for s in rest:
            new = torch.maximum(m, top[s])
            old, factor = (m - new).exp(), (top[s] - new).exp()
            weight = (weight * old if sums else weight) + total[s] * factor
            rows = (rows * old if outs else rows) + out[s] * factor
            m = new
        return rows / weight

    return merge


def _divided_each_time(
    top: torch.Tensor, total: torch.Tensor, out: torch.Tensor, rank: int
) -> torch.Tensor:
    """Divide by the sum of weights so far after each block; blocks without a weight are skipped."""
    first, *rest = _order(rank, len(top))
    m, weight = top[first], total[first]
    rows = out[first] / weight
    for s in rest:
        if total[s].any():
            new = torch.maximum(m, top[s])
            old, factor = (m - new).exp(), (top[s] - new).exp()
            weight = weight * old + total[s] * factor
            rows = (rows * old + out[s] * factor) / weight
            m = new
    return rows


def _naive(c: Case) -> list[torch.Tensor]:
    """Return what exp without a maximum gives, in the dtype of the case."""
    found = []
    for rank in c.ranks:
        weights = _scores(c, rank).to(c.q[rank].dtype).exp()
        values = torch.cat(list(c.v), 1)
        found.append((weights @ values) / weights.sum(-1, keepdim=True))
    return found


def _foreign_maximum(c: Case) -> list[torch.Tensor]:
    """Return what a maximum does, in the dtype of the case, that other rows share or that is 0."""
    found = []
    for rank in c.ranks:
        scores = _scores(c, rank).to(c.q[rank].dtype)
        weights = (scores - scores.max().clamp(min=0)).exp()
        found.append(weights @ torch.cat(list(c.v), 1) / weights.sum(-1, keepdim=True))
    return found


def _several(gives: Gives) -> Gives:
    """Return the same for more than one rank; on one rank nothing tells."""
    return lambda c: gives(c) if c.n > 1 else None


def _masked(sees: Sees) -> Gives:
    """Return what a wrong mask gives where there is one, and the right result elsewhere."""
    return lambda c: attend(c, sees=sees) if c.causal else attend(c)


def _without(block: Callable[[int, int], int]) -> Gives:
    """Return what is missing a block, which ``block`` names for a rank and n."""

    def gives(c: Case) -> list[torch.Tensor] | None:
        if c.n < 2:
            return None
        return attend(
            c,
            sees=lambda i, j, rank, tokens: (
                _sees(c)(i, j, rank, tokens) & (j // tokens != block(rank, c.n))
            ),
        )

    return gives


def _zero_scores(skips: bool) -> Gives:
    """Return what scores of 0 for keys that are not seen give.

    ``skips`` says whether blocks of later ranks are left out, as a ring may do.
    """

    def before(i: torch.Tensor, j: torch.Tensor, rank: int, tokens: int) -> torch.Tensor:
        return (i >= 0) & (j // tokens <= rank)

    def gives(c: Case) -> list[torch.Tensor]:
        if not c.causal:
            return attend(c)
        values = torch.cat([v.double() for v in c.v], 1)
        found = []
        for rank in c.ranks:
            scores = _scores(c, rank, sees=before if skips else every)
            unseen = _scores(c, rank).isinf() & scores.isfinite()
            weights = _softmax(scores.masked_fill(unseen, 0.0))
            found.append((weights @ values).to(c.q[rank].dtype))
        return found

    return gives


def _by_token_and_rank(i: torch.Tensor, j: torch.Tensor, rank: int, tokens: int) -> torch.Tensor:
    """Return whether a key is before a query where tokens are in the order of their own numbers.

    That is token 0 of all ranks first, then token 1 of all ranks, and so on.
    """
    n = j.numel() // tokens
    return j % tokens * n + j // tokens <= i % tokens * n + i // tokens


def _local(i: torch.Tensor, j: torch.Tensor, rank: int, tokens: int) -> torch.Tensor:
    return (i >= 0) & (j // tokens == rank)


def _from_the_other_side(c: Case) -> list[torch.Tensor] | None:
    """Return the result if the mask takes the block of rank r − s for that of rank r + s."""
    if c.n < 3 or not c.causal:
        return attend(c)
    return attend(
        c,
        sees=lambda i, j, rank, tokens: (2 * rank - j // tokens) % c.n * tokens + j % tokens <= i,
    )


# What an answer shows. --------------------------------------------------------------


def _wrong_values(e: Evidence) -> list[Any]:
    return [one for one in e.failed if one.diagnosis is Diagnosis.WRONG_VALUE and one.actual]


def _no_numbers(one: Any) -> bool:
    return any(isinstance(x, torch.Tensor) and bool(x.isnan().any()) for x in one.actual)


def _nan_behind_a_mask(e: Evidence) -> bool:
    """Return whether there are NaNs with a mask, and right results without one."""
    wrong = _wrong_values(e)
    right = [one for one in e.passed if one.limit is None and one.case.n > 1]
    return (
        bool(wrong)
        and all(one.case.causal and _no_numbers(one) for one in wrong)
        and any(not one.case.causal for one in right)
    )


def _blocks_held(e: Evidence) -> float:
    """Return how many blocks are held where more than two are, on the most ranks that show it."""
    over = [one for one in e.failed if one.diagnosis is Diagnosis.MEMORY_LIMIT and one.limit]
    largest = max(over, key=lambda one: one.case.n)
    return float(largest.limit.measured / block(largest.case)) if largest.limit else 0.0


def _called(e: Evidence, *kinds: str) -> bool:
    return any(op.kind in kinds for ops in e.trace.operations for op in ops)


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
    storages = ReceivedStorages()
    # simulated ranks have neither
    getattr(group, "watch_receives", lambda _: None)(storages)
    with storages:
        result = answer(q, k, v, causal)
    note = getattr(group, "mark", lambda _: None)
    note(holding(storages.most, "as it begins to wait", storages.fullest))
    return result


_NO_SCALE = Mistake(
    "The scores are not divided by √dim: softmax(q·kᵀ/√dim).",
    gives=lambda c: attend(c, scale=1.0),
)

_WRONG_SCALE = Mistake(
    "The scores are divided by dim. Divide by its root: softmax(q·kᵀ/√dim).",
    gives=lambda c: attend(c, scale=1 / c.q[0].shape[2]),
)

_NO_MASK = Mistake(
    "Without a mask it is right, and with causal=True nothing is masked: a query must not see keys"
    " of later tokens. Rank r's query i is token r·tokens + i of the sequence.",
    gives=_masked(every),
)

_STRICT = Mistake(
    "With causal=True a token does not see itself. A query sees its own key and those before it:"
    " keep j ≤ i.",
    gives=_masked(lambda i, j, rank, tokens: j < i),
)

_BACKWARDS = Mistake(
    "With causal=True your mask is the wrong way round: a query sees its own key and those"
    " *before* it, j ≤ i.",
    gives=_masked(lambda i, j, rank, tokens: j >= i),
)

_ZERO_SCORES = Mistake(
    "With causal=True, keys that a query must not see have a score of 0, and e⁰ is a weight of 1."
    " Set these scores to −∞: scores.masked_fill(later, -math.inf).",
    gives=(_zero_scores(skips=True), _zero_scores(skips=False)),
)

_OWN_ALONE = Mistake(
    "Each rank has attended to its own tokens alone. A query needs the keys and values of all"
    " ranks.",
    gives=_several(
        lambda c: attend(
            c,
            sees=lambda i, j, rank, tokens: (
                _sees(c)(i, j, rank, tokens) & _local(i, j, rank, tokens)
            ),
        )
    ),
)

_NAIVE = Mistake(
    "exp overflows: from 89 on, exp(score) is infinite in float32, and ∞/∞ is not a number."
    " Subtract the largest score of a row before exp; a common factor cancels in the quotient.",
    gives=_naive,
)

_FOREIGN_MAXIMUM = Mistake(
    "What is subtracted from the scores of a row is far above all of them, so exp gives 0 for each,"
    " and 0/0 is not a number. Subtract the row's own largest score: there is one for each query of"
    " each head. (One that is kept from block to block begins at −∞, not at 0.)",
    gives=_foreign_maximum,
)

_NAN_BEHIND_A_MASK = Mistake(
    "With causal=True there are NaNs. Where a query sees no key of a block, the largest score is"
    " −∞, and −∞ − (−∞) is not a number. Such a block has weight 0: leave out blocks of later"
    " ranks, and begin with your own, in which every query sees itself.",
    when=_nan_behind_a_mask,
)

_LAST_RING = (
    "This is the whole answer:\n"
    "    rank, n = dist.get_rank(), dist.get_world_size()\n"
    "    tokens, left, right = q.shape[1], (rank - 1) % n, (rank + 1) % n\n"
    "    block = torch.stack([k, v])\n"
    "    m = q.new_full((*q.shape[:2], 1), -math.inf)\n"
    "    total, out = torch.zeros_like(m), torch.zeros_like(q)\n"
    "    for s in range(n):\n"
    "        requests = []\n"
    "        if s < n - 1:\n"
    "            came = torch.empty_like(block)\n"
    "            requests = [dist.isend(block, right), dist.irecv(came, left)]\n"
    "        owner = (rank - s) % n\n"
    "        if not causal or owner <= rank:\n"
    "            scores = q @ block[0].mT / math.sqrt(q.shape[2])\n"
    "            if causal and owner == rank:\n"
    "                later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)\n"
    "                scores = scores.masked_fill(later, -math.inf)\n"
    "            new = torch.maximum(m, scores.amax(-1, keepdim=True))\n"
    "            weights = (scores - new).exp()\n"
    "            shrink = (m - new).exp()\n"
    "            total = shrink * total + weights.sum(-1, keepdim=True)\n"
    "            out = shrink * out + weights @ block[1]\n"
    "            m = new\n"
    "        for request in requests:\n"
    "            request.wait()\n"
    "        if s < n - 1:\n"
    "            block = came\n"
    "    return out / total"
)

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
        _NO_SCALE,
        _WRONG_SCALE,
        _NO_MASK,
        _STRICT,
        _BACKWARDS,
        _ZERO_SCORES,
        _OWN_ALONE,
        Mistake(
            "With causal=True every block is masked as if it were your own. Only in your own block"
            " do query i and key i have the same place in the sequence; all keys of earlier ranks"
            " are before your queries, and all keys of later ranks after them.",
            gives=_masked(lambda i, j, rank, tokens: j % tokens <= i % tokens),
        ),
        Mistake(
            "With causal=True your own block is taken whole. In it, too, a query sees only its own"
            " key and those before it.",
            gives=_masked(lambda i, j, rank, tokens: j // tokens <= rank),
        ),
        Mistake(
            "With causal=True the mask is right in your own block, but blocks of later ranks are"
            " not left out: none of your queries sees any of their keys.",
            gives=_masked(
                lambda i, j, rank, tokens: (j // tokens != rank) | (j % tokens <= i % tokens)
            ),
        ),
        Mistake(
            "The results of the blocks are averaged, but they do not weigh the same: the result of"
            " a block counts with its sum of exp(score). Keep that sum, too, relative to a maximum"
            " that is common to all blocks.",
            gives=tuple(
                _several(lambda c, how=how: _merged(c, how))  # type: ignore[misc]
                for how in (_mean_of_blocks, _mean_over_all)
            ),
        ),
        Mistake(
            "The softmax of each block adds up to 1, and the results are added up, so the weights"
            " of a row add up to n. Divide once, at the end, by the sum over all blocks.",
            gives=_several(lambda c: _merged(c, _sum_of_blocks)),
        ),
        Mistake(
            "The result is divided by the sum of weights after each block, and what has been"
            " divided is divided again after the next. Divide once, at the end.",
            gives=_several(lambda c: _merged(c, _divided_each_time)),
        ),
        Mistake(
            "Each block's weights are relative to its own largest score, and are added up as if"
            " that were the same for all blocks. When the maximum changes, both sums have to be"
            " rescaled by exp(old − new).",
            gives=(
                _several(lambda c: _merged(c, _own_maxima)),
                _several(lambda c: _merged(c, _rescaled(False, False))),
            ),
        ),
        Mistake(
            "When the maximum grows, the sum of weights is rescaled and the weighted sum of v is"
            " not. Both have been made with the old maximum: multiply both by exp(old − new).",
            gives=_several(lambda c: _merged(c, _rescaled(True, False))),
        ),
        Mistake(
            "When the maximum grows, the weighted sum of v is rescaled and the sum of weights is"
            " not. Both have been made with the old maximum: multiply both by exp(old − new).",
            gives=_several(lambda c: _merged(c, _rescaled(False, True))),
        ),
        Mistake(
            "The last block to arrive, your right neighbour's, is missing: there are n blocks to"
            " add, your own and the n − 1 that come.",
            gives=_without(lambda rank, n: (rank + 1) % n),
        ),
        Mistake(
            "Your own block is missing: no message brings it, but your queries see it like the"
            " others.",
            gives=_without(lambda rank, n: rank),
        ),
        Mistake(
            "The mask takes blocks for those of the wrong ranks. What comes from the left in step"
            " s is the block of rank (rank − s) % n; if you receive from the right, it is that of"
            " rank (rank + s) % n.",
            gives=_from_the_other_side,
        ),
        _NAIVE,
        _FOREIGN_MAXIMUM,
        _NAN_BEHIND_A_MASK,
        Mistake(
            "All blocks are gathered first, and attention is computed at the end: the more ranks,"
            " the more each of them holds. Add a block to your sums while you have it, pass it on,"
            " and let it go.",
            when=lambda e: e.diagnosis is Diagnosis.MEMORY_LIMIT and _blocks_held(e) >= 4,
        ),
        Mistake(
            "There is one block more than needed: the one that you are working on, the one that is"
            " coming, and another. A copy of a block counts, too, and so does one that an old"
            " variable still refers to.",
            when=lambda e: e.diagnosis is Diagnosis.MEMORY_LIMIT and _blocks_held(e) < 4,
        ),
        Mistake(
            "After n − 1 steps every block has been everywhere. The n-th only brings your own back:"
            " leave it out.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and e.here.limit is not None
                and e.here.limit.measured == e.case.n * block(e.case)
            ),
        ),
        Mistake(
            "All ranks are in a send, so none of them receives: a send returns only when its"
            " receive has been posted. Start with isend and irecv, compute, then wait for both.",
            when=evidence.all_send,
        ),
        *evidence.BUFFER_RACES,
    ),
)


# Ulysses. ---------------------------------------------------------------------------


def _heads_of_all(c: Case, name: str) -> list[torch.Tensor]:
    """Return what arrives at every rank in an all-to-all: sources × its heads × tokens × dim."""
    column = c.columns[name]
    return [torch.stack([x.double().tensor_split(c.n)[rank] for x in column]) for rank in c.ranks]


def _ulysses(c: Case, there: bool = True, back: bool = True, placed: bool = True) -> Any:
    """Return the results where some of the three rearrangements are wrong.

    Args:
        c: the case.
        there: whether what arrives is transposed before ranks and tokens become one dimension.
        back: whether the result is transposed before it is cut for the ranks.
        placed: whether heads are put in the order of the ranks that they come from.
    """
    heads, tokens, dim = c.q[0].shape
    own = heads // c.n
    parts = []
    for mine in zip(*(_heads_of_all(c, name) for name in "qkv"), strict=True):
        turned = [x.transpose(0, 1) if there else x for x in mine]
        q, k, v = (x.reshape(own, c.n * tokens, dim) for x in turned)
        scores = q @ k.mT / math.sqrt(dim)
        if c.causal:
            later = torch.ones(c.n * tokens, c.n * tokens, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        out = _softmax(scores) @ v
        cut = out.reshape(own, c.n, tokens, dim).transpose(0, 1) if back else out
        parts.append(cut.reshape(c.n, own, tokens, dim))
    found = []
    for rank in c.ranks:
        arrived = torch.stack([part[rank] for part in parts])
        rows = arrived if placed else arrived.transpose(0, 1)
        found.append(rows.reshape(heads, tokens, dim).to(c.q[0].dtype))
    return found


_LAST_ULYSSES = (
    "This is the whole answer:\n"
    "    n = dist.get_world_size()\n"
    "    heads, tokens, dim = q.shape\n"
    "    whole = []\n"
    "    for x in (q, k, v):\n"
    "        came = torch.empty_like(x)\n"
    "        dist.all_to_all_single(came, x)\n"
    "        came = came.view(n, heads // n, tokens, dim)\n"
    "        whole.append(came.transpose(0, 1).reshape(heads // n, n * tokens, dim))\n"
    "    q, k, v = whole\n"
    "    scores = q @ k.mT / math.sqrt(dim)\n"
    "    if causal:\n"
    "        later = torch.ones(n * tokens, n * tokens, dtype=torch.bool).triu(1)\n"
    "        scores = scores.masked_fill(later, -math.inf)\n"
    "    out = scores.softmax(-1) @ v\n"
    "    out = out.view(heads // n, n, tokens, dim).transpose(0, 1).contiguous()\n"
    "    back = torch.empty_like(out)\n"
    "    dist.all_to_all_single(back, out)\n"
    "    return back.view(heads, tokens, dim)"
)

_LAYOUT = (
    "What arrives from another rank is its tokens, for your heads, so the whole is n × heads/n ×"
    " tokens × dim. The sequence is ranks and tokens together, and these two have to be next to"
    " each other before you reshape: transpose(0, 1) first."
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
        _NO_SCALE,
        _WRONG_SCALE,
        _NO_MASK,
        _STRICT,
        _BACKWARDS,
        _ZERO_SCORES,
        _OWN_ALONE,
        Mistake(_LAYOUT, gives=_several(lambda c: _ulysses(c, there=False))),
        Mistake(
            "On the way back heads and tokens are mixed up. Rank j is to get its own tokens, for"
            " all of your heads: view the result as heads/n × n × tokens × dim, and transpose the"
            " first two before it is cut into n pieces.",
            gives=_several(lambda c: _ulysses(c, back=False)),
        ),
        Mistake(
            "The heads of the result are in another order. Rank j computes the heads from"
            " j·heads/n on, so what comes back is n × heads/n already in the order of q: do not"
            " transpose it.",
            gives=_several(lambda c: _ulysses(c, placed=False)),
        ),
        Mistake(
            "It is right on the way there, and the last step is missing: all tokens of some heads"
            " have to become own tokens of all heads again, by a fourth all-to-all.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_SHAPE
                and all(
                    isinstance(x, torch.Tensor)
                    and tuple(x.shape)
                    == (q.shape[0] // e.case.n, q.shape[1] * e.case.n, q.shape[2])
                    for x, q in zip(e.actual, e.case.q, strict=True)
                )
            ),
        ),
        Mistake(
            "Without a mask it is right, and with one the tokens are in the wrong order: token 0"
            " of each rank first, then token 1 of each. In the sequence all tokens of rank 0 come"
            " first: heads/n × n × tokens × dim, before ranks and tokens become one dimension.",
            gives=_several(_masked(_by_token_and_rank)),
        ),
        _NAIVE,
        _FOREIGN_MAXIMUM,
        Mistake(
            "transpose and permute only change how a tensor is read, and a message needs its"
            " numbers in one piece in memory, in that order: call .contiguous() before you send"
            " it.",
            when=lambda e: e.says("must be contiguous"),
        ),
        Mistake(
            "all_to_all_single cuts the first dimension into n parts, one for each rank: on the"
            " way there that has to be the heads, and on the way back the ranks whose tokens they"
            " are. (If q, k and v travel as one tensor, stack them along another dimension.)",
            when=lambda e: e.says("do not divide evenly"),
        ),
        Mistake(
            "Keys and values go round whole, 2·(n − 1) times as many bytes as q has. With an"
            " all-to-all each rank gets only the heads that it works on.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and not _called(e, "all_to_all"),
        ),
        Mistake(
            "Every rank sends whole tensors to the others. Rank j needs only the heads that it"
            " works on, one n-th of q, k and v.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and _called(e, "all_to_all"),
        ),
    ),
)


# Zigzag. ----------------------------------------------------------------------------


def _plans(draw: Draw) -> Iterator[Case]:
    for n, chunk in ((2, 2), (3, 1), (4, 1), (1, 3), (4, 5), (5, 16), (8, 4), (16, 128)):
        ranks = f"{n} rank{'s' * (n > 1)}"
        yield draw.case(f"{2 * n * chunk} tokens, {ranks}", tokens=2 * n * chunk, n_ranks=n)


#: A layout: the tokens of each rank, given the number of tokens and of ranks.
Layout = Callable[[int, int], list[list[int]]]


def _chunks(tokens: int, n: int) -> list[list[int]]:
    """Return the sequence in 2n chunks."""
    return [list(chunk) for chunk in torch.arange(tokens).view(2 * n, -1).tolist()]


def zigzag(tokens: int, n: int) -> list[list[int]]:
    """Return the two chunks of each rank, one from either end."""
    chunks = _chunks(tokens, n)
    return [chunks[r] + chunks[2 * n - 1 - r] for r in range(n)]


def contiguous(tokens: int, n: int) -> list[list[int]]:
    """Return the tokens in rank order, as many on each rank."""
    chunks = _chunks(tokens, n)
    return [chunks[2 * r] + chunks[2 * r + 1] for r in range(n)]


def striped(tokens: int, n: int) -> list[list[int]]:
    """Return every n-th token for each rank."""
    return [list(range(r, tokens, n)) for r in range(n)]


def halves(tokens: int, n: int) -> list[list[int]]:
    """Return one chunk of either half for each rank, both in rank order."""
    chunks = _chunks(tokens, n)
    return [chunks[r] + chunks[n + r] for r in range(n)]


def pairs(plan: Sequence[Sequence[int]]) -> list[int]:
    """Return the pairs of query and key of each rank, with a causal mask."""
    return [sum(token + 1 for token in tokens) for tokens in plan]


_PAIRS = "pairs of query and key on each rank"


def _report_in_rank(split: Callable[[int, int], Any], tokens: int, n: int) -> dict[str, str]:
    """Call the answer and report what holds of its lists; this travels to the ranks."""
    return report(split(tokens, n), tokens, n)


def report(plan: Any, tokens: int, n: int) -> dict[str, str]:
    """Return what holds of the lists of tokens of all ranks."""
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
    # in words: a right split does not travel to the ranks
    return f"{n} lists of {tokens // n} tokens"


def _malformed(plan: Any, tokens: int, n: int) -> str:
    """Return what is wrong with the form of a result; what it should be if nothing is."""
    if not isinstance(plan, (list, tuple)):
        return f"of type {type(plan).__name__}, not a list"
    for rank, own in enumerate(plan):
        if not isinstance(own, (list, tuple)):
            return f"a list whose entry {rank} is of type {type(own).__name__}"
        for token in own:
            if type(token) is not int or not 0 <= token < tokens:
                return f"a list with {token!r} as a token of rank {rank}"
    lengths = sorted({len(own) for own in plan})
    return f"{len(plan)} lists of {' or '.join(map(str, lengths))} tokens"


def _expected(c: Case) -> list[dict[str, str]]:
    return [report(zigzag(c.tokens, c.n_ranks), c.tokens, c.n_ranks)]


def _laid_out(layout: Layout) -> Gives:
    """Return the report on a layout that is not balanced."""
    return lambda c: [report(layout(c.tokens, c.n_ranks), c.tokens, c.n_ranks)]


def _wrong_fact(e: Evidence, name: str) -> bool:
    """Return whether this is the first fact that is wrong."""
    got, want = e.actual[0], _expected(e.case)[0]
    return next((key for key in want if got[key] != want[key]), "") == name


zigzag_split = Exercise(
    signature="zigzag_split(tokens: int, n: int) -> list[list[int]]",
    summary="which tokens each rank takes, so that all have as much causal work",
    inputs=_plans,
    world_sizes=(1,),
    adapter=_report_in_rank,
    values=Values(_expected),
    mistakes=(
        Mistake(
            "The tokens are in rank order, so the last rank's see almost all keys and the first"
            " rank's hardly any. Give each rank two pieces, one from either end of the sequence.",
            gives=_laid_out(contiguous),
        ),
        Mistake(
            "Every n-th token for each rank is nearly even, but not quite: for every token of rank"
            " r there is one of rank r + 1 that sees one key more, and that adds up. Cut the"
            " sequence into 2n chunks, and give each rank one from either end.",
            gives=_laid_out(striped),
        ),
        Mistake(
            "Each rank has a chunk of either half, but the later rank has the later chunk of both."
            " Turn the second half round: with chunk r goes chunk 2n − 1 − r.",
            gives=_laid_out(halves),
        ),
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
