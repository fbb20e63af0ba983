"""Chapter 24: parameters, gradients and optimizer state in shards (ZeRO-3)."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from grader.exercise.cases import Case, Draw, Kind, Large, PerRank
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import PROCESS, Limit, grown, held, moved, point
from grader.instruments import HeldStorages, return_freed_memory, wait_until
from grader.instruments.marks import memory_mark
from headcount.core.verdict import Diagnosis
from headcount.launch.world import Pause
from headcount.rank.torch_startup import without_compiler
from headcount.trace.trace import Operation, Trace

#: A parameter of more elements is held in shards.
REPLICATED = 128

#: An entry of a report.
SMALL_IN_SHARDS = f"parameters of up to {REPLICATED} elements that are cut into shards"

#: Elements that are granted for each parameter beyond a shard, for padding and small parameters.
GRANTED = 128

#: Names of the buffers of the one network that has any.
BUFFERS = frozenset({"scale", "seen"})

# Networks that ranks train. ---------------------------------------------------------


class _Words(nn.Module):
    """A network on integers, with a layer whose parameters are all small, and with buffers."""

    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20)
        self.register_buffer("scale", torch.arange(1, 9) / 4)
        self.register_buffer("seen", torch.tensor(7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # in mixed precision the buffer makes float32 of it, which the head has to cast
        return self.head(self.norm(self.words(x)) * self.scale)  # type: ignore[no-any-return]


class _Picked(nn.Module):
    """A layer of several matrices; an integer says which one is used."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 9, 5))

    def forward(self, x: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        return x @ self.weight[which]


class _Branches(nn.Module):
    """A network with two inputs, two branches, and a layer with two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(17, 9)
        self.right = nn.Linear(17, 9, bias=False)
        self.picked = _Picked()

    def forward(self, x: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        joined = torch.tanh(self.left(x)) + self.right(x)
        return self.picked(joined, which)  # type: ignore[no-any-return]


class _Mirrored(nn.Module):
    """A layer that multiplies with its weight twice, which autograd saves each time."""

    def __init__(self, width: int, inside: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inside, width))
        self.bias = nn.Parameter(torch.empty(inside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ self.weight.T + self.bias) @ self.weight


class _Wide(nn.Module):
    """A layer of a large weight, which no initialisation touches."""

    def __init__(self, width: int, outside: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outside, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.T


def _chain(*widths: int) -> nn.Sequential:
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.Tanh())][:-1])


#: The networks, by name.
ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "two layers": lambda: _chain(20, 12, 3),
    # of 208, 128, 344, 129 and 150 weights: one is replicated, and one has three rows
    "sizes that n does not divide": lambda: _chain(13, 16, 8, 43, 3, 50),
    "an embedding, and buffers": _Words,
    "branches, and an integer input": _Branches,
    "a large layer": lambda: nn.Sequential(nn.Linear(2, 64), nn.Tanh(), _Mirrored(64, 96)),
    "one layer": lambda: nn.Linear(40, 24),
    "weighed": lambda: nn.Sequential(_Wide(1280, 2048), nn.Tanh(), _Wide(2048, 1280)),
}

#: The network of which the judge weighs the shards, and on how many ranks.
WEIGHED, _WEIGHED_ON = "weighed", 2

#: The network of which gathered layers are counted.
COUNTED = "sizes that n does not divide"

#: The network that is a layer itself.
ALONE = "one layer"


def build(architecture: str, dtype: torch.dtype, state: Sequence[torch.Tensor]) -> nn.Module:
    """Make a network whose parameters hold ``state``, in their order."""
    module = ARCHITECTURES[architecture]().to(dtype)
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), state, strict=True):
            parameter.copy_(value)
    return module


def loss_of(output: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what a rank minimises on its part of a batch."""
    return output.to(dtype).square().sum()


# Inputs. ----------------------------------------------------------------------------

#: Steps of a case; gradients are cleared in one of two ways between them.
STEPS = 2

#: Rows of a rank's batch: so few that what autograd keeps of them fits into what is granted.
ROWS = 2

#: The networks, their dtype, and the dtype to compute in.  On 3, 5 and 8 ranks there are only the
#: first two: what differs there is how the parameters are cut, and every rank costs time.
_RUNS: tuple[tuple[str, torch.dtype, torch.dtype | None], ...] = (
    ("two layers", torch.float32, None),
    ("sizes that n does not divide", torch.float64, None),
    ("an embedding, and buffers", torch.float64, None),
    ("branches, and an integer input", torch.float32, None),
    ("a large layer", torch.float32, torch.bfloat16),
    ("an embedding, and buffers", torch.float32, torch.bfloat16),
    (ALONE, torch.float32, None),
)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _inputs(draw: Draw, architecture: str, dtype: torch.dtype, step: int) -> list[Any]:
    """Draw the inputs of every rank for one step."""
    if architecture == "an embedding, and buffers":
        numbers = draw.tensor(Kind(torch.int64, (draw.n, ROWS)))
        return [[row % 40] for row in numbers]
    width = next(p.shape[1] for p in ARCHITECTURES[architecture]().parameters())
    rows = draw.tensor(Kind(dtype, (draw.n, ROWS, width)))
    if architecture == "branches, and an integer input":
        return [[row, torch.tensor((r + step) % 4)] for r, row in enumerate(rows)]
    return [[row] for row in rows]


def training(draw: Draw) -> Iterator[Case]:
    """Draw networks of several kinds, with weights and batches that differ by rank."""
    for architecture, dtype, compute in _RUNS if draw.n in (1, 2, 4) else _RUNS[:2]:
        shapes = [tuple(p.shape) for p in ARCHITECTURES[architecture]().parameters()]
        columns = [
            draw.tensor(Kind(dtype, (draw.n, *shape))) / max(shape[-1], 4) ** 0.5
            for shape in shapes
        ]
        batches = [_inputs(draw, architecture, dtype, step) for step in range(STEPS)]
        case = draw.case(
            architecture + (f", computed in {_name(compute)}" if compute else ""),
            architecture=architecture,
            dtype=_name(dtype),
            compute=_name(compute) if compute else "",
            state=PerRank([column[r] for column in columns] for r in draw.ranks),
            batches=PerRank([batch[r] for batch in batches] for r in draw.ranks),
        )
        yield Case(case.name, case.n, {**case.columns, "most": most_held(case)})
    if draw.n == _WEIGHED_ON:
        yield _weighed_case(draw)


def _weighed_case(draw: Draw) -> Case:
    """Draw large weights, of which the judge weighs what a rank keeps.

    What a rank counts of its own memory is its own word.  Here it is told weights that it could
    not compute, is weighed when it has gathered them once, and only then learns which of them to
    show.
    """
    shapes = list(ARCHITECTURES[WEIGHED]().parameters())
    large = Large(draw, sum(p.numel() for p in shapes))
    case = draw.case(
        f"{4 * large.numel >> 20} MB of weights, weighed from outside",
        architecture=WEIGHED,
        dtype="float32",
        compute="",
        state=[],
        batches=[],
    )
    case = replace(
        case,
        pauses=(
            Pause(tells=lambda: large.whole("weights")),
            Pause(weighs=True, tells=lambda: large.places),
        ),
        secrets={"state": [shapes] * draw.n, "shown": large.shown("weights")},
    )
    return replace(case, columns={**case.columns, "most": most_held(case)})


# The call in a rank. ----------------------------------------------------------------

#: Texts of the marks around forward, backward and finish of each step.
BEGIN, END = "step begins", "step ends"

#: Operations that multiply with a weight, or look something up in it.
_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "embedding"})

