"""Chapter 29: fewer bytes in a step, and fewer steps that send any."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.core.compare import tolerance
from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, JudgedCase, Mistake, TrafficRules, Values
from grader.course.limits import LUCK, Limit, combined, point, sent
from grader.trace.trace import Measured, Trace

# A sum of which int8 is sent. -------------------------------------------------------


def tensors(draw: Draw) -> Iterator[Case]:
    """Draw float32 tensors for every rank; the plainest come first."""
    n, single = draw.n, torch.float32

    def drawn(*shape: int) -> PerRank:
        return draw.per_rank(Kind(single, shape))

    yield draw.case("7 numbers", x=drawn(7))
    yield draw.case(f"{n + 1} of {n} ranks", x=drawn(n + 1))
    yield draw.case("20×50 numbers", x=drawn(20, 50))
    yield draw.case(
        "the last rank's numbers are a thousand times larger",
        x=PerRank(x * (1000 if r == n - 1 else 1) for r, x in enumerate(drawn(1000))),
    )
    yield draw.case(
        "rank 0 has only zeros", x=PerRank(x * min(r, 1) for r, x in enumerate(drawn(2 * n + 1)))
    )
    last = (torch.arange(n) == n - 1).to(single)
    yield draw.case("zeros but for the last of n", x=PerRank(x * last for x in drawn(n)))
    yield draw.case("n − 1 millionths", x=PerRank(x * 1e-6 for x in drawn(n - 1)))
    yield draw.case("one number", x=drawn(1))
    yield draw.case("no numbers", x=drawn(0))


def length(c: Case) -> int:
    """Return how many elements each rank's x has."""
    return int(c.x[0].numel())


def may_be_off(c: Case) -> float:
    """Return how far an element of the sum may be off: 2n · max over ranks of max│x│ / 127."""
    largest = max((float(x.abs().max()) for x in c.x if x.numel()), default=0.0)
    return 2 * c.n * largest / 127


def total(c: Case) -> torch.Tensor:
    """Return the sum over ranks, rounded once."""
    return torch.stack(list(c.x)).double().sum(0).float()


def slack(c: Case) -> list[torch.Tensor]:
    """Return the magnitude of which the tolerance of a sum of n is what an element may be off."""
    size = may_be_off(c) / tolerance(torch.float32, c.n)
    return [torch.full_like(x, size) for x in c.x]


def told(c: Case, _: Sequence[Any]) -> int:
    """Return the bytes that all ranks together must receive to be as near to the sum as asked.

    The others' sum is nearly normal.  A guess is near enough with a probability of at most the
    width of what is allowed times the highest density, and each element counts for as many bits
    as that is improbable, rounded down.  Of few elements nothing is asked.
    """
    if length(c) < 100:
        return 0
    rows = torch.stack([x.flatten() for x in c.x]).double()
    bits = 0
    for row in rows:
        spread = float((rows.sum(0) - row).std())
        likely = 2 * may_be_off(c) / (spread * math.sqrt(2 * math.pi)) if spread else 1.0
        bits += max(0, max(0, math.floor(-math.log2(likely))) * length(c) - LUCK)
    return bits // 8


