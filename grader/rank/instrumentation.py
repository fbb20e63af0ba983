"""Instruments for adapters, functions that call the student's code for an exercise.

They run inside the ranks.  They refuse some of torch's operations, count the lines that run and
the bytes that are held, pull gradients back, set the clock that the student's code reads, and
simulate a CUDA device.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import math
import operator
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch
import torch.distributed as dist

# torch 2.15 imports it in every backward, and older ones with torch: here it is imported once, by
# the process that ranks are forked from
import torch.nested._internal.nested_tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

from grader.core.source_locations import is_students, line_here
from grader.core.values import dtype_name, tensors_in
from grader.rank.recorder import ForbiddenCall

__all__ = [
    "Clock",
    "Device",
    "LEFT_OUT",
    "UNSEEN",
    "HeldStorages",
    "PeakStorages",
    "OnDevice",
    "ReceivedStorages",
    "defer_compiler",
    "differentiated",
    "holding",
    "noticing_unseen",
    "on_device",
    "operations",
    "played",
    "refusing",
    "return_freed_memory",
    "run_as_written",
    "settled",
    "shown_to",
    "steps",
    "tell_seconds",
    "uncompiled",
    "without_compiler",
    "without_device",
]


# Operations, steps and gradients of a call. ----------------------------------------


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that does not import torch's compiler."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # otherwise torch imports its compiler, to keep it out of the modes' own methods, which
        # takes more than a second in every rank
        return False


class _Refusal(_Watch):
    """A dispatch mode that raises when one of the named operations is about to run."""

    def __init__(self, names: frozenset[str], small: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.first: ForbiddenCall | None = None
        self._names = names
        self._small = small

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        sizes = (one.numel() for one in args if isinstance(one, torch.Tensor))
        if name in self._names and max(sizes, default=sys.maxsize) > self._small:
            error = ForbiddenCall(f"{name} is what this exercise asks you to write")
            self.first = self.first or error
            raise error
        return func(*args, **(kwargs or {}))


def refusing(
    names: frozenset[str], function: Callable[..., Any], *arguments: Any, small: int = -1
) -> Any:
    """Call a function that may not use some of torch's operations, and return its result.

    Args:
        names: names of operators without namespace, overload and the underscore of the
            in-place form, such as ``scatter_add``.
        function, arguments: the call.
        small: number of elements up to which a tensor may be an argument of them all the same.

    Raises:
        ForbiddenCall: an operation was used, even if the function caught the exception.
    """
    mode = _Refusal(names, small)
    with mode:
        value = function(*arguments)
    if mode.first is not None:
        raise mode.first
    return value


def steps(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many lines of the student's own code a call runs, counting every iteration.

    A comprehension or a loop on one line counts once per iteration; a generator, a lambda or a
    helper counts each time it is entered.
    """
    count = 0

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not is_students(frame.f_code.co_filename):
            return None
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


class _Count(_Watch):
    """A dispatch mode that counts operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.operations += 1
        return func(*args, **(kwargs or {}))


def operations(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many operations of torch a call makes, in loops without lines as well.

    ``list(map(torch.mul, a, b))`` is a loop that :func:`steps` does not see.
    """
    count = _Count()
    with count:
        function(*arguments)
    return count.operations


