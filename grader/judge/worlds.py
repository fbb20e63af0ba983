"""The worlds of one check: which sizes share one, and when the next is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headcount.launch.world import Job, Outcome, World

__all__ = ["WorldPool"]

#: The largest size of an answer's first world: most wrong answers fail there.
_SMALL = 2


class WorldPool:
    """The worlds of one check.

    To start a rank costs more than most cases, so several sizes share a world, whose first ranks
    form the smaller ones.  The first is small, and only an answer that passes there is run on
    many ranks.  Once a world has failed, whose ranks cannot be used again, each size has its own.

    Args:
        open_world: starts a world for jobs of some sizes, in increasing order, whose ranks take
            sets in orders of their own or not.
        simulate: runs a job that names a network, in a world of simulated ranks of its own.
        sizes: the sizes of the jobs to come, in their order.
    """

    def __init__(
        self,
        open_world: Callable[[Sequence[int], bool], World],
        simulate: Callable[[Job], Outcome],
        sizes: Sequence[int],
    ) -> None:
        self._open_world = open_world
        #: whether each rank takes sets in an order of its own, as other processes would
        self.set_orders = True
        self._simulate = simulate
        self._plan = _shared(sizes)
        self._size = sizes[0]
        self._world: World | None = None
        self._next: World | None = None

    def run(self, n: int, job: Job) -> Outcome:
        """Run a job on a world of ``n`` ranks that has seen no failure, or on simulated ranks."""
        if job.network is not None:
            return self._simulate(job)
        self._size = n
        while n not in self._plan[0]:
            self._plan.pop(0)
            self._replace(self._next)
            self._next = None
        if self._world is not None and not self._world.usable:
            self._separate(n)
        if self._world is None:
            self._world = self._open(0)
        return self._world.run(job)

    def share_set_orders(self, n: int) -> None:
        """Let all ranks take sets in one order from now on; jobs for ``n`` ranks come next."""
        self.set_orders = False
        self._separate(n)

    def _separate(self, n: int) -> None:
        """End the present world, and give each size from ``n`` on a world of its own."""
        self._plan = _unshared(self._plan)
        self._plan = self._plan[self._plan.index([n]) :]
        self.close()

    def _open(self, place: int) -> World:
        return self._open_world(self._plan[place], self.set_orders)

    def expect_the_end(self) -> None:
        """Give each size for which no world is started its own: few are still to come."""
        if self._next is None:
            self._plan[1:] = _unshared(self._plan[1:])

    def start_next(self) -> None:
        """Start the next world, where this one has come to its largest size."""
        if self._size == self._plan[0][-1] and self._next is None and len(self._plan) > 1:
            self._next = self._open(1)

    def _replace(self, world: World | None) -> None:
        if self._world is not None:
            self._world.close()
        self._world = world

    def close(self) -> None:
        """End all worlds."""
        self._replace(self._next)
        self._next = None
        self._replace(None)

    def __enter__(self) -> WorldPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _shared(sizes: Sequence[int]) -> list[list[int]]:
    """Return sizes grouped by the world that they share, in which they increase."""
    plan: list[list[int]] = []
    for size in sizes:
        if plan and plan[-1][-1] < size and (size <= _SMALL or plan[-1][-1] > _SMALL):
            plan[-1].append(size)
        else:
            plan.append([size])
    return plan


def _unshared(plan: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return a plan in which no sizes share a world."""
    return [[size] for sizes in plan for size in sizes]