def cut(x: torch.Tensor, n: int, equal: bool) -> list[torch.Tensor]:
    """Cut a tensor into n chunks: with ``tensor_split``, or of ⌈len/n⌉ elements while they last."""
    flat = x.flatten()
    if not equal:
        return list(flat.tensor_split(n))
    size = -(-len(flat) // n)
    return [flat[i * size : (i + 1) * size] for i in range(n)]


def not_gathered(c: Case, equal: bool) -> list[torch.Tensor]:
    """Return the results if rank r has the sum of chunk r, and the other chunks are its own."""
    sums = cut(total(c), c.n, equal)
    rows = [cut(x, c.n, equal) for x in c.x]
    return [
        torch.cat([sums[i] if i == r else rows[r][i] for i in c.ranks]).reshape(c.x[r].shape)
        for r in c.ranks
    ]


def own_missing(c: Case, equal: bool) -> list[torch.Tensor]:
    """Return the results if the rank that adds up a chunk leaves out its own."""
    sums = cut(total(c), c.n, equal)
    rows = [cut(x, c.n, equal) for x in c.x]
    whole = torch.cat([sums[i] - rows[i][i] for i in c.ranks]).reshape(c.x[0].shape)
    return [whole] * c.n


def own_kept(c: Case, equal: bool) -> list[torch.Tensor]:
    """Return the results if the rank that adds up a chunk sends the sum, and does not keep it."""
    sums = cut(total(c), c.n, equal)
    rows = [cut(x, c.n, equal) for x in c.x]
    return [
        torch.cat([rows[r][i] if i == r else sums[i] for i in c.ranks]).reshape(c.x[r].shape)
        for r in c.ranks
    ]


def either(make: Callable[..., list[torch.Tensor]]) -> tuple[Any, ...]:
    """Return the results of a mistake for both ways to cut a tensor."""
    return tuple(partial(make, equal=equal) for equal in (False, True))


def _wrong_values(e: Evidence) -> list[JudgedCase]:
    return [one for one in e.failed if one.diagnosis is Diagnosis.WRONG_VALUE and one.actual]


def _divides_by_zero(e: Evidence) -> bool:
    """Return whether all that is wrong is NaN, where some rank has a chunk of zeros."""

    def shows(one: JudgedCase) -> bool:
        c = one.case
        zeros = any(not chunk.any() for x in c.x for chunk in cut(x, c.n, False) if len(chunk))
        off = [(a - total(c)).abs() > may_be_off(c) for a in one.actual]  # no NaN is among them
        return zeros and any(a.isnan().any() for a in one.actual) and not any(t.any() for t in off)

    wrong = _wrong_values(e)
    return bool(wrong) and all(map(shows, wrong))


def _wraps(e: Evidence) -> bool:
    """Return whether every wrong element is one whose 128 has become −128, and 128 is written.

    Then a rank's number has changed its sign before it was added, or the sum has afterwards.
    """

    def shows(one: JudgedCase) -> bool:
        c, near = one.case, may_be_off(one.case)
        right = total(c)
        before = [right, *(right - 2 * x for x in c.x)]
        for actual in one.actual:
            off = (actual - right).abs() > near
            explained = torch.zeros_like(off)
            for value in before:
                explained |= ((actual - value).abs() <= near) | ((actual + value).abs() <= near)
            if (off & ~explained).any():
                return False
        return True

    wrong = _wrong_values(e)
    return bool(wrong) and e.written(r"\b128\b") and all(map(shows, wrong))


#: What finds a magnitude.
_MAGNITUDES = r"abs|\ba?min(imum|max)?\b|norm|pow|square|sqrt|\*\*"


def _no_magnitudes(e: Evidence) -> bool:
    """Return whether the source looks for a largest number, and has nothing to find magnitudes."""
    return bool(_wrong_values(e)) and e.written(r"\ba?max\b") and not e.written(_MAGNITUDES)


def _only_matrices(e: Evidence) -> bool:
    """Return whether calls fail with tensors of several dimensions only, and vectors pass."""
    return all(
        one.diagnosis is Diagnosis.EXCEPTION and one.case.x[0].dim() > 1 for one in e.failed
    ) and any(one.case.x[0].dim() == 1 for one in e.passed)


def _owner_differs(e: Evidence) -> bool:
    """Return whether wherever bits differ, one rank alone has others than all the rest."""
    if e.diagnosis is not Diagnosis.NONDETERMINISTIC:
        return False
    seen = [one for one in e.failed if one.diagnosis is e.diagnosis and one.case.n > 2]

    def alone(one: JudgedCase) -> bool:
        rows = torch.stack([a.flatten() for a in one.actual])
        common = rows.mode(0).values
        return bool(((rows != common).sum(0) <= 1).all()) and bool((rows != common).any())

    return bool(seen) and all(map(alone, seen))


def _differs_when_repeated(e: Evidence) -> bool:
    """Return whether all ranks agree in each run, and the source draws random numbers."""
    return (
        e.diagnosis is Diagnosis.NONDETERMINISTIC
        and all(torch.equal(one, e.actual[0]) for one in e.actual)
        and e.written(r"rand|bernoulli|uniform_")
    )


def _sends(e: Evidence, concerned: Callable[[Any, Case], bool]) -> bool:
    """Return whether too much is sent, and a message is of this kind."""
    return e.diagnosis is Diagnosis.TOO_MANY_BYTES and any(
        concerned(op, e.case) for op in e.trace.sends()
    )


quantized_all_reduce = Exercise(
    signature="quantized_all_reduce(x: Tensor) -> None",
    summary="in place, the sum of float32 tensors, of which int8 is sent",
    inputs=tensors,
    values=Values(
        lambda c: [total(c)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=slack,
        same_bits=True,
    ),
    traffic=TrafficRules(
        limits=(point(sent("≤", lambda c: 2 * (c.n - 1) * (-(-length(c) // c.n) + 8))),), least=told
    ),
    mistakes=(
        Mistake(
            "A chunk of zeros has a scale of 0, and 0/0 is not a number. Such a chunk needs no"
            " scale: leave it as it is, or divide by 1.",
            when=_divides_by_zero,
        ),
        Mistake(
            "128 does not fit into int8, whose largest number is 127: it comes out as −128, with"
            " the wrong sign. Let the scale be max│x│ / 127.",
            when=_wraps,
        ),
        Mistake(
            "x is as it was. Write the sum into it: x.copy_(...), or into chunks that are views"
            " of it.",
            gives=lambda c: list(c.x),
        ),
        Mistake(
            "This is the mean, not the sum: leave out the division by n.",
            gives=lambda c: [total(c) / c.n] * c.n,
        ),
        Mistake(
            "Each rank has the sum of one chunk, and the other chunks are still its own. The sums"
            " have to go to all ranks, quantized once more.",
            gives=either(not_gathered),
        ),
        Mistake(
            "The rank that adds up a chunk has left out its own part: begin with that, and add"
            " what comes.",
            gives=either(own_missing),
        ),
        Mistake(
            "Each rank has the sums of the other chunks, and in the one that it adds up there are"
            " still its own numbers. Write the sum there, too, as the others get it: q · scale.",
            gives=either(own_kept),
        ),
        Mistake(
            "Your code looks for a largest number, and nowhere at magnitudes: −5 does not fit if 3"
            " becomes 127. Take the scale from max│x│.",
            when=_no_magnitudes,
        ),
        Mistake(
            "Four bytes can be read as a float32 only where their place in the tensor is a"
            " multiple of four. Put the scale in front of the int8 numbers, or clone() its bytes"
            " before the view.",
            when=lambda e: e.says("storage_offset"),
        ),
        Mistake(
            "x may have several dimensions. x.view(-1) is the same memory as one row: cut that.",
            when=_only_matrices,
        ),
        Mistake(
            "One rank has other bits than all the rest, each for the chunk that it adds up: it"
            " keeps its exact sum. The others have only what it sent, q · scale, so it has to keep"
            " that, too.",
            when=_owner_differs,
        ),
        Mistake(
            "All ranks agree, but the same call gives other bits when it is repeated, since you"
            " round at random. Round to the nearest, or draw from a generator with a fixed seed.",
            when=_differs_when_repeated,
        ),
        Mistake(
            "There are messages of float32 here, four bytes for each element. Send"
            " round(chunk / scale) as int8, and of float32 the scale alone.",
            when=lambda e: _sends(e, lambda op, c: op.dtype == "float32" and op.count > 2),
        ),
        Mistake(
            "Whole tensors are sent. If each rank adds up one chunk, 1/n of x, a message need not"
            " be longer than that.",
            when=lambda e: _sends(e, lambda op, c: op.count >= length(c) > c.n + 8 > 10),
        ),
        Mistake(
            "A chunk may be empty here, and nothing has no largest element: give it any scale, or"
            " send no message for it, on both sides.",
            when=lambda e: length(e.case) < e.case.n and e.says("max"),
        ),
        Mistake(
            "chunk(n) may give fewer than n pieces, and here it did: use tensor_split(n), which"
            " always gives n, some of them empty if it must be.",
            when=lambda e: (
                e.says("IndexError") and length(e.case) % e.case.n > 0 and e.written(r"\bchunk\(")
            ),
        ),
        Mistake(
            "Every rank sends and none receives: a blocking send waits for its receive. Start"
            " with request = dist.isend(...), then recv, then request.wait().",
            when=evidence.all_send,
        ),
        *evidence.BUFFER_RACES,
    ),
)


# The k largest, with error feedback. ------------------------------------------------


def _rows(*rows: Sequence[float]) -> list[torch.Tensor]:
    return [torch.tensor(row, dtype=torch.float32) for row in rows]


def gradients(draw: Draw) -> Iterator[Case]:
    """Draw the gradients of some steps, for one compressor each; no two numbers are tied."""
    single, double = torch.float32, torch.float64
    still = [0.0] * 4
    yield draw.case(
        "one of four numbers",
        k=1,
        grads=_rows([3, -5, 1, 2], [1, 1, 1, 1], still, still, still),
        reused=False,
    )
    for name, kind, k, steps, quiet, reused in (
        ("3 of 12 numbers", Kind(single, (12,)), 3, 4, 0, False),
        ("6 of a matrix", Kind(single, (5, 8)), 6, 6, 0, False),
        ("10 of 100 float64 numbers", Kind(double, (100,)), 10, 5, 0, False),
        ("gradients that end, until all is sent", Kind(double, (9,)), 3, 3, 2, False),
        ("all of 9 numbers", Kind(single, (9,)), 9, 3, 0, False),
        ("one number", Kind(single, (1,)), 1, 2, 0, False),
        ("gradients in one buffer", Kind(single, (3, 4)), 2, 5, 0, True),
    ):
        grads = [draw.tensor(kind) for _ in range(steps)]
        grads += [torch.zeros(kind.shape, dtype=kind.dtype)] * quiet
        yield draw.case(name, k=k, grads=grads, reused=reused)
    same = draw.tensor(Kind(double, (6,)))
    yield draw.case("the same gradient in each step", k=1, grads=[same] * 8, reused=False)


def compress_all(
    answer: Callable[..., Any], k: int, grads: list[torch.Tensor], reused: bool
) -> dict[str, Any]:
    """Compress one gradient after the other, and report what was sent, in order of the indices.

    With ``reused`` all gradients come in the same tensor, as those of an optimizer do.
    """
    compressor = answer(k)
    buffer = torch.empty_like(grads[0])
    report: dict[str, Any] = {}
    for step, grad in enumerate(grads, 1):
        found = compressor.compress(buffer.copy_(grad) if reused else grad)
        report[f"step {step}"] = found
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            continue
        indices, values = found
        report[f"step {step}"] = {"indices": indices, "values": values}
        if not all(isinstance(one, torch.Tensor) and one.dim() == 1 for one in found):
            continue
        if len(indices) == len(values) and indices.dtype in (torch.int64, torch.int32):
            order = indices.argsort()
            sorted_values = values.detach()[order].clone()
            report[f"step {step}"] = {"indices": indices[order].long(), "values": sorted_values}
    return report


#: What is left, given all that is to be sent, what came in this step, and a mask of what is sent.
Left = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def feedback(
    c: Case,
    left: Left = lambda whole, grad, mask: whole.masked_fill(mask, 0),
    rank: Callable[[torch.Tensor], torch.Tensor] = torch.abs,
    chosen: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda whole, grad: whole,
    values: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda whole, grad: whole,
) -> list[dict[str, Any]]:
    """Return the report of a compressor, or of one that goes wrong in the given way.

    Args:
        c: the case.
        left: what it keeps for the next step.
        rank: what the largest are the largest of.
        chosen: the tensor that the largest are looked for in.
        values: the tensor that values are taken from.
    """
    memory = torch.zeros_like(c.grads[0]).flatten()
    report: dict[str, Any] = {}
    for step, grad in enumerate(c.grads, 1):
        flat = grad.flatten()
        whole = memory + flat
        indices = rank(chosen(whole, flat)).topk(c.k).indices.sort().values
        mask = torch.zeros_like(whole, dtype=torch.bool)
        mask[indices] = True
        report[f"step {step}"] = {"indices": indices, "values": values(whole, flat)[indices]}
        memory = left(whole, flat, mask)
    return [report] * c.n


def sizes_of_terms(c: Case) -> list[dict[str, Any]]:
    """Return how large the numbers are that a value is the sum of."""
    largest = float(torch.stack([grad.abs() for grad in c.grads]).sum(0).max())
    return [
        {
            step: {"indices": None, "values": torch.full_like(entry["values"], largest)}
            for step, entry in report.items()
        }
        for report in feedback(c)
    ]


TopKFeedback = Exercise(
    signature="TopKFeedback(k: int)",
    summary="the k largest of a gradient and what was left of those before",
    world_sizes=(1,),
    inputs=gradients,
    adapter=compress_all,
    values=Values(feedback, reduced=lambda c: 2 * len(c.grads), magnitude=sizes_of_terms),
    mistakes=(
        Mistake(
            "These are the largest of the gradient alone: what was left of earlier steps is"
            " forgotten. Add it to each gradient first.",
            gives=partial(feedback, left=lambda whole, grad, mask: torch.zeros_like(whole)),
        ),
        Mistake(
            "What was sent is still kept, and so it is sent again and again: set these elements"
            " to zero in what is left.",
            gives=partial(feedback, left=lambda whole, grad, mask: whole),
        ),
        Mistake(
            "Only the rest of the last gradient is kept. What was left of the steps before it has"
            " to be kept as well: the rest of grad + left.",
            gives=partial(feedback, left=lambda whole, grad, mask: grad.masked_fill(mask, 0)),
        ),
        Mistake(
            "Largest in magnitude: −5 comes before 3. Compare absolute values.",
            gives=partial(feedback, rank=lambda whole: whole),
        ),
        Mistake(
            "The values have lost their signs: choose by absolute value, and send the numbers"
            " themselves.",
            gives=partial(feedback, values=lambda whole, grad: whole.abs()),
        ),
        Mistake(
            "The indices are right, but the values are those of the gradient alone. Send grad +"
            " left at these places.",
            gives=partial(feedback, values=lambda whole, grad: grad),
        ),
        Mistake(
            "The largest are looked for in the gradient alone. Look in grad + left: what was left"
            " behind often enough becomes large.",
            gives=partial(feedback, chosen=lambda whole, grad: grad),
        ),
        Mistake(
            "These are the k smallest in magnitude.",
            gives=partial(feedback, rank=lambda whole: -whole.abs()),
        ),
    ),
)


# Few outer steps for many inner ones. -----------------------------------------------


def _tied() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    module[2].weight = module[0].weight
    return module


def _frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 5))
    for parameter in module[0].parameters():
        parameter.requires_grad_(False)
    return module


#: The networks, by name.
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(4, 3),
    "two layers": lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)),
    "tied weights": _tied,
    "a frozen layer": _frozen,
}


def network_of(architecture: str, dtype: str, state: Sequence[torch.Tensor]) -> nn.Module:
    """Make a network whose distinct parameters hold ``state``, in their order."""
    module = NETWORKS[architecture]().to(getattr(torch, dtype))
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), state, strict=True):
            parameter.copy_(value)
    return module