def differentiated(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    leaves: Mapping[str, int],
    cotangent: torch.Tensor,
) -> dict[str, Any]:
    """Call a function, and pull a cotangent back through it.

    Args:
        function, arguments: the call.
        leaves: names and positions of the arguments whose gradients are wanted.
        cotangent: the gradient of some loss with respect to the result.  A result of another
            shape or dtype goes backward from ones.

    Returns:
        ``result``, and a ``gradient of NAME`` for every leaf, which is ``None`` if no gradient
        reaches it.

    Raises:
        RuntimeError: backward raised ``NotImplementedError``, which would otherwise be taken
            for the stub of the whole function.
    """
    for place in leaves.values():
        arguments[place].requires_grad_()
    result = function(*arguments)
    found: dict[str, Any] = {"result": result}
    found |= {f"gradient of {name}": None for name in leaves}
    if isinstance(result, torch.Tensor) and result.requires_grad:
        if result.shape != cotangent.shape or result.dtype != cotangent.dtype:
            # the result is wrong; all the same it goes backward, as it would in training, for
            # other ranks may wait in theirs for what this one sends there
            cotangent = torch.ones_like(result)
        wanted = [arguments[place] for place in leaves.values()]
        # the gradient of this product with respect to the result is exactly the cotangent;
        # passing that to autograd makes torch import its symbolic shapes, which takes a second
        product = (result * cotangent).sum()
        try:
            gradients = torch.autograd.grad(product, wanted, allow_unused=True)
        except NotImplementedError as error:
            # torch raises this for a Function without a backward; the stub has been replaced
            unwritten = RuntimeError(f"backward is not written yet: {error}")
            raise unwritten.with_traceback(error.__traceback__) from error
        found |= {f"gradient of {name}": g for name, g in zip(leaves, gradients, strict=True)}
    if isinstance(result, torch.Tensor):
        found["result"] = result.detach()
    return found


#: Text of the mark for a collective that changes a tensor behind autograd's back.
UNSEEN = "a collective that autograd does not see"


@contextlib.contextmanager
def noticing_unseen() -> Iterator[None]:
    """Mark every all-reduce in this context that writes into a tensor with a history."""
    group: Any = dist.group.WORLD
    original = group.allreduce

    def noticed(tensors: Any, *options: Any) -> Any:
        # inside a torch.autograd.Function autograd records nothing, and the call is fine
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            group.mark(UNSEEN)
        return original(tensors, *options)

    group.allreduce = noticed
    try:
        yield
    finally:
        # simulated ranks share a group, and one of them may have restored it
        vars(group).pop("allreduce", None)


# Bytes that a rank holds. -----------------------------------------------------------


#: Seconds in which a transport lets go of what it has sent, however busy the machine is.
LETTING_GO = 0.5


#: Kinds of tensors that are named of what a rank holds: the largest ones explain a sum.
_KINDS = 4


