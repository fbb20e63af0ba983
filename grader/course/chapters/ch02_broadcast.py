"""Chapter 02: everyone ends with what one rank has."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from grader.course.chapters import evidence
from grader.course.costs import tree_levels
from grader.exercise.cases import Case, Draw, Kind, PerRank, demo, from_roots, nbytes, tags
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import messages, moved, point, rounds, total_bytes
from headcount.core.verdict import Diagnosis


def _sends_first(e: Evidence) -> bool:
    """Return whether it hangs and a rank other than the source sent before it received."""
    return e.diagnosis is Diagnosis.DEADLOCK and evidence.sends_first(e, but=e.case.src)


def _twice(e: Evidence) -> bool:
    """Return whether a rank is sent all of x twice, or the source is sent what it already has."""
    if e.diagnosis is not Diagnosis.TOO_MANY_MESSAGES:
        return False
    whole = [op.peer for op in e.trace.sends() if op.count == e.case.x[0].numel()]
    return len(whole) > len(set(whole) - {e.case.src})


_SPEAKS_TOO_SOON = Mistake(
    "At the start only src has what is to be sent, but another rank sends before it has received"
    " anything. Which ranks should receive first?",
    when=_sends_first,
)

_SENT_TWICE = Mistake(
    "A rank is sent x although it has it already. Each of the other n − 1 ranks needs it exactly"
    " once, and src not at all.",
    when=_twice,
)


broadcast = Exercise(
    signature="broadcast(x: Tensor, src: int) -> None",
    summary="in place; everyone ends with src's x",
    inputs=from_roots,
    values=Values(lambda c: [c.x[c.src]] * c.n, result="x"),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n - 1),
            total_bytes("=", lambda c: (c.n - 1) * nbytes(c.x[0])),
        ),
        least=moved,
    ),
    mistakes=(
        _SPEAKS_TOO_SOON,
        _SENT_TWICE,
        Mistake(
            "It is right with 2 and 4 ranks and wrong with 3 and 5. A partner whose number is"
            " found by doubling or flipping bits need not exist: check that it is below n, and that"
            " every rank still receives once.",
            when=evidence.on_powers_of_two_only,
        ),
    ),
    demo=lambda n: demo(n, x=tags(n, 2), src=1 % n),
)


tree_broadcast = Exercise(
    signature="tree_broadcast(x: Tensor, src: int) -> None",
    summary="in place, on a tree: everyone ends with src's x after ⌈log₂ n⌉ rounds",
    inputs=from_roots,
    values=Values(lambda c: [c.x[c.src]] * c.n, result="x"),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n - 1),
            point(rounds("=", lambda c: tree_levels(c.n))),
        ),
        least=moved,
    ),
    mistakes=(
        _SENT_TWICE,
        Mistake(
            "It is right with 2 and 4 ranks and wrong with 3 and 5, where the last round is not"
            " full. Is there such a round at all, and has each rank that sends in it a partner"
            " below n?",
            when=evidence.on_powers_of_two_only,
        ),
        _SPEAKS_TOO_SOON,
    ),
    demo=lambda n: demo(n, x=tags(n, 1), src=0),
)

# The modules whose parameters are synchronised; these travel to the ranks.


class _Tied(nn.Module):
    """An embedding and a head that share one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embedding.weight


class _Counted(nn.Module):
    """Buffers of several dtypes, one of them not saved with the state."""

    steps: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("steps", torch.zeros(2, dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(3, dtype=torch.bool))
        self.register_buffer("total", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("scale", torch.zeros(5, dtype=torch.bfloat16))
        self.register_buffer("cache", torch.zeros(4), persistent=False)


def _build(architecture: str) -> nn.Module:
    if architecture == "linear":
        return nn.Linear(5, 3)
    if architecture == "batch norm":
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    if architecture == "tied":
        return _Tied()
    if architecture == "frozen":
        module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
        module[0].requires_grad_(False)
        return module
    if architecture == "transposed":
        layer = nn.Linear(3, 4)
        layer.weight = nn.Parameter(torch.zeros(3, 4).t())  # not contiguous
        return layer
    return _Counted()


def _tensors_of(module: nn.Module) -> dict[str, torch.Tensor]:
    kinds = (("parameter", module.named_parameters()), ("buffer", module.named_buffers()))
    return {f"{kind} {name}": tensor for kind, named in kinds for name, tensor in named}


#: What a report calls tensors that have taken the place of the module's own.
_REPLACED = "tensors in the place of the module's own"


def _sync_in_rank(
    sync: Callable[[nn.Module, int], Any], architecture: str, state: list[torch.Tensor], src: int
) -> dict[str, Any]:
    """Build this rank's module, call the answer, and report the parameters and buffers."""
    module = _build(architecture)
    with torch.no_grad():
        for tensor, value in zip(_tensors_of(module).values(), state, strict=True):
            tensor.copy_(value)
    before = _tensors_of(module)
    returned = sync(module, src)
    after = _tensors_of(module)
    return {
        "the result": returned,
        **{name: tensor.detach() for name, tensor in after.items()},
        **{f"requires_grad of {name}": tensor.requires_grad for name, tensor in after.items()},
        _REPLACED: ", ".join(n for n, t in after.items() if before.get(n) is not t) or "none",
    }


def _modules(draw: Draw) -> Iterator[Case]:
    architectures = ("linear", "batch norm", "tied", "frozen", "buffers", "transposed")
    for i, architecture in enumerate(architectures):
        src = (draw.n - 1 + i) % draw.n
        tensors = list(_tensors_of(_build(architecture)).values())
        drawn = [_random_like(draw, t, architecture == "frozen") for t in tensors]
        states = PerRank(map(list, zip(*drawn, strict=True)))
        yield draw.case(
            f"{architecture} from rank {src}", architecture=architecture, state=states, src=src
        )


def _random_like(draw: Draw, tensor: torch.Tensor, special: bool) -> PerRank:
    kind = Kind(tensor.dtype, tuple(tensor.shape), special)
    if tensor.dtype == torch.bool:
        return PerRank(t > 0 for t in draw.per_rank(Kind(torch.float64, kind.shape)))
    return draw.per_rank(kind)


def _synchronised(c: Case) -> list[dict[str, Any]]:
    """Return what every rank reports if its tensors are src's, and still the module's own."""
    like = _tensors_of(_build(c.architecture))
    report = {
        "the result": None,
        **dict(zip(like, c.state[c.src], strict=True)),
        **{f"requires_grad of {name}": tensor.requires_grad for name, tensor in like.items()},
        _REPLACED: "none",
    }
    return [report] * c.n


sync_parameters = Exercise(
    signature="sync_parameters(module: nn.Module, src: int) -> None",
    summary="every parameter and buffer equals src's; dist.broadcast is allowed",
    inputs=_modules,
    adapter=_sync_in_rank,
    values=Values(_synchronised),
    traffic=TrafficRules(least=moved, allowed=frozenset({"broadcast"})),
    mistakes=(
        Mistake(
            "Parameters or buffers were replaced by new ones. An optimizer that holds the old ones"
            " would go on with those: write into the module's own tensors, as broadcast does.",
            when=lambda e: any(report[_REPLACED] != "none" for report in e.actual),
        ),
    ),
)