#: Operations whose results have whatever numbers were left in freed memory.
_EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})

#: How many elements at either end of a weight are looked for in memory.
_RUN = 4


class _Layers(HeldStorages):  # type: ignore[no-untyped-call]
    """Held storages in which whole weights are looked for whenever a layer computes.

    Attributes:
        runs: by name of a sharded weight, the bytes of its first and its last elements, as they
            are gathered.  A rank that has both outside its shards has gathered it.
        at_once: the names of most weights that were gathered at once.
        dtypes: of floating-point numbers that were multiplied.
    """

    def __init__(
        self,
        own: Callable[[], list[torch.Tensor]],
        shards: Callable[[], Iterable[torch.Tensor]],
    ) -> None:
        super().__init__(own)
        self._shards = shards
        self.runs: dict[str, tuple[bytes, bytes]] = {}
        self.at_once: list[str] = []
        self.dtypes: set[str] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        name = func.overloadpacket.__name__
        if name in _EMPTY and self.runs:
            # a buffer on its way to be filled must not seem to hold weights that were freed
            result.zero_()
        if name in _PRODUCTS:
            given = [a.dtype for a in args if isinstance(a, torch.Tensor)]
            self.dtypes |= {str(d).removeprefix("torch.") for d in given if d.is_floating_point}
            # of a rank that has once gathered too many no more is asked, since each time is
            # waited for
            if (
                self.runs
                and len(self.at_once) <= 2
                and len(names := self.gathered()) > len(self.at_once)
            ):
                wait_until(lambda: len(self.gathered()) <= 2)
                self.at_once = max(self.at_once, self.gathered(), names[:2], key=len)
        return result

    def gathered(self) -> list[str]:
        """Return the names of the weights that are in memory as a whole."""
        runs = [run for pair in self.runs.values() for run in pair]
        # a shard has one end of a weight, and so does not count; the memory that a shard is a
        # small part of does
        there = self.found(runs, apart_from=[one for one in self._shards() if _alone(one)])
        return [name for name, runs in self.runs.items() if there.issuperset(runs)]


