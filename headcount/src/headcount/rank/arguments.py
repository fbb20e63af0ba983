"""Checks of what a call names and gives, before anything is posted.

Torch checks some ranks, roots, tags and groups in some calls, each in words of its own.  Others
reach the transport, which may take rank −1 for the last one, or raise on one rank and leave the
others waiting.  Here every call is checked in the same way.

MPI calls the number and type of elements of a call its *type signature*, and requires (MPI 4.1,
chapter 6) that what rank i gives to rank j is what rank j takes from rank i.  That one rule
covers every collective: in a broadcast only the root gives, in a gather only the root takes, in
a reduction each rank gives every other as many elements as it takes, and an all-to-all has a
number of its own for each pair.  Nothing else is required of ranks: the lists of a rooted
collective count on its root only, and blocks may differ in length wherever both ends know it.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import torch
from torch.distributed import c10d_logger
from torch.distributed import distributed_c10d as c10d

from headcount.core.events import Signature
from headcount.core.source_locations import is_students
from headcount.core.values import describe, dtype_name, reduction_name, tensors_in
from headcount.core.verdict import counted

__all__ = [
    "COLLECTIVES",
    "GroupIsSetUp",
    "LARGEST_TAG",
    "NoSuchRank",
    "NotContiguous",
    "ONE_BY_ONE",
    "OTHER_NAME",
    "PeerIsSelf",
    "REFUSALS",
    "REFUSED",
    "SAME_SIZE",
    "called",
    "checks",
    "default_group_stays",
    "destroyed_text",
    "require_members",
    "require_message",
    "require_peer",
    "require_rank",
    "CallSite",
    "own_tensors",
    "require_tag",
    "require_tensor",
    "require_tensors",
    "running_call",
    "shared_outputs",
    "signatures",
]


# Ranks, roots, tags and groups that a call names. ----------------------------------
#
# These faults have classes of their own, by whose names a hint knows them.


class NoSuchRank(ValueError):
    """A call names a rank that its group does not have."""


class NotContiguous(ValueError):
    """A tensor that is sent is not contiguous in memory."""


class PeerIsSelf(ValueError):
    """A rank sends to itself, or receives from itself."""


class TensorAsRank(TypeError):
    """A tensor stands in the place of a rank."""


class NoTensorToFill(TypeError):
    """A receive is given a number, and no tensor."""


class GroupIsSetUp(RuntimeError):
    """The default group is set up, or ended, by the exercise itself."""


#: All of them.
REFUSALS = (NoSuchRank, NotContiguous, PeerIsSelf, TensorAsRank, NoTensorToFill, GroupIsSetUp)

_CPU = torch.device("cpu")

#: The largest tag; gloo and MPI store tags in a C ``int``.
LARGEST_TAG = 2**31 - 1


def require_rank(rank: Any, size: int) -> None:
    """Check that a group of ``size`` ranks has a rank.

    Raises:
        TypeError: the rank is not a whole number.
        NoSuchRank: there is no such rank.
    """
    try:
        number = operator.index(rank)
    except TypeError:
        if isinstance(rank, torch.Tensor) and rank.numel() != 1:
            message = f"{called()} takes a tensor first, and then a rank"
            raise TensorAsRank(message) from None
        what = f"{type(rank).__name__} {rank!r}"
        message = f"a rank is a whole number, not the {what}; // divides whole numbers"
        raise TypeError(message) from None
    if not 0 <= number < size:
        raise NoSuchRank(
            f"there is no rank {rank} in a group of {size}; its ranks are 0 to {size - 1}"
        )


def require_peer(peer: Any, own: int, size: int) -> None:
    """Check that rank ``own`` of a group can exchange messages with ``peer``.

    Raises:
        TypeError: the peer is not a whole number.
        NoSuchRank: there is no such rank.
        PeerIsSelf: it is the rank itself, to which gloo has no connection.
    """
    require_rank(peer, size)
    if peer == own:
        raise PeerIsSelf(_to_itself(peer))


def _to_itself(rank: int) -> str:
    return f"rank {rank} cannot talk to itself: the peer is the same as the rank that calls"


def require_tag(tag: Any) -> None:
    """Check that a message can have a tag.

    Raises:
        TypeError: the tag is not a whole number.
        ValueError: it is negative, or too large.
    """
    try:
        number = operator.index(tag)
    except TypeError:
        message = f"a tag is a whole number, not the {type(tag).__name__} {tag!r}"
        raise TypeError(message) from None
    if not 0 <= number <= LARGEST_TAG:
        raise ValueError(f"there is no tag {tag}; tags are 0 to {LARGEST_TAG}")


def require_message(tensor: torch.Tensor, what: str, device: torch.device = _CPU) -> None:
    """Check that a transport can take the tensor of a message.

    Raises:
        ValueError: it is not a dense tensor on the device.
        NotContiguous: it is not contiguous.
    """
    _require_dense(tensor, what, device)
    if not tensor.is_contiguous():
        raise NotContiguous(f"{what} needs a contiguous tensor; call .contiguous() first")


def _require_dense(tensor: torch.Tensor, what: str, device: torch.device = _CPU) -> None:
    strided = tensor.layout is torch.strided
    if not strided or tensor.device != device:
        where = "CPU" if device.type == "cpu" else device
        given = f"one on {tensor.device}" if strided else "a sparse one"
        raise RuntimeError(f"{what} needs a dense {where} tensor here, not {given}")


# What gloo's collectives take.  Some of the rest it refuses only after the call has been reported,
# in words on its own source; of some it takes other elements, and some end the process.

#: The dtypes of gloo's collectives; torch passes most complex numbers as pairs of real ones.
_TAKEN = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64),
    *(torch.int8, torch.uint8, torch.bool),
)

#: Methods that combine and move elements in the order in which they lie in memory.
_IN_MEMORY = frozenset(
    ("broadcast", "allreduce", "allreduce_coalesced", "reduce", "scatter", "all_to_all_single")
)

_REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def _require_gloo_tensor(tensor: torch.Tensor, kind: str, in_memory: bool) -> None:
    """Check that a collective of gloo can take a tensor, perhaps in the order of its memory.

    Raises:
        ValueError: it cannot.
        NotContiguous: it would take elements that are not the tensor's.
    """
    _require_dense(tensor, kind)
    taken_as_pairs = tensor.is_complex() and kind in ("reduce", "reduce_scatter")
    if tensor.dtype not in _TAKEN and not taken_as_pairs:
        known = ", ".join(map(dtype_name, _TAKEN))
        raise RuntimeError(f"{kind} takes {known}, as gloo does; not {dtype_name(tensor.dtype)}")
    if in_memory and not tensor.is_contiguous():
        # a transposed matrix is in another order, which is one all the same
        expected = 1
        for stride, size in sorted(zip(tensor.stride(), tensor.size(), strict=True)):
            if size > 1 and stride != expected:
                raise NotContiguous(f"{kind} needs a contiguous tensor; call .contiguous() first")
            expected *= size


def _require_reduction(op: Any, dtype: torch.dtype) -> None:
    """Raise ``ValueError`` unless gloo has a reduction for a dtype."""
    name, real = reduction_name(op), dtype.is_floating_point or dtype.is_complex
    given = dtype_name(dtype)
    if name not in _REDUCTIONS:
        raise RuntimeError(f"there is no reduction {name} here; there are {', '.join(_REDUCTIONS)}")
    if name == "AVG" and not real:
        raise RuntimeError(f"AVG is for floating-point numbers, not {given}; use SUM and divide")
    if name in ("BAND", "BOR", "BXOR") and real:
        raise RuntimeError(f"{name} is for integers and bool, not {given}")
    if dtype.is_complex and name not in ("SUM", "AVG"):
        raise RuntimeError(f"{name} is for real numbers, not {given}")


def require_splits(what: str, splits: Any) -> list[int]:
    """Return split sizes as a list of whole numbers; an empty one, or ``None``, is an empty list.

    Args:
        what: whose split sizes they are, in the message.
        splits: what the caller gave.

    Raises:
        TypeError: they are a tensor, which torch does not take either.
    """
    if isinstance(splits, torch.Tensor):
        raise TypeError(
            f"the split sizes of {what} are a tensor; they have to be a list of whole numbers,"
            " as tolist() makes of it"
        )
    return [operator.index(split) for split in splits or ()]


def require_members(ranks: Iterable[Any], size: int) -> None:
    """Check that a world of ``size`` ranks can make a group of these ranks.

    Raises:
        TypeError: a rank is not a whole number.
        ValueError: a rank does not exist or is named twice, or the list is empty.
    """
    members = list(ranks)
    if not members:
        raise ValueError("new_group needs at least one rank, and its list is empty")
    for rank in members:
        try:
            require_rank(rank, size)
        except (TypeError, ValueError) as error:
            raise type(error)(f"new_group({members}): {error}") from None
    if len(set(members)) != len(members):
        raise ValueError(f"new_group({members}): a rank can be in a group only once")


def called() -> str:
    """Return the function of ``torch.distributed`` that the program has called."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and not is_students(frame.f_code.co_filename):
        if frame.f_code.co_filename == c10d.__file__:
            name = frame.f_code.co_name
        frame = frame.f_back
    return name