class HeldStorages(_Watch):
    """A dispatch mode that knows which memory the tensors of its context hold.

    It notes the storage of every tensor that an operation takes or makes, without keeping it
    alive.  A storage counts once, however many views there are of it, for as long as anything
    refers to it: an attribute, a dictionary, a closure, or autograd's graph.  Memory that no
    operation of torch has touched in the context, such as an array of NumPy, is not seen.

    Args:
        own: returns the tensors whose elements do not count, such as parameters and their
            gradients.  What else their storages hold counts.
    """

    #: Seconds that :meth:`settle` waits in this process.
    _patience = LETTING_GO

    def __init__(self, own: Callable[[], Iterable[torch.Tensor]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own = own
        #: by the address of the storage: a reference that does not keep it alive but keeps the
        #: address from being used again, and the first tensor's shape and dtype
        self._seen: dict[int, tuple[StorageWeakRef, str]] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self._note(tensors_in([args, kwargs, result]))
        return result

    def _note(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count the storages of these tensors from now on."""
        for tensor in _unwrapped(tensors):
            if tensor.layout is torch.strided:
                storage = tensor.untyped_storage()
                if storage._cdata not in self._seen:
                    shape = "×".join(map(str, tensor.shape)) or "scalar"
                    text = f"{shape} {dtype_name(tensor.dtype)}"
                    reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                    self._seen[storage._cdata] = (reference, text)

    def settle(self, most: int) -> None:
        """Wait until no more than ``most`` bytes are held, see :func:`settled`.

        An answer that has held more for the whole time holds more in further cases, too, and each
        would take the time again: they are given a tenth of it.
        """
        there = settled(lambda: self.nbytes <= most, HeldStorages._patience)
        if most and not there:
            HeldStorages._patience = LETTING_GO / 10

    def found(self, runs: Collection[bytes], apart_from: Iterable[torch.Tensor] = ()) -> set[bytes]:
        """Return which of these runs of bytes stand in memory that is held, own tensors included.

        So one can ask whether some numbers are in memory, whatever tensor they are in.  The memory
        of the tensors ``apart_from`` is not searched.
        """
        left_out = {tensor.untyped_storage()._cdata for tensor in apart_from}
        there: set[bytes] = set()
        for storage, _ in self._storages():
            if storage.nbytes() and storage._cdata not in left_out:
                data = ctypes.string_at(storage.data_ptr(), storage.nbytes())
                there.update(run for run in runs if run in data)
        return there

    @property
    def nbytes(self) -> int:
        """The bytes that are held now."""
        return sum(nbytes for nbytes, _ in self._alive())

    def __str__(self) -> str:
        """Return what is held, the largest first: ``2 of 24×32 float32, 1 of 32 float32``."""
        counted = Counter(entry for entry in self._alive())
        ordered = sorted(counted.items(), key=lambda item: -item[0][0])
        told = [f"{number} of {text}" for (_, text), number in ordered[:_KINDS]]
        smaller = sum(number for _, number in ordered[_KINDS:])
        return ", ".join([*told, f"{smaller} smaller"] if smaller else told)

    def _alive(self) -> list[tuple[int, str]]:
        """Return the bytes of each storage that count, if there are any, and its first shape."""
        own: Counter[int] = Counter()
        for tensor in {id(t): t for t in self._own()}.values():
            own[tensor.untyped_storage()._cdata] += tensor.nbytes
        found = []
        for storage, text in self._storages():
            mine = own[storage._cdata]
            if (nbytes := storage.nbytes() - mine) > 0:
                found.append((nbytes, f"{nbytes} more bytes of {text}" if mine else text))
        return found

    def _storages(self) -> Iterator[tuple[Any, str]]:
        """Yield each storage that is still alive, with its first shape and dtype."""
        for address, (reference, text) in list(self._seen.items()):
            storage: Any = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
            if storage is None:
                del self._seen[address]
            else:
                yield storage, text


class PeakStorages(HeldStorages):  # type: ignore[no-untyped-call]
    """Held storages that note the most bytes that were held when an operation had ended.

    To add up all storages after every operation takes longer than most operations.

    Attributes:
        most: those bytes.
    """

    def __init__(self, own: Callable[[], Iterable[torch.Tensor]]) -> None:
        super().__init__(own)
        self.most = 0

    def __torch_dispatch__(self, *call: Any) -> Any:
        result = super().__torch_dispatch__(*call)
        self.most = max(self.most, self.nbytes)
        return result


def _unwrapped(tensors: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield the tensors, and in place of a wrapper, whose storage has no memory, what it wraps."""
    for tensor in tensors:
        wrapper: Any = tensor
        # every tensor of every operation passes here, and nearly all are plain
        plain = type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter
        if not plain and is_traceable_wrapper_subclass(wrapper):  # such as a DTensor
            names, _ = wrapper.__tensor_flatten__()
            # a DTensor names its mesh as well, which is no tensor
            yield from _unwrapped(tensors_in([getattr(wrapper, name) for name in names]))
        else:
            yield tensor


def settled(there: Callable[[], bool], seconds: float = LETTING_GO) -> bool:
    """Wait until a condition on held memory is there, for some seconds at the longest.

    The transport's own thread lets go of the tensors of a collective a moment after the rank has
    seen its end, and they would count.

    Returns:
        whether it is.
    """
    until, pause = time.monotonic() + seconds, 1e-4
    while not there():
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.02)  # it is there at once, or is not worth a processor
    return True


#: Operations whose results hold the numbers of their arguments, and none that are computed.
_MOVES = frozenset(
    {
        "_to_copy", "cat", "clone", "constant_pad_nd", "copy", "flip", "gather", "index",
        "index_copy", "index_put", "index_select", "masked_select", "repeat", "roll",
        "select_scatter", "slice_scatter", "stack", "take",
    }
)  # fmt: skip


class ReceivedStorages(HeldStorages):  # type: ignore[no-untyped-call]
    """A dispatch mode that knows which memory holds what messages have brought to this rank.

    A storage counts, as a whole, from the moment a receive into it is posted in the context, and
    for as long as anything refers to it; and so does one to which an operation copies it.  What is
    computed from it does not count.  A rank holds what it needs, and what is coming, as it begins
    to wait: before that, requests of an earlier step may still keep their tensors.

    Attributes:
        most: the most bytes that were held when the rank began to wait.
        fullest: what they were.
    """

    def __init__(self) -> None:
        super().__init__(list)
        self.most = 0
        self.fullest = ""

    def received(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count the tensors of a receive that is posted now."""
        self._note(tensors)

    def waits(self) -> None:
        """Compare what is held, as the rank begins to wait, with the most so far."""
        if (nbytes := self.nbytes) > self.most:
            self.most, self.fullest = nbytes, str(self)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        moves = func.overloadpacket.__name__.removesuffix("_") in _MOVES
        if moves and any(
            tensor.untyped_storage()._cdata in self._seen
            for tensor in tensors_in([args, kwargs or {}])
            if tensor.layout is torch.strided
        ):
            self._note(tensors_in([result]))
        return result


#: glibc's option for the size of blocks that are mapped, and so unmapped once they are freed.
_M_MMAP_THRESHOLD, _MAPPED = -3, 1 << 18


def return_freed_memory() -> None:
    """Let what this process frees from now on go back to the kernel, as far as glibc does that.

    It keeps small blocks and, after large ones have been freed, larger and larger ones, so that
    the kernel would count what is no longer used.
    """
    libc: Any = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim"):
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED)
        libc.malloc_trim(0)


def holding(nbytes: int, when: str, what: str) -> str:
    """Return the mark that says how much a rank holds, at which moment, and in which tensors."""
    return f"holds {nbytes} bytes {when}: {what}" if what else f"holds {nbytes} bytes {when}"


class _Deferred(ModuleType):
    """A module of torch that answers a few questions; for any other it is imported."""

    def __init__(self, name: str, answers: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        self.__path__ = []  # it may be a package: the import system then asks _Submodules
        self.__dict__.update(answers)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system and others look whether it has these
            raise AttributeError(name)
        return getattr(self.imported(), name)

    def imported(self) -> ModuleType:
        """Return the module itself, from now on in the place of this one."""
        for value in list(vars(self).values()):
            if isinstance(value, _Deferred):
                value.taken_back()
        self.taken_back()
        return importlib.import_module(self.__name__)

    def taken_back(self) -> None:
        """Leave the module as it was, not imported yet."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        package, _, name = self.__name__.rpartition(".")
        if vars(sys.modules.get(package, self)).get(name) is self:
            delattr(sys.modules[package], name)


class _Submodules(MetaPathFinder, Loader):
    """Finds submodules of a deferred package, which is imported before them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = sys.modules.get(name.rpartition(".")[0])
        if not isinstance(package, _Deferred):
            return None
        path = package.imported().__path__
        # most are imported by their package, and must not be a second time
        return ModuleSpec(name, self) if name in sys.modules else PathFinder.find_spec(name, path)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = sys.modules[spec.name]
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def _left_alone(function: Any = None, *_: Any, **__: Any) -> Any:
    """Stand for ``torch._dynamo.disable``, with and without arguments."""
    return function if callable(function) else _left_alone


# What the program asks torch to compile runs as it is written. -----------------------
#
# The results are the same.  Compiling a function that communicates would trace the recording group,
# which torch's compiler does not know, and take each rank seconds; a sandbox has no compiler.

#: What is remarked of a program that asks for the compiler.
LEFT_OUT = "torch.compile is left out here: what it is given runs as it is written"

#: The file and line at which the program has first asked for the compiler.
_uncompiled: list[tuple[str, int]] = []


def uncompiled() -> tuple[str, int] | None:
    """Return the file and line at which the program first asks torch to compile, if it does."""
    return _uncompiled[0] if _uncompiled else None


class _AsWritten(torch.nn.Module):
    """Stands for a compiled module: the same attributes, parameters and names of parameters."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self._modules["_orig_mod"] = module

    def forward(self, *arguments: Any, **named: Any) -> Any:
        return self._modules["_orig_mod"](*arguments, **named)  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_modules"]["_orig_mod"]
        return module if name == "_orig_mod" else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # until the module is there, and what torch itself sets for each module
        if "_orig_mod" not in self.__dict__.get("_modules", ()) or hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def train(self, mode: bool = True) -> _AsWritten:
        self._modules["_orig_mod"].train(mode)  # type: ignore[union-attr]
        self.__dict__["training"] = mode
        return self

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])  # type: ignore[arg-type]

    def __reduce__(self) -> Any:
        return type(self), (self._modules["_orig_mod"],)


def _as_written(model: Any = None, **options: Any) -> Any:
    """Stand for ``torch.compile``, with and without arguments."""
    if model is None:
        return partial(_as_written, **options)
    if not _uncompiled:
        file, line, _ = line_here()
        _uncompiled.append((file, line))
    if isinstance(model, torch.nn.Module) and not isinstance(model, _AsWritten):
        return _AsWritten(model)
    return model


def run_as_written() -> None:
    """Let this process run as it is written what a program asks torch to compile."""
    torch.compile = _as_written


#: What torch asks in eager training, of modules that take long to import.  Its optimizers ask the
#: compiler to leave them alone, whenever they are made or make a step: 0.9 s of a processor.
#: ``y.backward(gradient)`` compares two shapes by a function that knows symbols, and so imports
#: SymPy: 0.25 s.  Shapes here are numbers.  A process group that is made clears the compiler's
#: caches, and DDP asks how it would be compiled.
_ANSWERS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "torch._dynamo": {
        "disable": _left_alone,
        "graph_break": lambda: None,
        "optimize": lambda *_, **__: _as_written,
        "reset": lambda: None,
    },
    "torch._dynamo.trace_rules": {"clear_lru_cache": lambda: None},
    "torch._dynamo.utils": {"get_optimize_ddp_mode": lambda: "ddp_optimizer"},
    "torch.fx.experimental.symbolic_shapes": {"expect_true": bool, "sym_eq": operator.eq},
}