def small_in_shards(sizes: list[int], wrapped: nn.Module) -> int:
    """Return how many small parameters are not held as a whole.

    Args:
        sizes: of the network's parameters, before it was wrapped.
        wrapped: what the answer has made of it.
    """
    small = Counter(size for size in sizes if size <= REPLICATED)
    return (small - Counter(p.numel() for p in wrapped.parameters())).total()


def _alone(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is all that its memory holds."""
    return tensor.untyped_storage().nbytes() == tensor.nbytes


def train_in_rank(
    answer: Callable[..., Any],
    architecture: str,
    dtype: str,
    compute: str,
    state: list[torch.Tensor],
    batches: list[list[torch.Tensor]],
    most: int,
) -> dict[str, Any]:
    """Wrap this rank's network with the answer, and train it; mark what it holds.

    ``most`` is how many bytes it may hold between calls.  Of a case in which it holds more, the
    first moment is marked and no other, since each would be waited for.
    """
    if architecture == WEIGHED:
        return _weighed(answer, most)
    own = getattr(torch, dtype)
    computed = getattr(torch, compute) if compute else None
    note = getattr(dist.group.WORLD, "mark", lambda text: None)
    counted = architecture == COUNTED and dist.get_world_size() > 1
    # the batches are the grader's, and buffers are not cut
    aside = [x for inputs in batches for x in inputs]
    wrapped: Any = None

    def not_counted() -> list[torch.Tensor]:
        there = [] if wrapped is None else [p.grad for p in wrapped.parameters() if p.is_leaf]
        return aside + [gradient for gradient in there if gradient is not None]

    def shards() -> Iterable[torch.Tensor]:
        return () if wrapped is None else wrapped.parameters()

    storages, over = _Layers(not_counted, shards), False

    def after(what: str) -> None:
        nonlocal over
        if not over:
            storages.settle(most)
            nbytes = storages.nbytes
            over = nbytes > most
            note(memory_mark(nbytes, f"after {what}", str(storages)))

    def whole(when: str) -> None:
        """Report the whole weights, and learn by which bytes they are known when gathered."""
        with storages:
            full = wrapped.full_state_dict()
        report[f"full_state_dict {when}"] = full
        if isinstance(full, Mapping):
            copies = {
                str(name): value.detach().clone() if isinstance(value, torch.Tensor) else value
                for name, value in full.items()
            }
            report[f"full_state_dict {when}"] = copies
            if counted:
                for name, value in copies.items():
                    if isinstance(value, torch.Tensor) and value.numel() > REPLICATED:
                        flat = value.to(computed or own).flatten()
                        first, last = flat[:_RUN].view(torch.uint8), flat[-_RUN:].view(torch.uint8)
                        storages.runs[name] = (first.numpy().tobytes(), last.numpy().tobytes())
        del full
        after("full_state_dict")

    module = build(architecture, own, state)
    aside += module.buffers()
    with storages:
        nn.utils.parameters_to_vector(module.parameters())  # an operation, so that they are seen
        wrapped = answer(module, computed) if computed else answer(module)
    report: dict[str, Any] = {"is an nn.Module": isinstance(wrapped, nn.Module)}
    if not isinstance(wrapped, nn.Module):
        return report
    kept = getattr(wrapped, "module", None)
    report["the wrapped model is .module"] = type(kept) is type(module)
    report[SMALL_IN_SHARDS] = small_in_shards([t.numel() for t in state], wrapped)
    del module, kept
    after("__init__")
    whole("after __init__")
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01, momentum=0.9)
    for number, inputs in enumerate(batches, 1):
        # both usual ways to clear gradients; the first time there is nothing to clear
        if number > 1:
            optimizer.zero_grad(set_to_none=number % 2 == 0)
        note(BEGIN)
        with storages:
            loss = loss_of(wrapped(*inputs), own)
        after(f"the forward of step {number}")
        with storages:
            loss.backward()  # type: ignore[no-untyped-call]
            wrapped.finish_gradient_synchronization()  # type: ignore[operator]
        note(END)
        report[f"loss of step {number}"] = loss.detach()
        del loss
        after(f"finish_gradient_synchronization of step {number}")
        report[f"parameters without a gradient in step {number}"] = sum(
            p.numel() > 0 and p.grad is None for p in wrapped.parameters()
        )
        optimizer.step()
        if counted or number == len(batches):
            whole(f"after step {number}")
    with torch.no_grad(), storages:
        report["output under no_grad"] = wrapped(*batches[0]).to(own)
    after("a forward under no_grad")
    report["computed in"] = ", ".join(sorted(storages.dtypes))
    note(f"gathers {len(storages.at_once)} at once: {', '.join(storages.at_once)}")
    return report


def _weighed(answer: Callable[..., Any], most: int) -> dict[str, Any]:
    """Wrap a network of large weights, and let the judge weigh this process when it is at rest."""
    group: Any = dist.group.WORLD
    return_freed_memory()
    module = ARCHITECTURES[WEIGHED]()
    names = list(module.state_dict())
    storages = HeldStorages(list)
    with storages, torch.no_grad():
        torch.nn.utils.vector_to_parameters(group.pause(), module.parameters())
        for parameter in module.parameters():
            parameter.data = parameter.data.clone()  # and no view of all of them
        wrapped = answer(module)
        del module, parameter
        wrapped(torch.ones(ROWS, 1280))
    storages.settle(most)
    group.mark(memory_mark(storages.nbytes, "after a forward under no_grad", str(storages)))
    places = group.pause()
    with storages:
        full = wrapped.full_state_dict()
    weights = torch.cat([full[name].detach().flatten() for name in names])
    return {"full_state_dict after __init__": weights[places]}


# The oracle, and what mistakes give. ------------------------------------------------

#: The gradients of all ranks for one parameter, to what rank r makes of them.
Combine = Callable[[list[torch.Tensor], int], torch.Tensor]


def mean(gradients: list[torch.Tensor], _: int) -> torch.Tensor:
    """Return the mean over all ranks."""
    return (torch.stack(gradients).double().sum(0) / len(gradients)).to(gradients[0].dtype)


def total(gradients: list[torch.Tensor], rank: int) -> torch.Tensor:
    """Return the sum instead of the mean."""
    return mean(gradients, rank) * len(gradients)


def alone(gradients: list[torch.Tensor], rank: int) -> torch.Tensor:
    """Return the rank's own gradient."""
    return gradients[rank]


def _computes_in(module: nn.Module, dtype: torch.dtype) -> None:
    """Let every layer compute in a dtype, with its parameters and its floating inputs cast."""
    for layer in module.modules():
        if next(layer.parameters(recurse=False), None) is not None:
            layer.forward = _cast(layer, layer.forward, dtype)


def _cast(layer: nn.Module, compute: Callable[..., Any], dtype: torch.dtype) -> Callable[..., Any]:
    def forward(*inputs: torch.Tensor) -> Any:
        own: Any = dict(layer._parameters)
        layer._parameters.update({name: p.to(dtype) for name, p in own.items() if p is not None})
        try:
            return compute(*(x.to(dtype) if x.is_floating_point() else x for x in inputs))
        finally:
            layer._parameters.update(own)

    return forward


def with_torch(
    c: Case,
    sharded: Combine = mean,
    replicated: Combine = mean,
    stale: bool = False,
    accumulates: bool = False,
) -> list[dict[str, Any]]:
    """Return every rank's report if the network is trained without shards.

    Args:
        c: the case.
        sharded, replicated: make each gradient of those of all ranks.
        stale: whether forward and backward always use the first weights that were gathered.
        accumulates: whether gradients are added to those of earlier steps.
    """
    if c.secrets:
        return [{"full_state_dict after __init__": c.shown.clone()} for _ in c.ranks]
    own = getattr(torch, c.dtype)
    modules = [build(c.architecture, own, c.state[0]) for _ in c.ranks]
    computing = [build(c.architecture, own, c.state[0]) for _ in c.ranks] if stale else modules
    if c.compute:
        for module in computing:
            _computes_in(module, getattr(torch, c.compute))
    reports: list[dict[str, Any]] = [
        {
            "is an nn.Module": True,
            "the wrapped model is .module": True,
            SMALL_IN_SHARDS: 0,
            "full_state_dict after __init__": _copied(module),
        }
        for module in modules
    ]
    with without_compiler():
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9) for m in modules]
        for step in range(STEPS):
            for r in c.ranks:
                if not accumulates:
                    computing[r].zero_grad()
                loss = loss_of(computing[r](*c.batches[r][step]), own)
                loss.backward()  # type: ignore[no-untyped-call]
                reports[r][f"loss of step {step + 1}"] = loss.detach()
                reports[r][f"parameters without a gradient in step {step + 1}"] = 0
            for column in zip(*(m.parameters() for m in computing), strict=True):
                gradients = [p.grad.clone() for p in column if p.grad is not None]
                combine = sharded if is_sharded(column[0]) else replicated
                for r, p in enumerate(column):
                    p.grad = combine(gradients, r)
            for r in c.ranks:
                for p, used in zip(modules[r].parameters(), computing[r].parameters(), strict=True):
                    p.grad = used.grad
                optimizers[r].step()
                if (
                    stale
                ):  # small parameters are never gathered, so they are always the present ones
                    with torch.no_grad():
                        for p, used in zip(
                            modules[r].parameters(), computing[r].parameters(), strict=True
                        ):
                            if not is_sharded(p):
                                used.copy_(p)
                if is_counted(c) or step + 1 == STEPS:
                    reports[r][f"full_state_dict after step {step + 1}"] = _copied(modules[r])
    with torch.no_grad():
        for r in c.ranks:
            reports[r]["output under no_grad"] = computing[r](*c.batches[r][0]).to(own)
            reports[r]["computed in"] = c.compute or c.dtype
    return reports


