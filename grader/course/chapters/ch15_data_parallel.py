"""Chapter 15: gradients of many ranks become one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.exercise.cases import Case, Draw, Kind, PerRank
from grader.exercise.compare import compare
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import (
    calls,
    combined,
    largest_call,
    messages,
    moved,
    overlaps,
    point,
    through,
)
from headcount.core.verdict import Diagnosis
from headcount.trace.trace import Trace

# Networks that ranks train. ---------------------------------------------------------


class _Shared(nn.Module):
    """A network that uses one layer twice, and whose head shares that layer's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
        self.head.weight = self.layer.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.layer(torch.relu(self.layer(x)))))  # type: ignore[no-any-return]


class _Spare(nn.Module):
    """A network whose first and last layer are never used."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Linear(4, 3)
        self.body = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
        self.after = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)  # type: ignore[no-any-return]


class _Experts(nn.Module):
    """Three experts, of which each input goes through the one that its first number names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))
        self.last = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = self.experts[int(x[0, 0])]
        return self.last(torch.tanh(chosen(torch.tanh(self.first(x)))))  # type: ignore[no-any-return]


class _Halves(nn.Module):
    """A network with two arguments, one of them passed by name."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 3)
        self.right = nn.Linear(4, 3, bias=False)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return torch.tanh(self.left(x)) + scale * torch.tanh(self.right(x))


class _Positive(nn.Module):
    """Counts the positive numbers that pass it, in a buffer of whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += (x > 0).sum()
        return x


def _deep() -> nn.Module:
    layers = [layer for _ in range(4) for layer in (nn.Linear(4, 4), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(4, 1))


def _frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    for parameter in (*module[0].parameters(), module[4].bias):
        assert isinstance(parameter, nn.Parameter)
        parameter.requires_grad_(False)
    return module


def _normalised() -> nn.Module:
    # the last buffer is another on each rank, as a batch norm's own count of batches is not
    layers = nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2), _Positive()
    return nn.Sequential(*layers)


#: The networks, by name; each takes rows of four numbers.
ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(4, 3),
    "deep": _deep,
    "tied weights": _Shared,
    "frozen parameters": _frozen,
    "unused layers": _Spare,
    "experts": _Experts,
    "two arguments": _Halves,
    "batch norm": _normalised,
}


def _parameters(architecture: str, dtype: torch.dtype) -> list[Kind]:
    return [Kind(dtype, tuple(p.shape)) for p in ARCHITECTURES[architecture]().parameters()]


def build(architecture: str, dtype: torch.dtype, state: Sequence[torch.Tensor]) -> nn.Module:
    """Make a network whose distinct parameters hold ``state``, in their order."""
    module = ARCHITECTURES[architecture]().to(dtype)
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), state, strict=True):
            parameter.copy_(value)
    return module


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the distinct parameters that require a gradient, by name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def loss_of(module: Callable[..., Any], architecture: str, x: torch.Tensor) -> torch.Tensor:
    """Return what a rank minimises on its part of a batch."""
    output = module(x, scale=0.5) if architecture == "two arguments" else module(x)
    loss: torch.Tensor = output.square().sum()
    return loss


def weights(draw: Draw, architecture: str, dtype: torch.dtype) -> PerRank:
    """Draw values of a network's parameters for every rank."""
    kinds = _parameters(architecture, dtype)
    columns = [draw.tensor(Kind(dtype, (draw.n, *kind.shape))) for kind in kinds]
    return PerRank([column[r] for column in columns] for r in draw.ranks)


# Gradients, averaged through one rank. ----------------------------------------------


def _lists(n: int) -> Iterator[tuple[str, list[Kind]]]:
    """Yield lists of gradients; some have as many numbers as there are ranks, one fewer or more."""
    single, double, half = torch.float32, torch.float64, torch.bfloat16
    yield "three gradients", [Kind(double, (3, 4)), Kind(double, (4,)), Kind(double, (2, 2))]
    yield "one gradient", [Kind(single, (7,))]
    yield "a scalar, an empty one and a large one", [
        Kind(single, ()), Kind(single, (0,)), Kind(single, (20, 50), special=True),
    ]  # fmt: skip
    yield "two dtypes", [Kind(double, (5,)), Kind(single, (3,)), Kind(double, (2, 3))]
    yield "short ones", [Kind(double, (n - 1,)), Kind(double, (n,)), Kind(double, (n + 1,))]
    yield "bfloat16", [Kind(half, (300,))]
    yield "no gradient at all", []