def defer_compiler() -> list[_Deferred]:
    """Let torch train in this process without importing its compiler, where it is not yet.

    Every rank would import it.  If anything is asked of it that eager training does not ask, it
    is imported after all.

    Returns:
        what stands for it.
    """
    if not any(isinstance(finder, _Submodules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Submodules())
    deferred = []
    for name, answers in _ANSWERS.items():
        if name not in sys.modules:
            module = sys.modules[name] = _Deferred(name, answers)
            package, _, last = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], last, module)
            deferred.append(module)
    return deferred


@contextlib.contextmanager
def without_compiler() -> Iterator[None]:
    """Defer torch's compiler in this context, see :func:`defer_compiler`."""
    deferred = defer_compiler()
    try:
        yield
    finally:
        for module in deferred:
            module.taken_back()


# A clock that an adapter sets. -----------------------------------------------------

#: Functions of :mod:`time` that read the wall clock in seconds; each has a ``_ns`` form.
_SECONDS = ("perf_counter", "monotonic", "time")

#: Functions that read the processor's time, of which waiting for a message takes next to none.
_PROCESSOR = ("process_time", "thread_time")

#: Functions that hold a clock as a default argument.
_WITH_DEFAULTS: tuple[Any, ...] = (
    timeit.timeit,
    timeit.repeat,
    timeit.Timer.__init__,
)