#: Network, dtype, inner steps of an outer one, all inner steps, outer learning rate, momentum.
RUNS = (
    ("one layer", "float32", 2, 6, 0.7, 0.9),
    ("two layers", "float64", 3, 10, 0.5, 0.8),
    ("two layers", "float32", 4, 9, 1.0, 0.0),
    ("tied weights", "float32", 1, 4, 0.7, 0.9),
    ("a frozen layer", "float64", 2, 5, 0.6, 0.5),
)


def rounds_of_steps(draw: Draw) -> Iterator[Case]:
    """Draw networks with weights that differ by rank, and what each inner step adds to them."""
    for architecture, dtype, inner_steps, steps, outer_lr, momentum in RUNS:
        module = NETWORKS[architecture]()
        parameters = list(module.parameters())
        kinds = [Kind(getattr(torch, dtype), tuple(p.shape)) for p in parameters]

        def column(kind: Kind) -> torch.Tensor:
            return draw.tensor(Kind(kind.dtype, (draw.n, *kind.shape)))

        state = [column(kind) for kind in kinds]
        updates = [
            [
                column(kind) if p.requires_grad else None
                for kind, p in zip(kinds, parameters, strict=True)
            ]
            for _ in range(steps)
        ]
        yield draw.case(
            f"{architecture}, an outer step after {inner_steps}",
            architecture=architecture,
            dtype=dtype,
            state=PerRank([one[r] for one in state] for r in draw.ranks),
            updates=PerRank(
                [[None if one is None else one[r] for one in step] for step in updates]
                for r in draw.ranks
            ),
            inner_steps=inner_steps,
            outer_lr=outer_lr,
            momentum=momentum,
        )