def gradient_lists(draw: Draw) -> Iterator[Case]:
    """Draw a list of gradients for every rank, of the same shapes everywhere."""
    for i, (name, kinds) in enumerate(_lists(draw.n)):
        # the same on all ranks, then less and less on all but one, which is the last or the first
        samples = PerRank(max(0, 3 - i * (r if i % 2 else draw.n - 1 - r)) for r in draw.ranks)
        columns = [draw.per_rank(kind, "AVG") for kind in kinds]
        grads = PerRank(
            [column[r] if samples[r] else torch.zeros_like(column[r]) for column in columns]
            for r in draw.ranks
        )
        yield draw.case(f"{name}, samples {list(samples)}", grads=grads, samples=samples)


def mean(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the mean of the ranks' tensors, rounded once."""
    return torch.stack([t.double() for t in tensors]).mean(0).to(tensors[0].dtype)


def means(c: Case, size: Callable[[torch.Tensor], torch.Tensor] = torch.clone) -> list[Any]:
    """Return what ``grads`` should become: the means over all samples; or of their sizes."""
    return [
        (
            sum(s * size(t.double()) for s, t in zip(c.samples, column, strict=True))
            / sum(c.samples)
        ).to(column[0].dtype)
        for column in zip(*c.grads, strict=True)
    ]


parameter_server_step = Exercise(
    signature="parameter_server_step(grads: list[Tensor], samples: int) -> None",
    summary="in place; every gradient becomes its mean over all samples, through rank 0",
    inputs=gradient_lists,
    values=Values(
        lambda c: [means(c)] * c.n,
        result="grads",
        # one rounding more for the product, and one for the share of a rank
        reduced=lambda c: c.n + 2,
        magnitude=lambda c: [means(c, torch.abs)] * c.n,
    ),
    traffic=TrafficRules(
        limits=(
            messages("≤", lambda c: 2 * (c.n - 1) * (len(c.grads[0]) + 1)),
            through(0),
        ),
        # a rank alone may be off by a rounding, and is told nothing
        least=lambda c, expected: combined(c, expected) if c.n > 1 else 0,
    ),
    mistakes=(
        Mistake(
            "The list holds new tensors, and the gradients themselves are as they were: an entry"
            " of the list is only a name for a tensor. Work in place, as in grads[i].copy_(mean)"
            " or grads[i] /= n.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and compare([means(e.case)] * e.case.n, e.actual, e.case.n + 2) is None
            ),
        ),
    ),
)


# Gradients of a module. -------------------------------------------------------------

