"""What a script does on a GPU, done on the CPU: for scripts that are tried where there is none.

Tensors and modules that are sent to ``cuda`` stay on the CPU; streams, events, synchronization and
the counters of a GPU's memory do nothing.  No GPU is pretended: ``torch.cuda.is_available()`` stays
as it is unless it is asked for.  What has no counterpart, such as a kernel or a CUDA graph, raises.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode

from headcount.rank.recording_group import RecordingGroup
from headcount.rank.sync_batch_norm import normalize_on_cpu

__all__ = ["MAPPED", "explain_bare_number", "map_cuda"]

#: What is said, once, of a script that uses a GPU.
MAPPED = (
    "cuda is mapped to the CPU, and nccl to gloo; speed, memory, streams and NCCL's own order of"
    " operations are not those of GPUs"
)

#: What ``torch.cuda.memory_stats`` and the like answer.
_BYTES = 80 << 30


class _Mapping:
    """The mapping of one process.

    Args:
        note: called when something is mapped.
    """

    def __init__(self, note: Callable[[], None]) -> None:
        self.note = note
        self.index = 0

    def device(self, device: Any) -> Any:
        """Return the device that stands in for one."""
        if isinstance(device, torch.device):
            is_gpu = device.type == "cuda"
        elif isinstance(device, str):
            is_gpu = device.partition(":")[0] == "cuda"
        else:
            is_gpu = isinstance(device, int) and not isinstance(device, bool)
        if not is_gpu:
            return device
        self.note()
        return "cpu" if isinstance(device, str) else torch.device("cpu")


class _OnCpu(TorchFunctionMode):
    """Lets every function of torch work on the CPU that would work on a GPU."""

    def __init__(self, mapping: _Mapping) -> None:
        super().__init__()
        self._mapping = mapping
        tensor = torch.Tensor
        self._special: dict[Any, Callable[..., Any]] = {
            tensor.cuda: lambda one, *_, **__: self._tensor_cuda(one),
            tensor.pin_memory: lambda one, *_, **__: self._tensor_cuda(one),
            tensor.to: self._tensor_to,
            tensor.type: self._type,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        special = self._special.get(func)
        if special is not None:
            return special(*args, **(kwargs or {}))
        if kwargs and "device" in kwargs:
            kwargs = {**kwargs, "device": self._mapping.device(kwargs["device"])}
        return func(*args, **(kwargs or {}))

    def _tensor_cuda(self, tensor: torch.Tensor) -> torch.Tensor:
        self._mapping.note()
        return tensor

    def _tensor_to(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if "device" in kwargs:
            kwargs["device"] = self._mapping.device(kwargs["device"])
        return tensor.to(*map(self._mapping.device, args[:1]), *args[1:], **kwargs)

    def _type(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], str):
            args = (args[0].replace("torch.cuda.", "torch."), *args[1:])
        return tensor.type(*args, **kwargs)


class _Idle:
    """A stream or an event of a GPU that has nothing to do."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def __enter__(self) -> _Idle:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def elapsed_time(self, _: object) -> float:
        """Return the milliseconds since another event."""
        return 0.0

    def query(self) -> bool:
        """Return whether all work is done."""
        return True


def map_cuda(note: Callable[[], None], ranks: int, rank: int, pretends: bool = False) -> None:
    """Let this process do on the CPU what its program does on a GPU.

    Args:
        note: called when something is mapped.
        ranks: how many GPUs the program is told that there are, if it is told so.
        rank: the rank of this process.
        pretends: whether ``torch.cuda.is_available()`` says that there are GPUs, for programs that
            refuse to run without.
    """
    mapping = _Mapping(note)
    mapping.index = rank
    _OnCpu(mapping).__enter__()  # type: ignore[no-untyped-call]
    _replace_cuda(mapping)
    _replace_constructors(mapping)
    if pretends:
        _set_gpu_count(ranks)


def explain_bare_number(error: BaseException, ranks: int) -> None:
    """Add the mend to the error with which torch refuses a bare number, as in torch.device(5)."""
    try:
        torch.device(0)
    except RuntimeError as refused:
        if (type(error), error.args) == (type(refused), refused.args):
            error.args = (
                f"{error} A bare number is a GPU's, and torch looks for it before it can be mapped"
                f" to the CPU. Here are {ranks} mapped GPUs, one for each rank: write"
                " torch.device('cuda', number)",
            )


def _set_gpu_count(ranks: int) -> None:
    """Tell all but torch itself, which would take kernels for it, that each rank has a GPU."""
    own = torch.__path__[0] + os.sep

    def towards_others(real: Callable[..., Any], value: Any) -> Callable[..., Any]:
        @functools.wraps(real)
        def call(*args: Any, **kwargs: Any) -> Any:
            asks = sys._getframe(1).f_code.co_filename
            return real(*args, **kwargs) if asks.startswith(own) else value

        return call

    modules: tuple[Any, ...] = (torch.cuda, torch.accelerator)
    for module in modules:
        module.is_available = towards_others(module.is_available, True)
        module.device_count = towards_others(module.device_count, ranks)
    # which is where its tensors are
    current, here = torch.accelerator.current_accelerator, torch.device("cpu")
    torch.accelerator.current_accelerator = towards_others(current, here)