def require_tensor(value: Any, parameter: str) -> None:
    """Check that torch is given a tensor.

    Args:
        value: what it is given.
        parameter: the name of the parameter of torch's function.

    Raises:
        TypeError: it is no tensor.
    """
    if isinstance(value, torch.Tensor):
        return
    mend = ""
    if parameter.startswith("output"):
        mend = "; torch.empty makes one to be written into"
    elif isinstance(value, (list, tuple)) and value:
        of_tensors = all(isinstance(one, torch.Tensor) for one in value)
        mend = f"; torch.{'stack' if of_tensors else 'tensor'} makes one of it"
    elif isinstance(value, (bool, int, float)):
        mend = f"; torch.tensor([{value}]) holds it"
    place = "" if parameter == "tensor" else f" as {parameter}"
    if called() in ("recv", "irecv"):
        raise NoTensorToFill(f"{called()} takes a tensor{place} to fill, not {describe(value)}")
    raise TypeError(f"{called()} takes a tensor{place}, not {describe(value)}{mend}")


def require_tensors(value: Any, parameter: str) -> None:
    """Check that torch is given a list of tensors.

    Args:
        value, parameter: as of :func:`require_tensor`.

    Raises:
        TypeError: it is no list, or an element of it is no tensor.
    """
    if not isinstance(value, list):
        mend = ""
        if isinstance(value, torch.Tensor) and value.dim() > 0:
            mend = "; list(x) makes a list of the rows of x, which share its memory"
        elif isinstance(value, tuple):
            mend = "; list(x) makes one of it"
        raise TypeError(
            f"{called()} takes a list of tensors as {parameter}, not {describe(value)}{mend}"
        )
    for place, one in enumerate(value):
        if not isinstance(one, torch.Tensor):
            raise TypeError(
                f"{called()} takes a list of tensors as {parameter}, and element {place} of it is"
                f" {describe(one)}"
            )


