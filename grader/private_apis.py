"""What the grader itself relies on that torch, Python and others do not promise to keep.

The entries are those of :mod:`headcount.core.private_apis`, for the grader's own modules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headcount.core.private_apis import PrivateApi

__all__ = ["PRIVATE_APIS"]


def _forgets_freed_storages(new_with_weak_ptr: Any) -> bool:
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef

    storage = torch.zeros(1).untyped_storage()
    reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
    held = new_with_weak_ptr(reference.cdata)
    same = held is not None and held._cdata == storage._cdata
    del storage, held
    return same and new_with_weak_ptr(reference.cdata) is None


_TABLE = (
    PrivateApi(
        "torch.UntypedStorage._cdata",
        "count the bytes that a rank holds, and see a copy die with a call",
        ("instruments/storages.py",),
    ),
    PrivateApi(
        "torch.UntypedStorage._new_with_weak_ptr",
        "count the bytes that a rank holds",
        ("instruments/storages.py",),
        behaves=_forgets_freed_storages,
    ),
    PrivateApi(
        "torch.utils._python_dispatch.TorchDispatchMode",
        "see the operations of a call",
        ("instruments/operations.py",),
    ),
    PrivateApi(
        "torch.utils._python_dispatch.TorchDispatchMode._should_skip_dynamo",
        "start a rank without torch's compiler",
        ("instruments/operations.py",),
    ),
    PrivateApi(
        "torch.utils._python_dispatch.is_traceable_wrapper_subclass",
        "count the bytes of a DTensor",
        ("instruments/storages.py",),
    ),
    PrivateApi(
        "torch.nn.Module._parameters",
        "run a layer of chapter 24 in another dtype",
        ("course/chapters/ch24_fsdp.py",),
    ),
    PrivateApi(
        "torch.autograd.profiler_util.EventList._build_tree",
        "judge the profiles of chapter 18",
        ("course/chapters/ch18_profiling.py",),
    ),
    PrivateApi(
        "torch.autograd.profiler.profile._function_events",
        "judge the profiles of chapter 18",
        ("course/chapters/ch18_profiling.py",),
    ),
    PrivateApi(
        "torch.autograd.profiler.profile._needs_processing",
        "judge the profiles of chapter 18",
        ("course/chapters/ch18_profiling.py",),
    ),
    PrivateApi(
        "torch.distributed.ProcessGroup._allgather_base",
        "gather on MPI, by its older name",
        ("course/mpi/transport.py",),
    ),
    PrivateApi(
        "torch.distributed.ProcessGroup._reduce_scatter_base",
        "reduce and scatter on MPI, by its older name",
        ("course/mpi/transport.py",),
    ),
    PrivateApi(
        "sys._getframe",
        "find the line of a call",
        ("instruments/clock.py",),
    ),
    PrivateApi(
        "sys._current_frames",
        "say where a rank of a benchmark hangs",
        ("course/bench/rank.py",),
    ),
    PrivateApi(
        "ipykernel.kernelbase.Kernel._allow_stdin",
        "know whether a person watches a notebook",
        ("report/live.py",),
    ),
)

PRIVATE_APIS: tuple[PrivateApi, ...] = tuple(replace(api, package="grader") for api in _TABLE)
