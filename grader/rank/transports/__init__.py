"""What carries the messages of a world: gloo, MPI or NCCL.

Each backend connects the processes of a world and gives a group with the
methods of torch's own process groups.  The recording group stands before it.
"""

from __future__ import annotations

from grader.rank.transports.base import Backend, named
from grader.rank.transports.gloo import Gloo  # ranks are forked from a process that has it

__all__ = ["Backend", "Gloo", "named"]