def _copied(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def sizes(c: Case) -> list[Any]:
    """Return the magnitudes that errors are relative to: 0 before the first step, then at least 1.

    Before the first step the weights are only moved: they must be rank 0's to the last bit.
    """

    def size(key: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.zeros_like(value) if key.endswith("__init__") else value.abs() + 1
        if isinstance(value, dict):
            return {name: size(key, entry) for name, entry in value.items()}
        return value

    return [{key: size(key, value) for key, value in one.items()} for one in with_torch(c)]


def roundings(c: Case) -> int:
    """Return an upper bound on the roundings of the report's own dtype in its numbers."""
    # one of bfloat16 is 65,536 of float32
    return 8 * 65_536 if c.compute else 1000


# Limits. ----------------------------------------------------------------------------


def is_sharded(tensor: torch.Tensor) -> bool:
    """Return whether a parameter has to be held as shards."""
    return tensor.numel() > REPLICATED


def is_counted(c: Case) -> bool:
    """Return whether gathered layers are counted."""
    return bool(c.architecture == COUNTED and c.n > 1)


def elements(c: Case) -> int:
    """Return P, the number of elements of all parameters."""
    return sum(tensor.numel() for tensor in c.state[0])


def most_held(c: Case) -> int:
    """Return the bytes of a shard of everything, with those that are granted."""
    each = -(-elements(c) // c.n) + GRANTED * len(c.state[0])
    return int(each * c.state[0][0].element_size())


def most_grown(c: Case) -> int:
    """Return the bytes of a shard of everything, with those of a process."""
    return most_held(c) + PROCESS


def most_gathered(c: Case) -> int:
    """Return the bytes of a rank's shards in two gathers of each layer."""
    shards = [-(-t.numel() // c.n) + GRANTED for t in c.state[0] if is_sharded(t)]
    return int(2 * sum(shards) * getattr(torch, c.compute or c.dtype).itemsize)


def most_reduced(c: Case) -> int:
    """Return the elements of the parameters that are replicated."""
    return sum(t.numel() for t in c.state[0] if not is_sharded(t))


def _in_steps(trace: Trace, kinds: Sequence[str]) -> Iterator[list[Operation]]:
    """Yield the calls of these kinds in each step of each rank."""
    for operations, marks in zip(trace.operations, trace.marks, strict=True):
        begins = [mark.time for mark in marks if mark.text == BEGIN]
        ends = [mark.time for mark in marks if mark.text == END]
        for begin, end in zip(begins, ends, strict=False):
            yield [op for op in operations if op.kind in kinds and begin <= op.posted <= end]


def gathered_bytes(trace: Any) -> int:
    """Return the most bytes that a rank gives to gathers in a step."""

    def nbytes(op: Operation) -> int:
        (dtype, *_) = [one.dtype for one in op.signatures] or ["float32"]
        return int(trace.given(op) * getattr(torch, dtype).itemsize)

    steps = _in_steps(trace, ("all_gather", "broadcast"))
    return max((sum(map(nbytes, calls)) for calls in steps), default=0)


def reduced_elements(trace: Any) -> int:
    """Return the most elements that a rank gives to all_reduce in a step."""
    steps = _in_steps(trace, ("all_reduce",))
    return max((sum(map(trace.given, calls)) for calls in steps), default=0)


def narrow_reductions(trace: Any) -> int:
    """Return the calls in steps by which ranks reduce numbers of bfloat16."""
    steps = _in_steps(trace, ("reduce_scatter", "all_reduce"))
    return sum(
        any(one.dtype == "bfloat16" for one in op.signatures) for calls in steps for op in calls
    )


_GATHERS = re.compile(r"gathers (\d+) at once: (.*)", re.S)


def _at_once(trace: Any) -> list[tuple[int, int, str]]:
    """Return how many layers each rank has gathered at once, with rank and names; most first."""
    found = [
        (int(match[1]), rank, match[2])
        for rank, marks in enumerate(trace.marks)
        for match in (_GATHERS.fullmatch(mark.text) for mark in marks)
        if match is not None
    ]
    return sorted(found, key=lambda one: -one[0])


two_layers = Limit(
    "layers that one rank has gathered at once",
    lambda trace: max((count for count, *_ in _at_once(trace)), default=0),
    "≤",
    lambda c: 2 if is_counted(c) else 0,
    Diagnosis.MEMORY_LIMIT,
    found=lambda trace: "".join(f", rank {r} {names}" for _, r, names in _at_once(trace)[:1]),
)

gathers = Limit(
    "bytes that one rank gives to gathers in a step",
    gathered_bytes,
    "≤",
    most_gathered,
    Diagnosis.TOO_MANY_BYTES,
)

reductions = Limit(
    "elements that one rank gives to all_reduce in a step",
    reduced_elements,
    "≤",
    most_reduced,
    Diagnosis.TOO_MANY_BYTES,
)

# in all cases with a dtype to compute in, that is bfloat16, and the parameters are float32
own_dtype = Limit(
    "reductions in bfloat16",
    narrow_reductions,
    "=",
    lambda c: 0,
    Diagnosis.WRONG_DTYPE,
    applies=lambda c: bool(c.compute),
)


# What an answer shows. --------------------------------------------------------------


def _only(e: Evidence, concerned: Callable[[Case], bool]) -> bool:
    """Return whether just the cases fail that are concerned, and others pass."""
    others = [one for one in e.passed if one.limit is None and not concerned(one.case)]
    return bool(others) and all(concerned(one.case) for one in e.failed)


def _reports(one: JudgedCase) -> list[Mapping[str, Any]]:
    return [report for report in one.actual if isinstance(report, Mapping)]


def _held(e: Evidence, shows: Callable[[Case, int, int, str], bool]) -> bool:
    """Return whether ``shows`` is true of every rank that holds too much between calls.

    It is told the case, the bytes after ``__init__``, and those that were too many, with the
    moment.  One rank alone is not asked: its shard is the whole.
    """
    found = []
    for one in e.failed:
        limit = one.limit
        if limit is None or one.case.n == 1 or not limit.quantity.startswith("bytes held"):
            continue
        for marks in one.trace.marks:
            texts = [re.match(r"holds (\d+) bytes after (.*?):", mark.text) for mark in marks]
            moments = [(int(match[1]), match[2]) for match in texts if match]
            found += [
                shows(one.case, moments[0][0], nbytes, moment)
                for nbytes, moment in moments
                if nbytes > limit.asked
            ]
    return e.diagnosis is Diagnosis.MEMORY_LIMIT and bool(found) and all(found)


def _whole_weights(c: Case, dtype: str) -> int:
    """Return the bytes of all weights that should be cut, in a dtype."""
    count = sum(t.numel() for t in c.state[0] if is_sharded(t))
    return int(count * getattr(torch, dtype).itemsize)


def _whole_at_first(c: Case, first: int, nbytes: int, moment: str) -> bool:
    return first >= _whole_weights(c, c.dtype)


def _more_after(call: str) -> Callable[[Case, int, int, str], bool]:
    """Return whether most of the weights have come after a call, in the dtype of a gather."""

    def shows(c: Case, first: int, nbytes: int, moment: str) -> bool:
        return call in moment and 2 * (nbytes - first) >= _whole_weights(c, c.compute or c.dtype)

    return shows


def _too_many_at_once(e: Evidence) -> bool:
    limit = e.here.limit
    return (
        e.diagnosis is Diagnosis.MEMORY_LIMIT and limit is not None and "at once" in limit.quantity
    )


def _bytes_of(e: Evidence, kind: str) -> bool:
    limit = e.here.limit
    return e.diagnosis is Diagnosis.TOO_MANY_BYTES and limit is not None and kind in limit.quantity


def _gathers_wide(e: Evidence) -> bool:
    """Return whether too many bytes are gathered in mixed precision only, in the wide dtype."""
    over = [one for one in e.failed if one.limit and "gathers" in one.limit.quantity]
    return _bytes_of(e, "gathers") and all(
        bool(one.case.compute)
        and any(
            sig.dtype == one.case.dtype
            for calls in _in_steps(one.trace, ("all_gather", "broadcast"))
            for op in calls
            for sig in op.signatures
        )
        for one in over
    )


def _fails_unless_n_divides(e: Evidence) -> bool:
    """Return whether runs break off where n does not divide the weights, and there only."""

    def divides(c: Case) -> bool:
        return all(t.numel() % c.n == 0 for t in c.state[0] if is_sharded(t))

    values = [one for one in e.judged if one.limit is None and one.case.n > 1]
    return (
        e.diagnosis
        in (
            Diagnosis.EXCEPTION,
            Diagnosis.SIZE_MISMATCH,
            Diagnosis.CRASHED,
            Diagnosis.WRONG_SHAPE,
            Diagnosis.WRONG_VALUE,
        )
        and any(one.passed for one in values)
        and all(divides(one.case) == one.passed for one in values)
    )


def _computed_elsewhere(e: Evidence) -> bool:
    return bool(e.case.compute) and any(
        report.get("computed in") not in (None, e.case.compute) for report in _reports(e.here)
    )


def _first_weights(report: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return rank 0's weights of a report, without the buffers, which every rank has."""
    state = report["full_state_dict after __init__"]
    if isinstance(state, torch.Tensor):  # of the weighed network, some weights
        return {WEIGHED: state}
    return {name: value for name, value in state.items() if name not in BUFFERS}


FullySharded = Exercise(
    signature="FullySharded(module: nn.Module, compute_dtype: torch.dtype or None = None)",
    summary="ZeRO-3: parameters in shards, which are gathered for one layer at a time",
    inputs=training,
    adapter=train_in_rank,
    values=Values(with_torch, reduced=roundings, magnitude=sizes),
    traffic=TrafficRules(
        limits=(
            point(held("bytes held by one rank between calls", "≤", most_held)),
            point(grown("≤", most_grown)),
            point(two_layers),
            point(own_dtype),
            gathers,
            reductions,
        ),
        least=lambda c, expected: moved(c, [_first_weights(report) for report in expected]),
        allowed=frozenset({"all_gather", "reduce_scatter", "all_reduce", "broadcast"}),
    ),
    points=3.0,
    mistakes=(
        Mistake(
            "FullySharded is an nn.Module: class FullySharded(nn.Module), with super().__init__()"
            " first, and the wrapped module as its attribute module.",
            when=lambda e: any(
                report.get("is an nn.Module") is False
                or report.get("the wrapped model is .module") is False
                for report in _reports(e.here)
            ),
        ),
        Mistake(
            "The wrapped model is a layer itself here: it has no submodules, and its parameters are"
            " called 'weight' and 'bias', without a dot. Does the quoted line expect more?",
            when=lambda e: (
                e.diagnosis is Diagnosis.EXCEPTION
                and _only(e, lambda c: bool(c.architecture == ALONE))
            ),
        ),
        Mistake(
            "It works unless the wrapped model is a layer itself, such as one nn.Linear."
            " module.modules() begins with the module; its children and submodules leave it out.",
            when=lambda e: _only(e, lambda c: bool(c.architecture == ALONE)),
        ),
        Mistake(
            "full_state_dict leaves out the buffers. self.module.state_dict() has them, beside the"
            " parameters.",
            when=lambda e: any(
                isinstance(state, Mapping)
                and state
                and "buffers" in e.case.architecture
                and not any(str(name).endswith(tuple(BUFFERS)) for name in state)
                for report in _reports(e.here)
                for state in [report["full_state_dict after __init__"]]
            ),
        ),
        Mistake(
            "A small parameter is cut as well. Only parameters of more than 128 elements are held"
            " as shards: p.numel() > 128.",
            when=lambda e: any(report.get(SMALL_IN_SHARDS) for report in _reports(e.here)),
        ),
        Mistake(
            "The gradients are added up in compute_dtype. In bfloat16 a sum keeps 8 bits, and each"
            " addition rounds: cast the gradient to the parameter's own dtype before it is"
            " reduced, not after.",
            when=lambda e: bool(e.here.limit and "reductions" in e.here.limit.quantity),
        ),
        Mistake(
            "full_state_dict returns the weights in compute_dtype. Shards stay in the parameters'"
            " own dtype, and full_state_dict gathers them as they are; only a gather for forward or"
            " backward casts.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_DTYPE and bool(e.case.compute) and not e.here.limit
            ),
        ),
        Mistake(
            "compute_dtype is not what the layers compute in: cast their weights, gathered or"
            " replicated, and their floating inputs.",
            when=_computed_elsewhere,
        ),
        Mistake(
            "It works where n divides the number of weights, and only there. Pad the flattened"
            " parameter with zeros before it is cut, and after a gather cut the padding off the"
            " same end.",
            when=_fails_unless_n_divides,
        ),
        Mistake(
            "After __init__ whole weights are still there. A shard that is a view keeps the memory"
            " of all of them: make it a copy, with clone(), and let no attribute keep the old"
            " parameters.",
            when=lambda e: _held(e, _whole_at_first),
        ),
        Mistake(
            "After forward the gathered weights are still there: the layer has kept them, or"
            " autograd has. It saves weights for backward, often as a view, such as weight.t() in"
            " nn.Linear. Either let torch.autograd.graph.saved_tensors_hooks save something else in"
            " their place, or free the memory under them with untyped_storage().resize_(0).",
            when=lambda e: _held(e, _more_after("forward")),
        ),
        Mistake(
            "After the step gathered weights are still there. Free a layer's as soon as backward"
            " has its gradient.",
            when=lambda e: _held(e, _more_after("finish_gradient")),
        ),
        Mistake(
            "A rank has the whole weights of more than two layers at once. Gather a layer just"
            " before its own forward, and again just before its own backward, and free it as soon"
            " as it has computed.",
            when=_too_many_at_once,
        ),
        Mistake(
            "In mixed precision the weights travel in their own dtype, in twice as many bytes."
            " Cast the shard before it is gathered.",
            when=_gathers_wide,
        ),
        Mistake(
            "A layer is gathered more than twice in a step. Autograd may ask for a saved weight"
            " several times in one backward: keep it until its gradient is there.",
            when=lambda e: _bytes_of(e, "gathers"),
        ),
        Mistake(
            "The gradients of sharded parameters are all-reduced. A rank needs no more of them"
            " than its shard: dist.reduce_scatter_tensor gives it just that, for half the bytes.",
            when=lambda e: _bytes_of(e, "all_reduce"),
        ),
    ),
)