def _ranks(members: Sequence[int]) -> str:
    *most, last = map(str, members)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last} alone"


def destroyed_text(members: Sequence[int], line: int) -> str:
    """Return the message for a call on a group that the rank has destroyed."""
    return (
        f"the group of {_ranks(members)} is no more: this rank has called"
        f" destroy_process_group on it at line {line}"
    )


def default_group_stays(name: str) -> str:
    """Return the message for a call of ``init_process_group`` or ``destroy_process_group``."""
    if name == "init_process_group":
        return (
            "init_process_group is not for the function to call: the process group is already"
            " set up when your function starts; leave the call out"
        )
    return (
        f"{name}() is not for the function to call: it would end the default group, which is"
        " used again after your function; leave the call out, or name a group of your own,"
        f" as in {name}(group)"
    )


def checks(outside: Callable[[str], None]) -> dict[str, Callable[..., Any]]:
    """Return replacements for the checks of ``torch.distributed.distributed_c10d``, by name.

    Args:
        outside: called with the name of a function that a rank calls on a group it is not in.
    """
    canonicalize = c10d._canonicalize_group_rank
    non_member = c10d.GroupMember.NON_GROUP_MEMBER

    def _canonicalize_group_rank(
        group: Any,
        global_rank: Any = None,
        group_rank: Any = None,
        return_global: bool = False,
    ) -> Any:
        if group == non_member:
            return -1  # torch warns of that, and does nothing
        rank = global_rank if group_rank is None else group_rank
        if rank is None or (global_rank is not None and group_rank is not None):
            return canonicalize(group, global_rank, group_rank, return_global)
        whole = group is c10d.GroupMember.WORLD
        if whole or group_rank is not None:
            require_rank(rank, group.size())
        if whole:
            return rank
        places = c10d._world.pg_group_ranks.get(group)
        if places is None:
            return canonicalize(group, global_rank, group_rank, return_global)
        if group_rank is None and global_rank not in places:
            raise ValueError(f"rank {global_rank} is not in this group of {_ranks(list(places))}")
        return canonicalize(group, global_rank, group_rank, return_global)

    def _check_not_self_rank(group: Any, rank: int, _: str) -> None:
        if group != non_member and group.rank() == rank:
            raise PeerIsSelf(_to_itself(c10d.get_global_rank(group, rank)))

    def _check_single_tensor(value: Any, parameter: str) -> None:
        require_tensor(value, parameter)
        caller = sys._getframe(1)
        rooted = {"scatter": "scatter_list", "gather": "gather_list"}.get(caller.f_code.co_name)
        # torch asks next whether the list is empty, which fails for a tensor in words of its own
        if rooted and isinstance(given := caller.f_locals.get(rooted), torch.Tensor):
            require_tensors(given, rooted)

    return {
        "_canonicalize_group_rank": _canonicalize_group_rank,
        "_check_not_self_rank": _check_not_self_rank,
        "_check_single_tensor": _check_single_tensor,
        "_check_tensor_list": require_tensors,
        "_warn_not_in_group": outside,
    }


