"""The random numbers of ranks: each rank draws its own, and one seed repeats those of all.

Processes that ``torchrun`` starts seed their generators from the operating system, so that no two
draw alike.  Ranks that are forked would share the state of one generator, and weights that nobody
has broadcast would look right.
"""

from __future__ import annotations

import hashlib
import random
import secrets

import numpy.random  # by the process that ranks are forked from, which numpy itself leaves to each
import torch

__all__ = ["Generators", "fresh_seed", "rank_seed"]


def fresh_seed() -> int:
    """Return an unpredictable seed that is short enough to type again."""
    return secrets.randbelow(10**6)


def rank_seed(seed: int, rank: int) -> int:
    """Return the seed of one rank's generators, in 63 bits.

    A rank is told this one alone: the inputs of an exercise are drawn from the seed itself.
    """
    digest = hashlib.blake2b(f"{seed} {rank}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Generators:
    """The global generators of torch, Python and numpy in this process, seeded for a rank.

    Args:
        seed: that of the rank, see :func:`rank_seed`.
        device: the device of its tensors, whose generator is seeded as well.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._own = seed
        # torch.manual_seed would also prepare for every kind of device there may be
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        random.seed(seed)
        numpy.random.seed(seed % 2**32)
        self._seeded = torch.default_generator.get_state()

    def used(self) -> bool:
        """Return whether torch's numbers have been drawn that depend on the seed of the ranks.

        A program that seeds torch itself draws numbers of its own.
        """
        generator = torch.default_generator
        own = generator.initial_seed() == self._own
        return own and not torch.equal(generator.get_state(), self._seeded)