#: Name, network, dtype, and whether a rank has a gradient, given rank, parameter and n.
_HOLDINGS: tuple[tuple[str, str, torch.dtype, Callable[[int, int, int], bool]], ...] = (
    ("every gradient is there", "deep", torch.float64, lambda r, i, n: True),
    ("some are None on rank 0", "one layer", torch.float32, lambda r, i, n: r > 0 or i == 1),
    ("some are None on all ranks", "deep", torch.float32, lambda r, i, n: i % 3 != 1),
    ("each is on one rank only", "deep", torch.float64, lambda r, i, n: i % n == r),
    ("tied weights", "tied weights", torch.float32, lambda r, i, n: True),
    ("none at all", "one layer", torch.float32, lambda r, i, n: False),
    ("one rank has none at all", "deep", torch.float32, lambda r, i, n: r != n // 2),
    ("frozen parameters", "frozen parameters", torch.float32, lambda r, i, n: 2 <= i < 5),
)


def with_gradients(draw: Draw) -> Iterator[Case]:
    """Draw networks, and which of their gradients exist on which rank."""
    for name, architecture, dtype, holds in _HOLDINGS:
        state = weights(draw, architecture, dtype)
        # a NaN is a gradient, and None is none
        kinds = [
            replace(kind, special=architecture == "deep")
            for kind in _parameters(architecture, dtype)
        ]
        columns = [draw.per_rank(kind, "AVG") for kind in kinds]
        gradients = PerRank(
            [column[r] if holds(r, i, draw.n) else None for i, column in enumerate(columns)]
            for r in draw.ranks
        )
        yield draw.case(
            name,
            architecture=architecture,
            dtype=str(dtype).removeprefix("torch."),
            state=state,
            gradients=gradients,
        )


def average_in_rank(
    answer: Callable[[nn.Module], Any],
    architecture: str,
    dtype: str,
    state: list[torch.Tensor],
    gradients: list[torch.Tensor | None],
) -> dict[str, Any]:
    """Give this rank's network its gradients, call the answer, and report the gradients."""
    module = build(architecture, getattr(torch, dtype), state)
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        # the answer may change it in place, and arguments must stay as they are
        parameter.grad = None if gradient is None else gradient.clone()
    returned = answer(module)
    report: dict[str, Any] = {"the result": returned}
    for name, parameter in module.named_parameters():
        report[f"gradient of {name}"] = parameter.grad
    report["weights"] = {name: p.detach() for name, p in module.named_parameters()}
    return report


def named(c: Case, combine: Callable[[list[Any]], Any]) -> list[dict[str, Any]]:
    """Return every rank's report if ``combine`` makes each gradient of those of all ranks."""
    names = list(dict(ARCHITECTURES[c.architecture]().named_parameters()))
    gradients = {
        f"gradient of {name}": combine([c.gradients[r][i] for r in c.ranks])
        for i, name in enumerate(names)
    }
    return [
        {"the result": None, **gradients, "weights": dict(zip(names, c.state[r], strict=True))}
        for r in c.ranks
    ]


def known(held: list[Any]) -> list[torch.Tensor]:
    """Return the gradients of all ranks, zeros for ``None``; an empty list if no rank has one."""
    there = [g for g in held if g is not None]
    return [torch.zeros_like(there[0]) if g is None else g for g in held] if there else []


def averaged(held: list[Any]) -> Any:
    """Return the mean over all ranks, zeros for ``None``; ``None`` if no rank has a gradient."""
    return mean(known(held)) if known(held) else None


def _some_are_none(c: Case) -> bool:
    """Return whether a rank has no gradient of some parameter."""
    return any(gradient is None for held in c.gradients for gradient in held)


average_gradients = Exercise(
    signature="average_gradients(module: nn.Module) -> None",
    summary="every p.grad becomes its mean over ranks; all_reduce is allowed",
    inputs=with_gradients,
    adapter=average_in_rank,
    values=Values(
        lambda c: named(c, averaged),
        reduced=lambda c: c.n,
        magnitude=lambda c: named(
            c, lambda held: mean([g.abs() for g in known(held)]) if known(held) else None
        ),
    ),
    traffic=TrafficRules(least=combined, allowed=frozenset({"all_reduce"})),
    mistakes=(
        # what comes first has every gradient
        Mistake(
            "p.grad may be None: on this rank, or on all of them.",
            when=lambda e: e.diagnosis is Diagnosis.EXCEPTION and _some_are_none(e.case),
        ),
        Mistake(
            "Some ranks skip a collective that others are in: a rank without a gradient has to"
            " take part all the same, unless no rank has one.",
            # where all make as many calls, in whatever order, none waits for ever
            when=lambda e: (
                Diagnosis.DEADLOCK in {one.diagnosis for one in e.failed}
                and all(_some_are_none(one.case) for one in e.failed)
            ),
        ),
    ),
)


# Buckets. ---------------------------------------------------------------------------


def buckets(sizes: Sequence[int], cap: int) -> list[list[int]]:
    """Return the buckets of these sizes, last parameter first, as full as the cap allows."""
    buckets: list[list[int]] = []
    room = -1
    for index in reversed(range(len(sizes))):
        if not buckets or sizes[index] > room:
            buckets.append([])
            room = cap
        buckets[-1].append(index)
        room -= sizes[index]
    return buckets


PARAMETERS: tuple[tuple[str, list[int], int], ...] = (
    ("two fit into one bucket", [40, 40, 40, 40], 100),
    ("sizes that differ", [400, 16, 64, 16, 1600, 40], 512),
    ("other buckets from the other end", [1, 2, 2], 4),
    ("a bucket that is exactly full", [30, 70, 60, 40, 50, 50], 100),
    ("one larger than the cap", [8, 16, 5000, 16, 8], 64),
    ("all larger than the cap", [65, 66, 67], 64),
    ("everything in one", [100, 200, 300], 1 << 20),
    ("a cap of one byte", [4, 4, 4], 1),
    ("one parameter", [12], 12),
    ("empty parameters", [0, 64, 0, 65, 0], 64),
    ("no parameters", [], 25 << 20),
    ("a real network", [2359296, 3072, 1769472, 2304, 589824, 768, 38597376], 25 << 20),
)

assign_buckets = Exercise(
    signature="assign_buckets(sizes: list[int], cap_bytes: int) -> list[list[int]]",
    summary="which parameters are reduced together: the last ones first",
    world_sizes=(1,),
    inputs=lambda draw: (
        draw.case(name, sizes=sizes, cap_bytes=cap) for name, sizes, cap in PARAMETERS
    ),
    values=Values(lambda c: [buckets(c.sizes, c.cap_bytes)] * c.n),
    mistakes=(
        Mistake(
            "There is an empty bucket. One that is larger than the cap stands alone, but it does"
            " not leave an empty bucket before it or behind it.",
            when=lambda e: bool(e.actual) and isinstance(e.actual[0], list) and [] in e.actual[0],
        ),
    ),
)


# Gradients, averaged bucket by bucket while backward runs. --------------------------

#: Marks that a rank leaves: a step begins, a gradient is ready, the answer is told to finish.
STEP, READY, FINISH = "step", "gradient", "finish"

#: Batches of a case; gradients are cleared in one of two ways between them.
STEPS = 3

#: An upper bound on the roundings in a gradient of these networks.
ROUNDINGS = 1000

#: The network that rank 0 evaluates after the last step, while no other rank does.
EVALUATED = "batch norm"

#: What a rank says of a step in which the answer has refused a second backward.
REFUSED = "RuntimeError"

#: Network, dtype, bytes of a bucket, and how many backwards there are in a step.
_RUNS = (
    ("deep", torch.float32, 100, 1),
    ("one layer", torch.float64, 1 << 20, 1),
    ("deep", torch.float64, 1, 1),
    ("tied weights", torch.float32, 32, 1),
    ("frozen parameters", torch.float32, 64, 1),
    ("unused layers", torch.float32, 60, 1),
    ("experts", torch.float64, 90, 1),
    ("two arguments", torch.float32, 40, 1),
    ("batch norm", torch.float64, 200, 1),
    # of two parameters or more: the gradient of one alone may be what is in flight, and a second
    # backward has then written to it before any hook can refuse
    ("deep", torch.float32, 120, 2),
)


def training(draw: Draw) -> Iterator[Case]:
    """Draw networks of several kinds, with weights and batches that differ by rank."""
    for architecture, dtype, cap, backwards in _RUNS:
        batches = [draw.tensor(Kind(dtype, (draw.n, 2, 4))) for _ in range(STEPS)]
        idle = [["before.", "after."] for _ in batches]
        if architecture == "experts":
            for step, batch in enumerate(batches):
                chosen = {(r + step) % 2 for r in draw.ranks}
                idle[step] = [f"experts.{k}." for k in range(3) if k not in chosen]
                for r in draw.ranks:
                    # no rank takes the last expert; and not all take the same one
                    batch[r][0, 0] = (r + step) % 2
        more = f", {backwards} backwards in a step" if backwards > 1 else ""
        more += ", rank 0 evaluates at the end" * (architecture == EVALUATED)
        yield draw.case(
            f"{architecture}, buckets of {cap} bytes{more}",
            architecture=architecture,
            dtype=str(dtype).removeprefix("torch."),
            bucket_bytes=cap,
            state=weights(draw, architecture, dtype),
            buffers=_buffers(draw, architecture, dtype),
            backwards=backwards,
            # how the names begin of parameters that no rank uses in a step, if there are such
            idle=idle,
            batches=PerRank([batch[r] for batch in batches] for r in draw.ranks),
        )


def _buffers(draw: Draw, architecture: str, dtype: torch.dtype) -> PerRank:
    """Draw values of a network's buffers for every rank."""
    like = [
        b.to(dtype) if b.is_floating_point() else b for b in ARCHITECTURES[architecture]().buffers()
    ]
    columns = [draw.tensor(Kind(b.dtype, (draw.n, *b.shape))) for b in like]
    return PerRank([column[r] for column in columns] for r in draw.ranks)


def _put(module: nn.Module, buffers: Iterable[torch.Tensor]) -> None:
    """Give a network these buffers."""
    for buffer, value in zip(module.buffers(), buffers, strict=True):
        buffer.copy_(value)


def _buffers_of(module: nn.Module) -> dict[str, torch.Tensor]:
    return {f"buffer {name}": b.clone() for name, b in module.named_buffers()}


def train_in_rank(
    answer: Callable[[nn.Module, int], nn.Module],
    architecture: str,
    dtype: str,
    bucket_bytes: int,
    state: list[torch.Tensor],
    buffers: list[torch.Tensor],
    backwards: int,
    idle: list[list[str]],
    batches: list[torch.Tensor],
) -> dict[str, Any]:
    """Wrap this rank's network with the answer, and go forward and backward on each batch.

    Where no rank uses a parameter, a gradient that is ``None`` is reported as zeros: both are
    right.  The steps after one that is refused are not tried.
    """
    module = build(architecture, getattr(torch, dtype), state)
    _put(module, buffers)
    note = getattr(dist.group.WORLD, "mark", lambda text: None)
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    for parameter in parameters.values():
        # hooks run in the order in which they are registered: this one before the answer's
        parameter.register_post_accumulate_grad_hook(lambda _: note(READY))  # type: ignore[no-untyped-call]
    wrapped = answer(module, bucket_bytes)
    report: dict[str, Any] = {
        "is a module": isinstance(wrapped, nn.Module),
        "weights": {name: p.detach().clone() for name, p in module.named_parameters()},
        "buffers once it is wrapped": _buffers_of(module),
    }
    for number, x in enumerate(batches, 1):
        note(STEP)
        # both usual ways to clear gradients; the first time there is nothing to clear
        if number > 1:
            module.zero_grad(set_to_none=number % 2 == 0)
        try:
            for part in x.chunk(backwards):
                loss = loss_of(wrapped, architecture, part)
                loss.backward()  # type: ignore[no-untyped-call]
            note(FINISH)
            wrapped.finish_gradient_synchronization()  # type: ignore[operator]
        except RuntimeError:
            if backwards == 1:
                raise
            with contextlib.suppress(RuntimeError):
                # what is in flight has to land all the same
                wrapped.finish_gradient_synchronization()  # type: ignore[operator]
            report |= {f"step {later + 1}": REFUSED for later in range(number - 1, STEPS)}
            break
        step: dict[str, Any] = {"loss": loss.detach(), **_buffers_of(module)}
        for name, p in parameters.items():
            gradient = None if p.grad is None else p.grad.detach().clone()
            if gradient is None and name.startswith(tuple(idle[number - 1])):
                gradient = torch.zeros_like(p)
            step[f"gradient of {name}"] = gradient
        report[f"step {number}"] = step
    if architecture == EVALUATED and dist.get_rank() == 0 and isinstance(wrapped, nn.Module):
        loss_of(wrapped.eval(), architecture, batches[0])
    own = {id(p) for p in module.parameters()}
    report["parameters seen by an optimizer"] = len({id(p) for p in wrapped.parameters()} & own)
    return report


def _local(c: Case, module: nn.Module, x: torch.Tensor) -> dict[str, Any]:
    """Return the last loss and the gradients of one rank alone, and what its buffers become."""
    module.zero_grad()
    for part in x.chunk(c.backwards):
        loss = loss_of(module, c.architecture, part)
        loss.backward()  # type: ignore[no-untyped-call]
    return {
        "loss": loss.detach(),
        **_buffers_of(module),
        **{
            f"gradient of {name}": torch.zeros_like(p) if p.grad is None else p.grad
            for name, p in trainable(module).items()
        },
    }


def reports(c: Case, combine: Callable[[list[torch.Tensor]], torch.Tensor]) -> list[dict[str, Any]]:
    """Return every rank's report if ``combine`` makes each gradient of those of all ranks."""
    module = _network(c)
    buffers = _buffers_of(module)
    found = [_begin(c, module) for _ in c.ranks]
    for step in range(STEPS):
        ranks = []
        for batches in c.batches:
            # before each forward, those of rank 0
            _put(module, buffers.values())
            ranks.append(_local(c, module, batches[step]))
        means = {
            name: combine([one[name] for one in ranks])
            for name in ranks[0]
            if name.startswith("gradient")
        }
        for report, own in zip(found, ranks, strict=True):
            report[f"step {step + 1}"] = own | means
        buffers = {name: ranks[0][name] for name in buffers}
    return found


def _begin(c: Case, module: nn.Module) -> dict[str, Any]:
    """Return what a rank reports before the first step, and of the parameters."""
    names = [name for name, _ in module.named_parameters()]
    return {
        "is a module": True,
        "weights": dict(zip(names, c.state[0], strict=True)),
        "buffers once it is wrapped": _buffers_of(module),
        "parameters seen by an optimizer": len(names),
    }


def _refused(c: Case) -> Iterator[list[dict[str, Any]]]:
    """Yield what ranks report that refuse a second backward, where there is one."""
    if c.backwards > 1:
        steps = {f"step {step + 1}": REFUSED for step in range(STEPS)}
        yield [{**_begin(c, _network(c)), **steps}] * c.n


def sizes(c: Case) -> Iterator[Any]:
    """Yield how large values may have been before they cancelled, in the form of the reports."""
    for report in reports(c, lambda gs: mean([g.abs() for g in gs]) + 1.0):
        yield {
            key: {name: v.abs() + 1.0 for name, v in value.items()}
            if key.startswith("step")
            else value
            for key, value in report.items()
        }


def _network(c: Case) -> nn.Module:
    """Return a network with the weights and buffers of rank 0."""
    module = build(c.architecture, getattr(torch, c.dtype), c.state[0])
    _put(module, c.buffers[0])
    return module


def bucket_bytes(c: Case) -> list[int]:
    """Return the bytes of each bucket of a case's network."""
    sizes = [p.nbytes for p in trainable(_network(c)).values()]
    return [sum(sizes[i] for i in bucket) for bucket in buckets(sizes, c.bucket_bytes)]


def must_overlap(c: Case) -> int:
    """Return in how many steps, of all ranks, a bucket is in flight before the last gradient."""
    # with unused parameters, the first bucket may become full only at the very end
    always = c.architecture not in ("unused layers", "experts")
    return c.n * STEPS if always and len(bucket_bytes(c)) > 1 else 0


def reductions(c: Case) -> int:
    """Return the all-reduces of all ranks in all steps."""
    return c.n * STEPS * len(bucket_bytes(c))


#: Where the calls, or their bytes, are not those of the right buckets.
NOT_THOSE_BUCKETS = (
    Diagnosis.TOO_MANY_MESSAGES,
    Diagnosis.TOO_FEW_MESSAGES,
    Diagnosis.TOO_MANY_BYTES,
    Diagnosis.TOO_FEW_BYTES,
)


def _once(c: Case) -> bool:
    """Return whether there is one backward in a step: with two, sums may be sent twice."""
    return bool(c.backwards == 1)


# What an answer shows. --------------------------------------------------------------


def _fails_only(e: Evidence, diagnosis: Collection[Diagnosis], *architectures: str) -> bool:
    """Return whether failures of these diagnoses lead, and are in networks of these kinds only."""
    found = [one for one in e.failed if one.diagnosis in diagnosis]
    return e.diagnosis in diagnosis and all(one.case.architecture in architectures for one in found)


def _some_are_missing(actual: Sequence[Any]) -> bool:
    """Return whether a rank has no gradient of a parameter that some rank uses."""
    steps = [step for held in actual for step in held.values() if isinstance(step, dict)]
    return any(value is None for step in steps for value in step.values())


def _keeps_the_first(e: Evidence) -> bool:
    """Return whether gradients are those of the first of two backwards in a step."""
    first = PerRank([x.chunk(e.case.backwards)[0] for x in batches] for batches in e.case.batches)
    alone = replace(e.case, columns={**e.case.columns, "batches": first, "backwards": 1})
    want = {k: v for k, v in reports(alone, mean)[0]["step 1"].items() if k.startswith("gradient")}
    held = {k: e.actual[0]["step 1"][k] for k in want}
    scale = {k: v.abs() + 1.0 for k, v in want.items()}
    return not _once(e.case) and compare(want, held, ROUNDINGS, scale) is None


def _passes(e: Evidence, architecture: str) -> bool:
    """Return whether a network is right on several ranks, with one backward in a step."""
    ran = [one for one in e.judged if one.case.architecture == architecture and one.limit is None]
    several = [one.passed for one in ran if one.case.n > 1 and _once(one.case)]
    return bool(several) and all(several)


def _tied_twice(module: nn.Module) -> list[int]:
    """Return the bytes of a network's parameters, of tied weights once for each of their names."""
    every = module.named_parameters(remove_duplicate=False)
    return [p.nbytes for _, p in every if p.requires_grad]


def _as_many_as(number: Callable[[Case, nn.Module], int]) -> Callable[[Evidence], bool]:
    """Return a test of whether there are as many all-reduces as there would be other buckets.

    Args:
        number: of these buckets, for a network.
    """

    def seen(e: Evidence) -> bool:
        ended = [one for one in e.judged if one.limit is None and one.actual and _once(one.case)]
        calls = [[op.kind for ops in one.trace.operations for op in ops] for one in ended]
        found = [kinds.count("all_reduce") for kinds in calls]
        others = [one.case.n * STEPS * number(one.case, _network(one.case)) for one in ended]
        right = [reductions(one.case) for one in ended]
        return e.diagnosis in NOT_THOSE_BUCKETS and found == others != right

    return seen


def _first_step_is_right(e: Evidence) -> bool:
    """Return whether gradients are wrong, and those of the first batch right on all ranks."""
    reported = zip(reports(e.case, mean), e.actual, sizes(e.case), strict=True)
    return e.diagnosis is Diagnosis.WRONG_GRADIENT and all(
        compare(want["step 1"], held["step 1"], ROUNDINGS, scale["step 1"]) is None
        for want, held, scale in reported
    )


def _refuses_a_later_step(e: Evidence) -> bool:
    """Return whether the answer raises after the first step, where each has one backward only."""
    refuses = e.raised("RuntimeError") and e.written("raise RuntimeError") and _once(e.case)
    return refuses and _timeline(e.trace, (e.failure and e.failure.rank) or 0).count(STEP) > 1


def _in_finish(e: Evidence) -> bool:
    """Return whether no all-reduce begins before the answer is told to finish."""
    before = [a for rank in e.case.ranks for a, b in pairwise(_timeline(e.trace, rank)) if b == SUM]
    return FINISH in before and not {STEP, READY} & {*before}


def _at_the_end(e: Evidence) -> bool:
    """Return whether the all-reduces of a step begin only when all its gradients are ready."""
    bursts = [
        sum(a == READY and b == SUM for a, b in pairwise(_timeline(e.trace, rank)))
        for rank in e.case.ranks
    ]
    return max(bursts) <= STEPS


def _early_at_first(e: Evidence) -> bool:
    """Return whether all-reduces begin between gradients in the first step, and in no other."""
    steps = [
        ["ag" in step for step in "".join(seen[0] for seen in _timeline(e.trace, r)).split("s")[1:]]
        for r in e.case.ranks
    ]
    return all(early == [True] + [False] * (STEPS - 1) for early in steps)


#: What a timeline says of an all-reduce.
SUM = "all_reduce"


def _timeline(trace: Trace, rank: int) -> list[str]:
    """Return a rank's all-reduces and marks, in order of time."""
    seen = [(mark.time, mark.text) for mark in trace.marks[rank]]
    seen += [(op.posted, SUM) for op in trace.operations[rank] if op.kind == SUM]
    return [what for _, what in sorted(seen)]


#: What ranks whose all-reduces meet in different orders run into.
_OUT_OF_ORDER = (
    Diagnosis.DEADLOCK,
    Diagnosis.ORDER_MISMATCH,
    Diagnosis.SIZE_MISMATCH,
    Diagnosis.WRONG_GRADIENT,
)

BucketedDDP = Exercise(
    signature="BucketedDDP(module: nn.Module, bucket_bytes: int)",
    summary="gradients are averaged bucket by bucket, while backward still runs",
    inputs=training,
    adapter=train_in_rank,
    values=Values(
        lambda c: reports(c, mean),
        also=lambda c: list(_refused(c)),
        reduced=lambda c: ROUNDINGS,
        magnitude=lambda c: list(sizes(c)),
    ),
    traffic=TrafficRules(
        limits=tuple(
            point(replace(limit, applies=_once))
            for limit in (
                calls({"all_reduce"}, "=", reductions),
                largest_call("all_reduce", "=", lambda c: max(bucket_bytes(c))),
                overlaps("all_reduce", READY, STEP, must_overlap),
            )
        ),
        least=lambda c, expected: moved(c, [report["weights"] for report in expected]),
        allowed=frozenset({"all_reduce", "broadcast"}),
    ),
    # with experts, buckets are complete in a different order on each rank
    point=lambda one: one.case.architecture == "experts" and one.diagnosis in _OUT_OF_ORDER,
    points=3.0,
    mistakes=(
        # what comes before has trained parameters only, and then such as all are used
        Mistake(
            "A frozen parameter takes no hook and gets no gradient: leave out every parameter whose"
            " requires_grad is False.",
            when=lambda e: (
                e.diagnosis is Diagnosis.EXCEPTION and e.case.architecture == "frozen parameters"
            ),
        ),
        Mistake(
            "Buffers are not rank 0's, such as the running mean of a batch norm. Broadcast"
            " module.buffers() when the module is wrapped, and in every forward while it trains:"
            " each rank's own batches change them.",
            when=lambda e: _fails_only(e, (Diagnosis.WRONG_VALUE,), "batch norm"),
        ),
        Mistake(
            "A second backward comes before finish_gradient_synchronization, and what it adds is"
            " lost: the buckets are on their way. Add it up as well, or raise RuntimeError.",
            when=_keeps_the_first,
        ),
        Mistake(
            "Where ranks use different parameters, their buckets fill up in different orders, or"
            " never, but all ranks must call the same all-reduces in the same order. Start each"
            " only when the one before it in the list has been started, and the rest in"
            " finish_gradient_synchronization, with zeros for gradients that are None.",
            when=lambda e: (
                _fails_only(e, _OUT_OF_ORDER, "experts")
                and not (e.actual and _some_are_missing(e.actual))
                and all(one.case.n > 1 for one in e.failed if one.diagnosis in _OUT_OF_ORDER)
            ),
        ),
        Mistake(
            "The first step goes well, a later one does not. After finish_gradient_synchronization"
            " everything must be as it was before the first backward: counts, requests, buffers.",
            when=lambda e: _refuses_a_later_step(e) or _first_step_is_right(e),
        ),
        Mistake(
            "Where a rank does not use a parameter, it has no gradient, and no hook is called: what"
            " waits for it must be started in finish_gradient_synchronization, with zeros in its"
            " place, and divided by the number of all ranks.",
            when=lambda e: (
                e.case.architecture in ("experts", "unused layers")
                and e.diagnosis in (Diagnosis.WRONG_GRADIENT, Diagnosis.EXCEPTION)
                and not _passes(e, "unused layers")
            ),
        ),
        Mistake(
            "There are as many buckets as if sizes were counted in elements. bucket_bytes is in"
            " bytes, and so is a size: p.numel() * p.element_size().",
            when=_as_many_as(
                lambda c, module: len(
                    buckets([p.numel() for p in trainable(module).values()], c.bucket_bytes)
                )
            ),
        ),
        Mistake(
            "Everything goes in one all-reduce, whatever bucket_bytes says: give it to"
            " assign_buckets as the cap, and call all_reduce once for each bucket.",
            when=_as_many_as(lambda c, module: 1),
        ),
        Mistake(
            "There is an all-reduce for every parameter: flatten the gradients of a bucket into one"
            " tensor, torch.cat([g.flatten() for g in ...]), and reduce that.",
            when=_as_many_as(lambda c, module: len(trainable(module))),
        ),
        Mistake(
            "Tied weights are one parameter, and here they are reduced as often as they are used:"
            " module.parameters() has each of them once.",
            when=_as_many_as(lambda c, module: len(buckets(_tied_twice(module), c.bucket_bytes))),
        ),
        Mistake(
            "In the first step an all-reduce begins while gradients are still missing, and later"
            " none does. After finish_gradient_synchronization everything must be as it was before"
            " the first backward: counts, requests, buffers.",
            when=lambda e: e.diagnosis is Diagnosis.NO_OVERLAP and _early_at_first(e),
        ),
        Mistake(
            "No all-reduce begins before finish_gradient_synchronization, and then nothing is left"
            " to compute beside it. Start a bucket's in the hook of the gradient that completes it."
            " Does each hook count down its own bucket? All lambdas of a loop see its last value;"
            " lambda _, number=number keeps that of its own round.",
            when=lambda e: e.diagnosis is Diagnosis.NO_OVERLAP and _in_finish(e),
        ),
        Mistake(
            "All of the all-reduces begin when the last gradient is ready, so there is nothing left"
            " to compute beside them. Start a bucket's all-reduce in the hook of the gradient that"
            " completes it.",
            when=lambda e: e.diagnosis is Diagnosis.NO_OVERLAP and _at_the_end(e),
        ),
        Mistake(
            "The all-reduces begin early enough, but backward stands still until each of them has"
            " ended. Call it with async_op=True, keep the request that comes back, and wait for it"
            " only in finish_gradient_synchronization.",
            when=lambda e: e.diagnosis is Diagnosis.NO_OVERLAP,
        ),
    ),
)