# The methods of a process group, by all names in torch 2.11 to 2.15. --------------
#
# 2.13 renamed ``_allgather_base`` and its like to ``all_gather_single`` and kept both.

#: Every collective method of a process group, with the name by which an exercise allows it.
#: Names on one line are the old and the new name of one method.
COLLECTIVES: dict[str, str] = {
    "broadcast": "broadcast",
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "reduce": "reduce",
    "allgather": "all_gather",
    "allgather_coalesced": "all_gather",
    **dict.fromkeys(("_allgather_base", "all_gather_single"), "all_gather"),
    **dict.fromkeys(
        ("allgather_into_tensor_coalesced", "all_gather_single_coalesced"), "all_gather"
    ),
    "gather": "gather",
    **dict.fromkeys(("gather_into_tensor", "gather_single"), "gather"),
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    **dict.fromkeys(("_reduce_scatter_base", "reduce_scatter_single"), "reduce_scatter"),
    **dict.fromkeys(
        ("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"), "reduce_scatter"
    ),
    "alltoall": "all_to_all",
    **dict.fromkeys(("alltoall_base", "all_to_all_single"), "all_to_all"),
    "barrier": "barrier",
}

#: The name of a method in other versions of torch.
OTHER_NAME = {
    "_allgather_base": "all_gather_single",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "gather_into_tensor": "gather_single",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall_base": "all_to_all_single",
}
OTHER_NAME |= {new: old for old, new in OTHER_NAME.items()}

#: Methods that gloo lacks, with the method to call instead for every pair of tensors.
ONE_BY_ONE = {
    **dict.fromkeys(
        ("allgather_into_tensor_coalesced", "all_gather_single_coalesced"), "_allgather_base"
    ),
    **dict.fromkeys(
        ("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"),
        "_reduce_scatter_base",
    ),
}

#: Methods that would make a group that is not recorded.
REFUSED = ("split_group", "merge_remote_group", "new_window", "reconfigure")

#: Collectives whose first tensor has the same size on all ranks.
SAME_SIZE = frozenset({"broadcast", "all_reduce", "reduce"})


# Signatures. ----------------------------------------------------------------------


def _shape(tensor: torch.Tensor) -> str:
    return f"shape {tuple(tensor.shape)}"


def _per_member(numbers: Sequence[int]) -> list[int]:
    """Return one number for each member, or a single one if all are the same."""
    return [numbers[0]] if len(set(numbers)) == 1 else list(numbers)


