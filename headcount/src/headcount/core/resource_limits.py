"""Limits on the time and the memory that running an answer may take.

Every default is here, and nowhere else: those of the settings of a judge, of
a :class:`headcount.launch.world.Job`, of a grading, of ``run`` and ``simulate``, and of the
command line's options.  Times are wall clock in seconds unless they say otherwise, and
sizes are bytes.

A call of an answer is limited by what its ranks do and not by the clock: how long each may use
a processor, or all may sleep.  That does not depend on how busy the machine is, so the limit can
be short, and an endless loop ends soon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headcount.core.errors import RequestError

__all__ = ["DEFAULTS", "ResourceLimits", "valid_sizes"]


@dataclass(frozen=True)
class ResourceLimits:
    """What an answer may take before it is ended.

    Attributes:
        ranks: the largest world of real ranks.
        call: seconds of processor time that a rank may use in one call of an answer, or that all
            its ranks may sleep (``--seconds``).
        gpu_call: the same on GPUs, which connect only when they first communicate.
        busy: how many times that the call may take by the clock, on a machine that is busy with
            other work; of many ranks it is at least twice for each (:meth:`by_the_clock`).
        exercise: seconds of all calls for one exercise, in a grading.
        submission: seconds of all exercises of a submission (``grade --timeout``).
        run: seconds of a function that a reader runs, on real ranks.
        simulation: seconds of a function that a reader runs, on simulated ranks.
        simulated_answer: seconds of the command ``simulate``.
        setup: seconds in which every rank must have joined its group and loaded the program.
        parsing: seconds in which a submission must have been parsed.
        compiling: seconds in which a submission's C++ must have been compiled, on a machine that
            is busy with other work.
        compiler: seconds of processor time for each of the compiler's processes; torch's headers
            take 20.
        bench: seconds that one size of ``bench`` may take (``bench --timeout``).
        rank_memory: bytes that one rank may allocate.
        submission_memory: bytes that all ranks of a submission may use together, in a
            grading (``grade --memory``).
        compiler_memory: bytes that each of the compiler's processes may map; torch's headers
            take 1.5 GB.
        compiler_file: the largest file in bytes that they may write, such as the library.
        simulation_memory: bytes that all simulated ranks together may allocate.
        output: bytes that a rank may print.
        answer: bytes of the tensors that a rank may return.
        simulated_answers: bytes of the tensors that all simulated ranks may return together.
    """

    ranks: int = 64
    call: float = 1.0
    gpu_call: float = 6.0
    busy: float = 5.0
    exercise: float = 60.0
    submission: float = 600.0
    run: float = 10.0
    simulation: float = 120.0
    simulated_answer: float = 600.0
    setup: float = 30.0
    parsing: float = 20.0
    compiling: float = 300.0
    compiler: int = 90
    bench: float = 60.0
    rank_memory: int = 2 << 30
    submission_memory: int = 4 << 30
    compiler_memory: int = 4 << 30
    compiler_file: int = 64 << 20
    simulation_memory: int = 8 << 30
    output: int = 64 << 10
    answer: int = 256 << 20
    simulated_answers: int = 1 << 30

    def by_the_clock(self, call: float, ranks: int) -> float:
        """Return the seconds that a call may take, whose ranks may compute for ``call``.

        Ranks that all compute for so long on one processor must not run out of time.
        """
        return call * max(self.busy, 2 * ranks)


#: The limits where nothing else is asked for.
DEFAULTS = ResourceLimits()


def valid_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return the world sizes in the order asked for, without repetitions.

    Raises:
        RequestError: there is none, or one is not a number of ranks that a machine can hold.
    """
    limit = DEFAULTS.ranks
    found = tuple(dict.fromkeys(sizes))
    for size in found:
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= limit:
            raise RequestError(f"a world has 1 to {limit} ranks, not {size!r}")
    if not found:
        raise RequestError("no world size is given")
    return found