def _replace_cuda(mapping: _Mapping) -> None:
    """Replace the functions of ``torch.cuda`` that have a counterpart."""

    def set_device(device: Any) -> None:
        mapping.note()
        if isinstance(device, torch.device):
            device = device.index
        elif isinstance(device, str):
            device = torch.device(device).index
        mapping.index = 0 if device is None else device

    @contextlib.contextmanager
    def idle(*_: Any, **__: Any) -> Iterator[None]:
        yield

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            "this needs a GPU, and has no counterpart on the CPU, to which cuda is mapped here"
        )

    # a function of its own for each name, which the compiler takes for different ones
    nothing = [
        "synchronize", "empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all",
        "reset_peak_memory_stats", "reset_max_memory_allocated", "ipc_collect", "init",
        "set_stream", "set_per_process_memory_fraction",
    ]  # fmt: skip
    zero = [
        "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
        "utilization", "temperature", "power_draw",
    ]  # fmt: skip
    properties = type(
        "DeviceProperties", (),
        {"name": "CPU", "total_memory": _BYTES, "major": 0, "minor": 0, "multi_processor_count": 1},
    )  # fmt: skip
    replaced: dict[str, Any] = {
        **{name: lambda *_, **__: None for name in nothing},
        **{name: lambda *_, **__: 0 for name in zero},
        "set_device": set_device,
        "current_device": lambda: mapping.index,
        "device": idle,
        "stream": idle,
        "Stream": _Idle,
        "Event": _Idle,
        "current_stream": lambda *_, **__: _Idle(),
        "default_stream": lambda *_, **__: _Idle(),
        "get_device_name": lambda *_: "CPU",
        "get_device_properties": lambda *_: properties(),
        "get_device_capability": lambda *_: (0, 0),
        "mem_get_info": lambda *_: (_BYTES, _BYTES),
        "memory_stats": lambda *_, **__: {},
        "memory_summary": lambda *_, **__: "",
        "is_bf16_supported": lambda *_, **__: True,
        "CUDAGraph": refuse,
        "graph": refuse,
        "_lazy_init": refuse,
    }
    for name, value in replaced.items():
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, value)
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: None)
    torch.cuda.nvtx.range = idle
    accelerator = torch.accelerator
    accelerator.set_device_index = set_device
    accelerator.device_index = idle  # type: ignore[assignment, misc]
    accelerator.synchronize = lambda *_: None
    accelerator.current_device_index = lambda: mapping.index


def _replace_constructors(mapping: _Mapping) -> None:
    """Replace what takes a device and is no function of torch's that a mode can map."""
    device = mapping.device

    def with_first(function: Callable[..., Any], place: int, name: str) -> Callable[..., Any]:
        """Map the argument at a place, which may be given by name."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) > place:
                args = (*args[:place], device(args[place]), *args[place + 1 :])
            if name in kwargs:
                kwargs[name] = device(kwargs[name])
            return function(*args, **kwargs)

        return call

    # it reads its arguments in C++, which refuses a number for a device
    module: Any = torch.nn.Module
    module.to = with_first(module.to, 1, "device")
    ddp = DistributedDataParallel.__init__

    @functools.wraps(ddp)
    def without_devices(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None,
        *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        if device_ids is not None:
            mapping.note()
        ddp(self, module, None, None, *args, **kwargs)

    DistributedDataParallel.__init__ = without_devices  # type: ignore[method-assign]
    normalize_on_cpu()
    RecordingGroup.for_nccl = True
    _after_import("torch.distributed.fsdp.fully_sharded_data_parallel", _shard_on_cpu)
    meshes: Any = dist.device_mesh
    meshes.DeviceMesh.__init__ = with_first(meshes.DeviceMesh.__init__, 1, "device_type")
    meshes.init_device_mesh = with_first(meshes.init_device_mesh, 0, "device_type")
    dist.init_device_mesh = meshes.init_device_mesh  # type: ignore[attr-defined]
    autocast: Any = torch.amp.autocast_mode.autocast
    autocast.__init__ = with_first(autocast.__init__, 1, "device_type")

    class Generator(torch.Generator):
        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, device=mapping.device(device))  # type: ignore[call-arg]

    torch.Generator = Generator  # type: ignore[misc]
    torch.set_default_device = with_first(torch.set_default_device, 0, "device")
    load = torch.load

    @functools.wraps(load)
    def load_here(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if map_location is None:
            map_location = "cpu"
        elif isinstance(map_location, dict):
            map_location = {source: device(target) for source, target in map_location.items()}
        elif not callable(map_location):
            map_location = device(map_location)
        return load(f, map_location, *args, **kwargs)

    torch.load = load_here


def _shard_on_cpu(module: types.ModuleType) -> None:
    """Let the first FSDP shard on the CPU, which it does only if it is told so."""
    sharded: Any = module.__dict__["FullyShardedDataParallel"]
    begin = sharded.__init__

    @functools.wraps(begin)
    def on_cpu(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, module, *args, **{**kwargs, "device_id": torch.device("cpu")})

    sharded.__init__ = on_cpu


def _after_import(name: str, change: Callable[[types.ModuleType], None]) -> None:
    """Change a module once it is imported: to import it now would take a second for nothing."""
    if name in sys.modules:
        change(sys.modules[name])
        return

    class Finder(MetaPathFinder):
        def find_spec(self, wanted: str, *_: Any) -> ModuleSpec | None:
            if wanted != name:
                return None
            sys.meta_path.remove(self)
            spec = find_spec(name)
            assert spec is not None
            assert spec.loader is not None
            execute = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                change(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
            return spec

    sys.meta_path.insert(0, Finder())