#: Texts of the marks around a call after which ranks are not to have communicated.
QUIET, BACK = "between outer steps", "an inner step is over"


def train_in_rank(
    answer: Callable[..., Any],
    architecture: str,
    dtype: str,
    state: list[torch.Tensor],
    updates: list[list[torch.Tensor | None]],
    inner_steps: int,
    outer_lr: float,
    momentum: float,
) -> dict[str, Any]:
    """Make the inner steps of this rank, call the answer after each, and report the weights."""
    module = network_of(architecture, dtype, state)
    named = dict(module.named_parameters())
    note = getattr(dist.group.WORLD, "mark", lambda text: None)
    returned: list[Any] = []
    changed: list[int] = []
    report: dict[str, Any] = {"returned": returned, "inner steps that changed weights": changed}

    def tell(when: str) -> None:
        for name, p in named.items():
            report[f"{name} {when}"] = p.detach().clone()

    trained = answer(module, inner_steps, outer_lr, momentum)
    tell("at the start")
    for number, row in enumerate(updates, 1):
        with torch.no_grad():
            for p, update in zip(named.values(), row, strict=True):
                if update is not None:
                    p.add_(update)
        outer = number % inner_steps == 0
        before = [p.detach().clone() for p in named.values()]
        if not outer:
            note(QUIET)
        returned.append(trained.after_inner_step())
        if not outer:
            note(BACK)
            if not all(map(torch.equal, before, (p.detach() for p in named.values()))):
                changed.append(number)
        else:
            tell(f"after outer step {number // inner_steps}")
    return report


