"""MPI: through mpi4py, on whichever library that finds.

torch's wheels are built without their MPI backend, so this is one: the
methods of a process group on a communicator.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

__all__ = ["BACKEND", "Mpi"]

#: Bits of the tag by which members of a new communicator find each other; MPI has 15 at least.
_TAG_BITS = 15


class Mpi:
    """Processes that an ``mpiexec`` knows."""

    name = "mpi"
    coalesces = False
    even_lists = False

    def device(self, rank: int) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    def connect(
        self, store: c10d.Store, rank: int, size: int, members: Sequence[int], whole: bool
    ) -> Any:
        """A communicator of the members, as a group."""
        import mpi4py

        # ranks are killed, and what they hold is the library's affair no more
        mpi4py.rc.finalize = False
        from mpi4py import MPI

        from grader.rank.transports.mpi_communicator import MpiGroup

        world = MPI.COMM_WORLD
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise RuntimeError("this MPI cannot be called from several threads")
        if whole:
            if (world.rank, world.size) != (rank, size):
                raise RuntimeError(
                    f"mpiexec knows this process as rank {world.rank} of {world.size},"
                    f" and not as rank {rank} of {size}"
                )
            return MpiGroup(world.Dup())
        tag = zlib.crc32(repr(list(members)).encode()) >> (32 - _TAG_BITS)
        return MpiGroup(world.Create_group(world.group.Incl(list(members)), tag))


BACKEND = Mpi()
