"""Tells the judge after each step of an optimizer what this rank's replicas hold.

Which tensors are replicas of one another is never guessed.  They are the parameters of a module in
``DistributedDataParallel``, DTensors that are placed as replicas, and parameters whose gradients
the script itself reduces: those are replicas whose gradients have met in one ``all_reduce``.  What
is sharded, or each rank's own, as an expert, is none of these, and nothing is said of it.

Only hashes leave the rank, outside of the script's groups, so the check cannot hang.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import weakref
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from headcount.core.events import Replicas, ReplicaStage, ReplicaValue, Same, SameValue
from headcount.core.source_locations import NAME, line_here
from headcount.core.values import short
from headcount.rank.recorder import Recorder
from headcount.rank.same import digest

__all__ = ["ReplicaWatch"]


#: Where torch keeps communication hooks that make gradients the same on all ranks.  Another may
#: keep them apart on purpose, as torch's for local SGD does.
_REDUCING = tuple(
    f"torch.distributed.algorithms.ddp_comm_hooks.{name}"
    for name in ("default_hooks", "mixed_precision_hooks", "powerSGD_hook", "quantization_hooks")
)


class _Replica(NamedTuple):
    """A parameter of which other ranks hold replicas: which ranks, by which key, and its name."""

    members: tuple[int, ...]
    key: str
    name: str


@dataclass
class _Followed:
    """An optimizer whose steps are followed; its parameters are known by their ``id``.

    Attributes:
        names: the names of its parameters.
        wrapped: the ranks of those that DistributedDataParallel keeps alike.
        modules: the modules in DistributedDataParallel.
        met: those whose gradients have met others in a call of the script's.
        number: how many optimizers with replicas have made a step before its first; −1 as long as
            it has none.
        step: how many steps it has made.
    """

    names: dict[int, str]
    wrapped: dict[int, tuple[int, ...]]
    modules: list[DistributedDataParallel]
    met: dict[int, _Replica] = field(default_factory=dict)
    number: int = -1
    step: int = 0


#: Who has reduced a part of a memory, and in which call.
_Reduced = tuple[tuple[int, ...], str]

#: Memories that are kept between two steps before it is looked which are no more: a script may
#: never make a step.
_FULL = 1024


class ReplicaWatch:
    """Follows the optimizers of a rank, and reports what its replicas hold.

    Args:
        recorder: reports it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        #: by memory, with a reference that keeps its number from being given to another
        self._reduced: dict[int, tuple[StorageWeakRef, dict[tuple[int, int], _Reduced]]] = {}
        self._full = _FULL
        #: by group, how often it has called all_reduce: in all, and since the last step
        self._calls = Counter[str]()
        self._since = Counter[tuple[int, ...]]()
        self._followed = weakref.WeakKeyDictionary[torch.optim.Optimizer, _Followed]()
        self._numbers = itertools.count()
        self._hooked = weakref.WeakSet[DistributedDataParallel]()
        DistributedDataParallel.register_comm_hook = self._noting_hooks()  # type: ignore[method-assign]
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    def _noting_hooks(self) -> Any:
        """Return what registers communication hooks, and notes whose may keep ranks apart."""
        register, hooked = DistributedDataParallel.register_comm_hook, self._hooked

        @functools.wraps(register)
        def noted(module: DistributedDataParallel, state: object, hook: Any) -> None:
            if getattr(hook, "__module__", "") not in _REDUCING:
                hooked.add(module)
            register(module, state, hook)

        return noted

    def met(
        self, kind: str, group: str, members: Sequence[int], tensors: Sequence[torch.Tensor]
    ) -> None:
        """Note a collective, in which tensors of all ranks of a group meet."""
        if kind == "all_reduce":
            self.reduced(group, members, tensors)
        elif kind == "all_gather" and (names := _gathered_by_fsdp()):
            file, line, _ = line_here()
            told = [SameValue("", zlib.crc32(names.encode()), short(names))]
            self._recorder.emit(Same(list(members), "what FSDP gathers", told, file, line), False)

    def reduced(self, group: str, members: Sequence[int], tensors: Sequence[torch.Tensor]) -> None:
        """Note an all-reduce of these tensors; the group's calls are in one order on all ranks."""
        ranks = tuple(members)
        self._since[ranks] += 1
        self._calls[group] += 1
        for place, tensor in enumerate(tensors):
            memory = _memory_of(tensor)
            first = _first_byte(tensor)
            call = f"{group} {self._calls[group]} {place}"
            parts = self._reduced.setdefault(memory.cdata, (memory, {}))[1]
            parts[first, first + tensor.nbytes] = ranks, call
        if len(self._reduced) > self._full:
            left = {at: one for at, one in self._reduced.items() if not one[0].expired()}  # type: ignore[no-untyped-call]
            self._reduced, self._full = left, max(_FULL, 2 * len(left))

    def _before(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """Report what an optimizer's parameters hold before its first step."""
        if optimizer not in self._followed:
            self._followed[optimizer] = _look_at_modules(optimizer, self._hooked)
        followed = self._followed[optimizer]
        if followed.number < 0 and (found := list(self._replicas(optimizer))):
            # one of this rank alone has no number, which other ranks would not have given; and
            # gradients may meet only after some steps that each rank makes by itself
            followed.number = next(self._numbers)
            self._report(optimizer, ReplicaStage.BEGIN, found)

    def _after(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """Report what a step has made of gradients, parameters, state and buffers."""
        followed = self._followed[optimizer]
        followed.step += 1
        if followed.number >= 0:
            found = list(self._replicas(optimizer))
            gradients, state = [], []
            for parameter, replica in found:
                if parameter.grad is not None or id(parameter) in followed.wrapped:
                    gradients.append((parameter.grad, replica))
                # state that differs makes the next step another one, so it may be looked at rarely
                held = optimizer.state.get(parameter, {}) if followed.step.bit_count() == 1 else {}
                for key, value in sorted(held.items(), key=lambda item: str(item[0])):
                    if isinstance(value, torch.Tensor):
                        name = f"{key} of {replica.name}"
                        state.append(
                            (value, _Replica(replica.members, f"{replica.key} {key}", name))
                        )
            self._report(optimizer, ReplicaStage.GRADIENT, gradients)
            self._report(optimizer, ReplicaStage.PARAMETER, found)
            self._report(optimizer, ReplicaStage.STATE, state)
            self._report(optimizer, ReplicaStage.BUFFER, _buffers(followed.modules))
        self._reduced.clear()
        self._since.clear()

    def _replicas(self, optimizer: torch.optim.Optimizer) -> Iterator[tuple[Any, _Replica]]:
        """Yield the parameters that have replicas; a DTensor once for each side of its mesh."""
        followed, seen = self._followed[optimizer], Counter[str]()
        parameters = (one for group in optimizer.param_groups for one in group["params"])
        for index, parameter in enumerate(parameters):
            name = followed.names.get(id(parameter), f"parameter {index}")
            seen[name] += 1
            key = f"{name} {seen[name]}"
            if _is_dtensor(parameter):
                for members in _replicated_over(parameter):
                    yield parameter, _Replica(members, key, name)
            elif id(parameter) in followed.wrapped:
                yield parameter, _Replica(followed.wrapped[id(parameter)], key, name)
            else:
                if id(parameter) not in followed.met and (met := self._meeting(parameter, name)):
                    followed.met[id(parameter)] = met
                if id(parameter) in followed.met:
                    yield parameter, followed.met[id(parameter)]

    def _meeting(self, parameter: torch.Tensor, name: str) -> _Replica | None:
        """Return where a parameter's gradient has met others since the last step, if it has."""
        gradient = parameter.grad
        if gradient is None or gradient.layout is not torch.strided:
            return None
        first = _first_byte(gradient)
        _, parts = self._reduced.get(_memory_of(gradient).cdata, (None, {}))
        for (begin, end), (members, call) in parts.items():
            if begin <= first and first + gradient.nbytes <= end and len(members) > 1:
                return _Replica(members, f"{call} {first - begin}", name)
        return None

    def _report(
        self, optimizer: torch.optim.Optimizer, stage: ReplicaStage, values: Iterable[Any]
    ) -> None:
        groups: dict[tuple[int, ...], int] = {}
        told = []
        for tensor, replica in values:
            if len(replica.members) > 1 and (hashed := _hashed(tensor)) is not None:
                place = groups.setdefault(replica.members, len(groups))
                told.append(ReplicaValue(place, replica.key[:NAME], replica.name[:NAME], *hashed))
        followed, (file, line, _) = self._followed[optimizer], line_here()
        event = Replicas(
            type(optimizer).__name__[:NAME], followed.number, followed.step, stage,
            list(map(list, groups)), [self._since[one] for one in groups], told, file, line,
        )  # fmt: skip
        self._recorder.emit(event, False)


def _gathered_by_fsdp() -> str:
    """Return the names of the parameters of which FSDP's ``fully_shard`` gathers the shards now.

    Shards of layers of one shape meet without an error, if ranks prefetch in another order.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "foreach_all_gather":
        frame = frame.f_back
    if frame is None or "fsdp" not in frame.f_code.co_filename:
        return ""
    names = [getattr(one, "_param_fqn", None) for one in frame.f_locals.get("fsdp_params", ())]
    return ", ".join(map(str, names)) if all(names) else ""


def _memory_of(tensor: torch.Tensor) -> StorageWeakRef:
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def _first_byte(tensor: torch.Tensor) -> int:
    return int(tensor.storage_offset()) * tensor.element_size()


def _look_at_modules(
    optimizer: torch.optim.Optimizer, hooked: Container[torch.nn.Module]
) -> _Followed:
    """Find the modules that an optimizer's parameters belong to, and what they are called there.

    Those with ``hooked`` modules in DistributedDataParallel count as each rank's own.
    """
    wanted = {id(one) for group in optimizer.param_groups for one in group["params"]}
    found = _Followed({}, {}, [])
    # by their types: asking an object for its class may run code of the script's
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    inner = {id(child) for module in modules for child in module.children()}
    for module in modules:
        wrapper = module if issubclass(type(module), DistributedDataParallel) else None
        if id(module) in inner and wrapper is None:
            continue
        mine = [
            (name, id(one))
            for name, one in (wrapper.module if wrapper else module).named_parameters()
            if id(one) in wanted
        ]
        for name, one in mine:
            found.names.setdefault(one, name)
        if wrapper is not None and mine and wrapper not in hooked:
            members = tuple(dist.get_process_group_ranks(wrapper.process_group))
            ignored = wrapper.parameters_to_ignore
            found.wrapped |= {one: members for name, one in mine if name not in ignored}
            found.modules.append(wrapper)
    return found


def _buffers(
    modules: Sequence[DistributedDataParallel],
) -> Iterator[tuple[torch.Tensor, _Replica]]:
    """Yield the buffers of modules, which lie in memory in another order on each rank."""
    seen = Counter[str]()
    for module in sorted(modules, key=lambda one: [name for name, _ in one.named_buffers()]):
        members = tuple(dist.get_process_group_ranks(module.process_group))
        for name, buffer in module.module.named_buffers():
            seen[name] += 1
            yield buffer, _Replica(members, f"{name} {seen[name]}", name)


def _is_dtensor(tensor: Any) -> bool:
    """Return whether a tensor is a DTensor; whoever has one has imported its module, a slow one."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def _replicated_over(parameter: Any) -> Iterator[tuple[int, ...]]:
    """Yield the ranks along each side of its mesh on which a DTensor has replicas."""
    for side, placement in enumerate(parameter.placements):
        if placement.is_replicate():
            group = parameter.device_mesh.get_group(side)
            yield tuple(dist.get_process_group_ranks(group))


def _hashed(tensor: Any) -> tuple[int, float] | None:
    """Return a tensor's hash and its norm; None for one that is not compared.

    A missing gradient is a value as well.
    """
    if tensor is None:
        return 0, -1.0
    if _is_dtensor(tensor):
        if any(one.is_partial() for one in tensor.placements):
            return None
        tensor = tensor.to_local()
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        return None
    norm = 0.0
    if tensor.is_floating_point() and tensor.numel():
        norm = float(torch.linalg.vector_norm(tensor.detach().float()))
    return digest(tensor), norm if norm < float("inf") else float("inf")