def diloco(
    c: Case,
    own_start: bool = False,
    together: Callable[[torch.Tensor, int], torch.Tensor] = lambda changes, r: changes.mean(0),
    sign: int = 1,
    look_ahead: bool = True,
    remembers: bool = True,
    anchor: str = "common",
    plain: bool = False,
    untouched: bool = False,
    trainable_only: bool = False,
    running_mean: bool = False,
) -> list[dict[str, Any]]:
    """Return what every rank reports, or would if the outer step goes wrong in a given way.

    Args:
        c: the case.
        own_start: whether ranks start from their own weights.
        together: what rank r makes of the changes of all ranks.
        sign: −1 if the change is taken the wrong way round.
        look_ahead: whether momentum is Nesterov's, or plain.
        remembers: whether momentum lasts from one outer step to the next.
        anchor: what the step is made from, and the change measured from: the ``common`` weights
            of the last outer step; the ``first`` ones for good; ``local`` weights for the step; or
            ``shared`` memory with the parameters, from the first outer step on.
        plain: whether the weights are only averaged.
        untouched: whether the parameters never change.
        trainable_only: whether frozen parameters are each rank's own.
        running_mean: whether the change enters the velocity with the share 1 − momentum.
    """
    names = [name for name, _ in NETWORKS[c.architecture]().named_parameters()]
    dtype = getattr(torch, c.dtype)
    lr, beta = (1.0, 0.0) if plain else (c.outer_lr, c.momentum)
    frozen = [not p.requires_grad for p in NETWORKS[c.architecture]().parameters()]
    start = [
        [
            c.state[r if own_start or (trainable_only and still) else 0][i].double()
            for i, still in enumerate(frozen)
        ]
        for r in c.ranks
    ]
    weights = [[t.clone() for t in row] for row in start]
    common = [[t.clone() for t in row] for row in start]
    velocity = [[torch.zeros_like(t) for t in row] for row in start]
    steps = len(c.updates[0])
    returned = [number % c.inner_steps == 0 for number in range(1, steps + 1)]
    reports: list[dict[str, Any]] = [
        {"returned": returned, "inner steps that changed weights": []} for _ in c.ranks
    ]

    def tell(when: str) -> None:
        for r in c.ranks:
            for name, t in zip(names, weights[r], strict=True):
                reports[r][f"{name} {when}"] = t.clone().to(dtype)

    tell("at the start")
    for number in range(1, steps + 1):
        for r in c.ranks:
            for t, update in zip(weights[r], c.updates[r][number - 1], strict=True):
                if update is not None:
                    t += update.double()
        if number % c.inner_steps:
            continue
        for i in range(len(names)):
            changes = torch.stack([sign * (common[r][i] - weights[r][i]) for r in c.ranks])
            for r in c.ranks if not untouched else ():
                change, v = together(changes, r), velocity[r][i]
                share = 1 - beta if running_mean else 1
                v.copy_((beta * v if remembers else 0) + share * change)
                base = weights[r][i] if anchor == "local" else common[r][i]
                new = base - lr * (change + beta * v if look_ahead else v)
                weights[r][i] = new
                if anchor != "first":
                    common[r][i] = new if anchor == "shared" else new.clone()
        tell(f"after outer step {number // c.inner_steps}")
    return reports