class Clock:
    """A clock that shows ``now``, in seconds, to the student's code.

    It starts at 2²⁰ s.  Sums and differences of binary fractions are exact in float64 there,
    while a time stored in a float32 tensor comes out wrong, as it should.

    Args:
        also: returns seconds that are added to ``now``, such as the time that communication
            has taken.
    """

    def __init__(self, also: Callable[[], float]) -> None:
        self.now = float(1 << 20)
        self._also = also

    def seconds(self) -> float:
        """Return the time in seconds."""
        return self.now + self._also()

    def nanoseconds(self) -> int:
        """Return the time in nanoseconds."""
        return round(self.seconds() * 1e9)


#: The clocks that are shown, by rank: simulated ranks share one process, and are in the function
#: at the same time.
_shown: dict[int, Clock] = {}

#: What puts the real clocks back, once none is shown any more.
_put_back = contextlib.ExitStack()

#: The functions that show them, each in the place of a real clock.
_readers: dict[Any, Callable[[], Any]] = {}


def _reader(real: Callable[[], Any], shown: Callable[[Clock], Any]) -> Callable[[], Any]:
    """Return a function that gives a rank's own code what its clock shows, and others the real."""

    def read() -> Any:
        if not is_students(sys._getframe(1).f_code.co_filename):
            return real()
        clock = _shown.get(_own_rank())
        return real() if clock is None else shown(clock)

    return read