class _SignatureReader:
    """Reads the signatures of one call off its arguments.

    Args:
        kind: the collective's name, for messages.
        rank: the calling rank, for messages.
        place: its rank in the group.
        size: number of members of the group.
        root: the root's rank in the group, or −1.
        even: whether the transport needs all tensors of a call to have one shape, as gloo does.
    """

    def __init__(self, kind: str, rank: int, place: int, size: int, root: int, even: bool) -> None:
        self.kind, self.rank, self.place, self.size = kind, rank, place, size
        self.is_root, self.even = place == root, even

    def signature(
        self, tensors: Sequence[torch.Tensor], gives: Sequence[int], takes: Sequence[int]
    ) -> Signature:
        """Return the signature of some tensors, after checking what the rank gives to itself."""
        dtypes = list(dict.fromkeys(tensor.dtype for tensor in tensors))
        if len(dtypes) > 1:
            names = " and ".join(map(dtype_name, dtypes))
            raise RuntimeError(
                f"{self.kind} needs tensors of one dtype; rank {self.rank} has {names}"
            )
        found = Signature(dtype_name(dtypes[0]), _per_member(gives), _per_member(takes))
        given, taken = found.gives_to(self.place), found.takes_from(self.place)
        if given is not None and taken is not None and given != taken:
            raise RuntimeError(
                f"in {self.kind}, rank {self.rank} gives itself {counted(given, 'element')} and"
                f" takes {taken} from itself"
            )
        return found

    def whole(self, tensor: torch.Tensor, gives: bool, takes: bool) -> Signature:
        """Return the signature of a tensor that is the same for all ranks."""
        number = [tensor.numel()]
        return self.signature([tensor], number if gives else [], number if takes else [])

    def lists(self, what: str, tensors: Sequence[torch.Tensor]) -> list[int]:
        """Return the elements of each tensor in a list with one tensor for each member."""
        if len(tensors) != self.size:
            raise RuntimeError(
                f"the {what} list of {self.kind} has {len(tensors)} tensors; a group of"
                f" {self.size} ranks needs {self.size}"
            )
        return [tensor.numel() for tensor in tensors]

    def even_lists(
        self, what: str, tensors: Sequence[torch.Tensor], own: torch.Tensor
    ) -> list[int]:
        """Return the same; on gloo all, or in a reduce-scatter one, have the shape of ``own``."""
        numbers, some = self.lists(what, tensors), self.kind == "reduce_scatter"
        for place, tensor in enumerate(tensors):
            if self.even and tensor.shape != own.shape and (not some or place == self.place):
                alike, mine, other = "size", counted(own.numel(), "element"), f"{numbers[place]:,}"
                if numbers[place] == own.numel():
                    alike, mine, other = "shape", _shape(own), _shape(tensor)
                raise RuntimeError(
                    f"{self.kind} needs tensors of one {alike} here: rank {self.rank}'s own has"
                    f" {mine}, and number {place} of its {what} list has {other}"
                )
        return numbers

    def joined(
        self, tensors: Sequence[torch.Tensor], gives: list[int], takes: list[int], what: str
    ) -> list[Signature]:
        """Return the signature of a rank's part, and of the tensor that all parts make together.

        gloo cuts that one along its first dimension, into parts of the shape of the rank's own.
        """
        found, (part, whole), size = self.signature(tensors, gives, takes), tensors, self.size
        if not self.even or (part.dim() and whole.shape == (size * len(part), *part.shape[1:])):
            return [found]
        joint = "cannot be joined; x.view(1) can"
        if part.dim():
            joint = f"make one of shape {(size * len(part), *part.shape[1:])}"
        raise RuntimeError(
            f"{self.kind} joins tensors along their first dimension here: those of {size} ranks, of"
            f" {_shape(part)}, {joint}, and rank {self.rank}'s {what} has {_shape(whole)}"
        )

    def parts(self, what: str, tensor: torch.Tensor) -> list[int]:
        """Return the elements of the equal parts of a tensor, as one number."""
        if tensor.numel() % self.size:
            raise RuntimeError(
                f"the {what} of {self.kind} has {counted(tensor.numel(), 'element')}, which is no"
                f" multiple of the {self.size} ranks"
            )
        return [tensor.numel() // self.size]

    def rows(self, what: str, tensor: torch.Tensor, splits: Sequence[int]) -> list[int]:
        """Return the elements of the parts of a tensor that is split along its first dimension."""
        splits = require_splits(f"the {what} of {self.kind}", splits)
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self.size:
                raise RuntimeError(
                    f"the {what} of {self.kind} has {counted(rows, 'row')}, which is no multiple"
                    f" of the {self.size} ranks; give split sizes"
                )
            return [tensor.numel() // self.size]
        if len(splits) != self.size or sum(splits) != rows or min(splits) < 0:
            raise RuntimeError(
                f"the {what} split sizes of {self.kind} are {splits}; for {self.size} ranks"
                f" they have to be {self.size} numbers with the sum {rows}, its first dimension"
            )
        row = tensor.numel() // rows if rows else 0
        return [split * row for split in splits]

    # The methods, by one of their names. -------------------------------------

    def broadcast(self, tensors: Any, *_: Any) -> list[Signature]:
        return [self.whole(tensor, self.is_root, not self.is_root) for tensor in tensors]

    def allreduce(self, tensors: Any, *_: Any) -> list[Signature]:
        return [self.whole(tensor, True, True) for tensor in tensors]

    def reduce(self, tensors: Any, *_: Any) -> list[Signature]:
        return [self.whole(tensor, True, self.is_root) for tensor in tensors]

    def allgather(self, outputs: Any, inputs: Any, *_: Any) -> list[Signature]:
        return list(starmap(self._gathered, zip(outputs, inputs, strict=True)))

    def allgather_coalesced(self, outputs: Any, inputs: Any, *_: Any) -> list[Signature]:
        # the outputs are ordered by rank and then by tensor; allgather orders them the other way
        return self.allgather(list(zip(*outputs, strict=True)), inputs)

    def _gathered(self, into: Any, tensor: torch.Tensor) -> Signature:
        takes = self.even_lists("output", into, tensor)
        return self.signature([tensor, *into], [tensor.numel()], takes)

    def all_gather_single(self, output: Any, tensor: Any, *_: Any) -> list[Signature]:
        takes = self.parts("output", output)
        return self.joined([tensor, output], [tensor.numel()], takes, "output")

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, *_: Any) -> list[Signature]:
        pairs = zip(outputs, inputs, strict=True)
        return [found for pair in pairs for found in self.all_gather_single(*pair)]

    def gather(self, outputs: Any, inputs: Any, *_: Any) -> list[Signature]:
        (tensor,) = inputs
        if self.is_root:
            return [self._gathered(outputs[0], tensor)]
        return [self.whole(tensor, True, False)]

    def gather_single(self, output: Any, tensor: Any, *_: Any) -> list[Signature]:
        if self.is_root:
            return self.all_gather_single(output, tensor)
        return [self.whole(tensor, True, False)]

    def scatter(self, outputs: Any, inputs: Any, *_: Any) -> list[Signature]:
        (output,) = outputs
        if self.is_root:
            gives = self.even_lists("input", inputs[0], output)
            return [self.signature([*inputs[0], output], gives, [output.numel()])]
        return [self.whole(output, False, True)]

    def _scattered(self, output: torch.Tensor, tensors: Any) -> Signature:
        gives = self.even_lists("input", tensors, output)
        return self.signature([*tensors, output], gives, [output.numel()])

    def reduce_scatter(self, outputs: Any, inputs: Any, *_: Any) -> list[Signature]:
        return list(starmap(self._scattered, zip(outputs, inputs, strict=True)))

    def reduce_scatter_single(self, output: Any, tensor: Any, *_: Any) -> list[Signature]:
        gives = self.parts("input", tensor)
        return self.joined([output, tensor], gives, [output.numel()], "input")

    def reduce_scatter_single_coalesced(
        self, outputs: Any, inputs: Any, *_: Any
    ) -> list[Signature]:
        pairs = zip(outputs, inputs, strict=True)
        return [found for pair in pairs for found in self.reduce_scatter_single(*pair)]

    def alltoall(self, outputs: Any, inputs: Any, *_: Any) -> list[Signature]:
        own = inputs[self.place] if self.place < len(inputs) else torch.empty(0)
        gives = self.even_lists("input", inputs, own)
        takes = self.even_lists("output", outputs, own)
        return [self.signature([*inputs, *outputs], gives, takes)]

    def all_to_all_single(
        self, output: Any, tensor: Any, output_splits: Any, input_splits: Any, *_: Any
    ) -> list[Signature]:
        gives = self.rows("input", tensor, input_splits)
        takes = self.rows("output", output, output_splits)
        return [self.signature([tensor, output], gives, takes)]

    def barrier(self, *_: Any) -> list[Signature]:
        return []

    allreduce_coalesced = allreduce


def signatures(
    method: str,
    kind: str,
    arguments: Sequence[Any],
    *,
    rank: int,
    place: int,
    size: int,
    root: int = -1,
    gloo: bool = False,
    uneven: bool = False,
    sparse: bool = False,
) -> list[Signature]:
    """Return the signatures of a call: one, or one for each tensor if several are coalesced.

    Args:
        method: of the process group, by any of its names.
        kind: the collective's name.
        arguments: the method's arguments, options included.
        rank: the global rank that calls.
        place, size: its rank in the group, and the number of members.
        root: the root's rank in the group, or −1.
        gloo: whether the transport takes what gloo takes, and nothing else.
        uneven: whether it takes lists of tensors of different shapes all the same.
        sparse: whether the tensors are sparse, and it takes them.

    Raises:
        RuntimeError: the rank's own arguments do not fit together.
        ValueError: the transport cannot take them.
    """
    reader = _SignatureReader(kind, rank, place, size, root, gloo and not uneven)
    name = method if hasattr(reader, method) else OTHER_NAME[method]
    gloo = gloo and not sparse
    tensors = tensors_in(arguments[:2]) if gloo else []
    for tensor in tensors:
        _require_gloo_tensor(tensor, kind, name in _IN_MEMORY)
    if gloo and name == "all_to_all_single":
        require_message(arguments[1], f"the input of {kind}")
    elif gloo and name == "reduce_scatter":
        require_message(arguments[0][0], f"the output of {kind}")
    found: list[Signature] = getattr(reader, name)(*arguments)
    for options in arguments if gloo else ():
        if hasattr(options, "reduceOp"):
            _require_reduction(options.reduceOp, tensors[0].dtype)
    for tensor in tensors_in(arguments[:1]) if gloo else ():
        if not tensor.is_contiguous() and any(
            not step and n > 1 for step, n in zip(tensor.stride(), tensor.size(), strict=True)
        ):
            raise RuntimeError(
                f"{kind} writes to a tensor whose elements share memory, as expand() makes it;"
                " .clone() makes one without"
            )
        # torch copies what comes out of this one
        into_leaf = kind == "reduce_scatter" and tensor.is_leaf and tensor.requires_grad
        if into_leaf and torch.is_grad_enabled():
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
    return found


# Tensors that a call writes. -------------------------------------------------------


def own_tensors(
    kind: str, written: Sequence[torch.Tensor], read: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    """Return the tensors of a collective that are alike on all ranks, in size and in shape."""
    if kind in SAME_SIZE:
        return written
    if kind in ("all_gather", "gather"):
        return read[:1]
    return written[:1] if kind in ("scatter", "reduce_scatter") else ()


def shared_outputs(kind: str, written: Sequence[torch.Tensor]) -> str:
    """Return what is wrong if tensors that one call writes share memory, or an empty string."""
    for i, one in enumerate(written):
        same = [j for j, other in enumerate(written) if j > i and _share(one, other)]
        if not same:
            continue
        alike = all(
            written[j].data_ptr() == one.data_ptr() and written[j].shape == one.shape for j in same
        )
        places = _places([i, *same])
        what = "are one and the same memory" if alike else "share memory"
        return (
            f"tensors {places} of the output list of {kind} {what}, so that what is written to one"
            " overwrites another; make a tensor for each, as in"
            " [torch.empty_like(x) for _ in range(n)]: [t] * n is one tensor, n times"
        )
    return ""


def _places(places: Sequence[int]) -> str:
    *most, last = map(str, places)
    return f"{', '.join(most)} and {last}"


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors have an element in the same place of memory."""
    if not (one.layout is other.layout is torch.strided) or one.device != other.device:
        return False
    if not one.nbytes or not other.nbytes:
        return False
    if one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        return False
    if one.element_size() != other.element_size():  # views in another dtype
        return _bytes_of(one) == _bytes_of(other) or _overlap(one, other)
    if not _overlap(one, other):
        return False
    if one.is_contiguous() and other.is_contiguous():
        return True
    # columns of one matrix lie between each other, and share nothing
    used = torch.zeros(one.untyped_storage().nbytes() // one.element_size(), dtype=torch.bool)
    used.as_strided(one.size(), one.stride(), int(one.storage_offset())).fill_(True)
    return bool(used.as_strided(other.size(), other.stride(), int(other.storage_offset())).any())


def _bytes_of(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the range of memory that a tensor lies in."""
    length = sum((n - 1) * s for n, s in zip(tensor.size(), tensor.stride(), strict=True)) + 1
    return tensor.data_ptr(), tensor.data_ptr() + length * tensor.element_size()


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    (a, b), (c, d) = _bytes_of(one), _bytes_of(other)
    return a < d and c < b


# What is received into a tensor that nobody keeps is lost.  In ``dist.recv(x[rows], 0)`` the index
# makes a copy, which dies with the call.  That a tensor dies there proves the loss, if nothing
# else owns its memory; but ``torch.empty(1)`` dies, too, in a call that only waits for a message.
# So the expression must also take something from a tensor that is there: by an index or a method.

#: Functions of torch.distributed that write to their first argument.
_WRITES_FIRST = frozenset(
    {
        *("recv", "irecv", "broadcast", "all_reduce", "reduce", "scatter"),
        *("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"),
    }
)


class CallSite(NamedTuple):
    """A call of torch.distributed in the student's code, under way.

    Attributes:
        function: the name of the function that is called.
        frame: the student's frame, by identity.
        at: the instruction that calls.
    """

    function: str
    frame: int
    at: int

    @property
    def is_running(self) -> bool:
        """Whether the call has not returned yet, as seen from inside or from what it ends."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not is_students(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None and (id(frame), frame.f_lasti) == (self.frame, self.at)


def running_call(tensor: torch.Tensor) -> tuple[CallSite, Copy] | None:
    """Return the student's call that writes to a tensor which its first argument makes.

    ``None`` if the tensor has a name, or if the student's code calls another function, which then
    makes and uses it.
    """
    frame: FrameType | None = sys._getframe(1)
    inner: FrameType | None = None
    while frame is not None and not is_students(frame.f_code.co_filename):
        # torch's decorators pass the call on
        if frame.f_code.co_filename != c10d_logger.__file__:
            inner = frame
        frame = frame.f_back
    if frame is None or inner is None or inner.f_code.co_filename != c10d.__file__:
        return None
    code = inner.f_code
    if code.co_name not in _WRITES_FIRST or not code.co_argcount:
        return None
    copied = _copied_argument(frame)
    # to ask for the variables of a frame takes longest
    if copied is None or inner.f_locals.get(code.co_varnames[0]) is not tensor:
        return None
    return CallSite(code.co_name, id(frame), frame.f_lasti), copied


class Copy(NamedTuple):
    """An expression that makes a new tensor of one that is there.

    Attributes:
        name: the variable that it begins with.
        method: the method that makes the new tensor; empty if an index does.
        direct: whether it makes it of what the variable holds, and not of a part of that.
    """

    name: str
    method: str
    direct: bool

    def __str__(self) -> str:
        if self.method:
            return f"the new tensor that .{self.method}() makes"
        return f"the copy that the index of {self.name} makes" if self.direct else "a copy"

    @property
    def mend(self) -> str:
        """How to put what was received where it belongs."""
        if not self.direct:
            return ""
        return f", as in {self.name}" + (".copy_(buffer)" if self.method else "[index] = buffer")


def _copied_argument(frame: FrameType) -> Copy | None:
    """Return the first argument of the call that a frame is in, if it makes a new tensor of one.

    ``None`` for a name, for a call of a function such as ``torch.empty``, and wherever it cannot
    be told.
    """
    code, key = frame.f_code, (id(frame.f_code), frame.f_lasti)
    if key not in _looked_at:
        # the code is kept, so that no other gets its address; to hash it would take long
        _looked_at[key] = code, _copy_expression(code, frame.f_lasti)
    _, found = _looked_at[key]
    if found is None or found.method.startswith("new_"):
        return None
    if found.method and not hasattr(torch.Tensor, found.method):
        return None
    names = (frame.f_locals, frame.f_globals)
    value = next((space[found.name] for space in names if found.name in space), None)
    makers = (ModuleType, type, FunctionType, BuiltinFunctionType, MethodType)
    return None if value is None or isinstance(value, makers) else found


#: Instructions that put a variable on the stack.
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")

_Range = tuple[tuple[int, int], tuple[int, int]]


#: What has been found at calls, by the address of the code and the instruction.
_looked_at: dict[tuple[int, int], tuple[CodeType, Copy | None]] = {}


def _copy_expression(code: CodeType, at: int) -> Copy | None:
    """Return the index or method call that is the first argument of the call at an instruction.

    The places of instructions in the source, which Python knows since 3.11, say what belongs to
    which expression: those that begin where another ends are its arguments.
    """
    placed: list[tuple[_Range, dis.Instruction]] = []
    for one in dis.get_instructions(code):
        found = _range(one)
        if found is not None:
            placed.append((found, one))
    # a frame may stand in the inline cache after the instruction
    before = [found for found, one in placed if one.offset <= at]
    if not before:
        return None
    call = before[-1]
    inside = [(found, one) for found, one in placed if call[0] <= found[0] and found[1] <= call[1]]
    callee = max(
        (found[1] for found, _ in inside if found[0] == call[0] and found != call), default=None
    )
    arguments = [(found, one) for found, one in inside if callee is not None and found[0] >= callee]
    if not arguments:
        return None
    begin = min(found[0] for found, _ in arguments)
    # the parts of the first argument that begin where it does, the whole of it first
    parts: dict[tuple[int, int], dis.Instruction] = {}
    for found, one in arguments:
        if found[0] == begin:
            parts[found[1]] = one
    ordered = [parts[end] for end in sorted(parts, reverse=True)]
    whole, variable = ordered[0], ordered[-1]
    if len(ordered) < 2 or not variable.opname.startswith(_LOADS):
        return None
    name = str(variable.argval)
    if whole.opname == "BINARY_SUBSCR" or (whole.opname, whole.argrepr) == ("BINARY_OP", "[]"):
        return Copy(name, "", len(ordered) == 2)
    method = ordered[1]
    if whole.opname.startswith("CALL") and method.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return Copy(name, str(method.argval), len(ordered) == 3) if len(ordered) > 2 else None
    return None


def _range(instruction: dis.Instruction) -> _Range | None:
    """Return where in the source an instruction's expression begins and ends, if that is known."""
    positions = getattr(instruction, "positions", None)
    if positions is None or None in positions:
        return None
    line, end_line, column, end_column = positions
    return (line, column), (end_line, end_column)