def sizes_of_weights(c: Case) -> list[dict[str, Any]]:
    """Return what the errors of weights are relative to: their size, and at least 1."""
    return [
        {
            key: value.abs().clamp(min=1) if isinstance(value, torch.Tensor) else None
            for key, value in report.items()
        }
        for report in diloco(c)
    ]


def told_by_others(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that ranks must receive for the weights of rank 0, and for each outer step.

    A frozen weight is told once.
    """
    if c.n == 1:
        return 0
    network = NETWORKS[c.architecture]()
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    news = [
        {
            key: value
            for key, value in report.items()
            if key.endswith(" at the start") or key.split()[0] not in frozen
        }
        for report in expected
    ]
    return combined(c, news)


def _calls_in_between(trace: Measured) -> int:
    """Count the calls that ranks make after inner steps that no outer step follows."""
    assert isinstance(trace, Trace)
    count = 0
    for operations, marks in zip(trace.operations, trace.marks, strict=True):
        begins = [one.time for one in marks if one.text == QUIET]
        ends = [one.time for one in marks if one.text == BACK]
        for begin, end in zip(begins, ends, strict=True):
            count += sum(begin < op.posted < end for op in operations)
    return count


QUIET_IN_BETWEEN = point(
    Limit(
        "calls between outer steps",
        _calls_in_between,
        "≤",
        lambda c: 0,
        Diagnosis.TOO_MANY_MESSAGES,
        Diagnosis.TOO_FEW_MESSAGES,
    )
)


def _returned(e: Evidence, when: Callable[[int, int], bool]) -> bool:
    """Return whether all failures are of an answer that says it synchronised at such a step."""
    wrong = [one for one in _wrong_values(e) if one.case.inner_steps > 1]
    return bool(wrong) and all(
        report["returned"] == [when(t, one.case.inner_steps) for t in range(1, count + 1)]
        for one in wrong
        for report in one.actual
        for count in [len(one.case.updates[0])]
    )


def _optimizer_of_its_own(changes: torch.Tensor, r: int) -> torch.Tensor:
    return changes[r]


DiLoCo = Exercise(
    signature="DiLoCo(module: nn.Module, inner_steps: int, outer_lr: float, momentum: float)",
    summary="an outer step with Nesterov momentum on the mean change of many inner steps",
    inputs=rounds_of_steps,
    adapter=train_in_rank,
    values=Values(diloco, reduced=lambda c: 167, magnitude=sizes_of_weights),
    traffic=TrafficRules(
        limits=(QUIET_IN_BETWEEN,),
        least=told_by_others,
        allowed=frozenset({"all_reduce", "broadcast"}),
    ),
    mistakes=(
        Mistake(
            "Ranks start from their own weights. Broadcast rank 0's when the object is made.",
            gives=lambda c: diloco(c, own_start=True) if c.n > 1 else None,
        ),
        Mistake(
            "Frozen parameters are still each rank's own. No optimizer changes them, but in the"
            " beginning they, too, have to become rank 0's: broadcast all of module.parameters().",
            gives=lambda c: diloco(c, trainable_only=True) if c.n > 1 else None,
        ),
        Mistake(
            "The changes of all ranks are added up, and not divided by n.",
            gives=lambda c: diloco(c, together=lambda d, r: d.sum(0)) if c.n > 1 else None,
        ),
        Mistake(
            "Each rank makes the outer step with its own change. Average the changes of all ranks"
            " first.",
            gives=lambda c: diloco(c, together=_optimizer_of_its_own) if c.n > 1 else None,
        ),
        Mistake(
            "The outer step goes the wrong way: SGD subtracts its gradient, so the gradient is"
            " common − weights, and not weights − common.",
            gives=partial(diloco, sign=-1),
        ),
        Mistake(
            "This is plain momentum. Nesterov's steps by gradient + momentum · velocity, with the"
            " new velocity.",
            gives=partial(diloco, look_ahead=False),
        ),
        Mistake(
            "The change enters the velocity with the share 1 − momentum, as in a running mean. In"
            " SGD it enters whole: velocity = momentum · velocity + change.",
            gives=partial(diloco, running_mean=True),
        ),
        Mistake(
            "The velocity is forgotten after each outer step: keep it from one to the next.",
            gives=partial(diloco, remembers=False),
        ),
        Mistake(
            "The weights are only averaged. The mean change is a gradient: outer_lr and momentum"
            " say what becomes of it.",
            gives=partial(diloco, plain=True),
        ),
        Mistake(
            "Every outer step begins at the weights of the start. It begins at those of the last"
            " outer step, which are the last that all ranks had in common.",
            gives=partial(diloco, anchor="first"),
        ),
        Mistake(
            "The outer step is made from each rank's own weights, so ranks drift apart. Make it"
            " from the last common weights, and copy the result into the parameters.",
            gives=partial(diloco, anchor="local"),
        ),
        Mistake(
            "From the second outer step on, no change is seen: the common weights and the"
            " parameters share memory, and inner steps change both. Copy values: p.copy_(common).",
            gives=partial(diloco, anchor="shared"),
        ),
        Mistake(
            "An outer step leaves the parameters as the inner steps have made them. Write the new"
            " common weights into them: p.copy_(common) under torch.no_grad().",
            gives=partial(diloco, untouched=True),
        ),
        Mistake(
            "It synchronises after the first inner_steps calls, and then never again: set the"
            " counter back to 0, or look at the remainder, count % inner_steps.",
            when=lambda e: _returned(e, lambda t, h: t == h),
        ),
        Mistake(
            "It synchronises one inner step too late: count the step that has just been made"
            " before you look at the counter.",
            when=lambda e: _returned(e, lambda t, h: t > 1 and t % h == 1 % h),
        ),
        Mistake(
            "It already synchronises after the first inner step: count the step that has just been"
            " made before you look at the counter.",
            when=lambda e: _returned(e, lambda t, h: t % h == 1 % h),
        ),
        Mistake(
            "Ranks communicate after every inner step. Between outer steps each works alone: that"
            " is what DiLoCo saves. Return False before anything is sent.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_MESSAGES,
        ),
        Mistake(
            "torch does not let a parameter that requires a gradient be changed in place where"
            " autograd watches: decorate with @torch.no_grad().",
            when=lambda e: e.says("a leaf Variable that requires grad"),
        ),
    ),
)