def _still(kind: Callable[[], Any]) -> Callable[[Clock], Any]:
    return lambda clock: kind()


def _own_rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def tell_seconds(value: Any) -> bool:
    """Mark the time that an answer has returned, in seconds, and return whether it is a time.

    The judge compares it with its own clock, see :func:`grader.exercise.limits.mistimed`.
    """
    if not isinstance(value, float) or not 0 < value < math.inf:
        return False
    dist.group.WORLD.mark(f"returned {float.hex(value)}")  # type: ignore[union-attr]
    return True


@contextlib.contextmanager
def shown_to(function: Callable[..., Any], clock: Clock) -> Iterator[None]:
    """Let the student's code read this clock instead of those of :mod:`time`, inside the context.

    This covers ``time.perf_counter``, ``monotonic`` and ``time`` with their ``_ns`` forms, also
    where the function's module has imported them by name, and ``timeit``.  The processor's
    clocks stand still.
    """
    if not _shown:
        _show_clocks()
    rank = _own_rank()
    _shown[rank] = clock
    _replace_clocks(_globals(function))
    try:
        yield
    finally:
        del _shown[rank]
        if not _shown:
            _put_back.close()
            _readers.clear()


def _show_clocks() -> None:
    """Put readers in the place of the clocks of :mod:`time` and of those of :mod:`timeit`."""
    for name in _SECONDS:
        real, nanoseconds = getattr(time, name), getattr(time, f"{name}_ns")
        _readers[real] = _reader(real, Clock.seconds)
        _readers[nanoseconds] = _reader(nanoseconds, Clock.nanoseconds)
    for name in _PROCESSOR:
        for each, kind in ((name, float), (f"{name}_ns", int)):
            if hasattr(time, each):  # macOS has no clock for a thread
                real = getattr(time, each)
                _readers[real] = _reader(real, _still(kind))
    for held in _WITH_DEFAULTS:
        _put_back.callback(setattr, held, "__defaults__", held.__defaults__)
        held.__defaults__ = tuple(map(_other, held.__defaults__))
    for space in (vars(time), vars(timeit)):
        _replace_clocks(space)


def _replace_clocks(space: dict[str, Any]) -> None:
    """Put readers in the place of the clocks in a namespace, until none is shown any more."""
    for name, value in list(space.items()):
        reader = _other(value)
        if reader is not value:
            _put_back.callback(space.__setitem__, name, value)
            space[name] = reader


def _other(value: Any) -> Any:
    """Return the reader of a clock, found by identity, since some values cannot be hashed."""
    return next((reader for real, reader in _readers.items() if value is real), value)


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    return function.__globals__ if isinstance(function, FunctionType) else {}


# A device that an adapter simulates. ----------------------------------------------
#
# It is for exercises that time a GPU, on machines without one.  The device keeps the rules of
# CUDA that matter for timing, on the adapter's clock: a launch returns at once; the work runs
# later, in order; an event gets its time when the work before it is done, and the host can read
# that time only after it has waited.

#: The modules whose functions are replaced.
_PLACES = (torch.cuda, torch.accelerator)


class OnDevice(torch.Tensor):
    """A tensor that claims to be on a CUDA device, while its data are on the CPU."""

    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)
    device = property(lambda self: torch.device("cuda", 0))

    def get_device(self) -> int:
        """Return the index of its device."""
        return 0


def on_device(tensor: torch.Tensor) -> OnDevice:
    """Return a tensor that claims to be on the device and shares the data of this one."""
    return tensor.as_subclass(OnDevice)


class Device:
    """A queue of kernels that run one after the other, on the host's clock.

    Args:
        clock: the host's clock.
        launch: seconds of the host that a launch takes; kernels take longer.
        notice: seconds until a waiting host notices that the work is done.
    """

    def __init__(self, clock: Clock, launch: float, notice: float) -> None:
        self.clock = clock
        self._launch = launch
        self._notice = notice
        self._free = clock.now

    @property
    def done(self) -> float:
        """The time, in seconds, at which all launched kernels will be done."""
        return max(self._free, self.clock.now)

    def run(self, seconds: float) -> None:
        """Launch a kernel that takes ``seconds``."""
        self._free = self.done + seconds
        self.clock.now += self._launch

    def wait(self, until: float | None = None) -> None:
        """Let the host wait until a time, or until the device is idle."""
        until = self._free if until is None else until
        self.clock.now = max(self.clock.now, until) + self._notice


def _event_of(device: Device) -> type:
    class Event:
        """A stand-in for ``torch.cuda.Event``."""

        def __init__(self, *_: Any, enable_timing: bool = False, **__: Any) -> None:
            self._timed = enable_timing
            self._stamp: float | None = None

        def record(self, stream: Any = None) -> None:
            self._stamp = device.done

        def query(self) -> bool:
            return self._stamp is None or self._stamp <= device.clock.now

        def synchronize(self) -> None:
            device.wait(device.clock.now if self._stamp is None else self._stamp)

        def wait(self, stream: Any = None) -> None:
            """Do nothing: there is only one stream to wait."""

        def elapsed_time(self, end: Event) -> float:
            if not (self._timed and end._timed):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if self._stamp is None or end._stamp is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            if not (self.query() and end.query()):
                raise RuntimeError("CUDA error: device not ready")
            return (end._stamp - self._stamp) * 1e3

    return Event


def _stream_of(device: Device, event: type) -> Any:
    class Stream:
        """A stand-in for ``torch.cuda.Stream``, of which there is only one."""

        def synchronize(self) -> None:
            device.wait()

        def query(self) -> bool:
            return device.done <= device.clock.now

        def record_event(self, recorded: Any = None) -> Any:
            recorded = event() if recorded is None else recorded
            recorded.record()
            return recorded

        def wait_event(self, awaited: Any) -> None:
            """Do nothing: there is only one stream to wait."""

        wait_stream = wait_event

    return Stream()


@contextlib.contextmanager
def played(function: Callable[..., Any], device: Device) -> Iterator[None]:
    """Make ``torch.cuda`` use this device, for one call of the student's function."""
    event = _event_of(device)
    stream = _stream_of(device, event)
    parts = {
        "Event": event,
        "synchronize": lambda *_: device.wait(),
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "current_stream": lambda *_: stream,
        "default_stream": lambda *_: stream,
        "current_accelerator": lambda *_: torch.device("cuda"),
    }
    with _instead(function, parts):
        yield


@contextlib.contextmanager
def without_device(function: Callable[..., Any]) -> Iterator[None]:
    """Make ``torch.cuda`` behave as on a machine without a GPU, for one call."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no CUDA device is available; these tensors are on the CPU")

    parts = {
        "Event": refuse,
        "synchronize": refuse,
        "current_stream": refuse,
        "is_available": lambda: False,
        "device_count": lambda: 0,
    }
    with _instead(function, parts):
        yield


@contextlib.contextmanager
def _instead(function: Callable[..., Any], parts: dict[str, Any]) -> Iterator[None]:
    spaces = [vars(place) for place in _PLACES]
    if isinstance(function, FunctionType):
        spaces.append(function.__globals__)
    real = [
        (space[name], part) for space in spaces[:2] for name, part in parts.items() if name in space
    ]
    with contextlib.ExitStack() as undo:
        for space in spaces:
            for name, value in list(space.items()):
                for original, part in real:
                    if value is original:
                        undo.callback(space.__setitem__, name, value)
                        space[name] = part
        yield
