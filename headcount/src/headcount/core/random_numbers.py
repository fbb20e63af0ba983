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

__all__ = ["Generators", "fresh_seed", "rank_seed", "seed_for_wire"]


def fresh_seed() -> int:
    """Return an unpredictable seed that is short enough to type again."""
    return secrets.randbelow(10**6)


def seed_for_wire(seed: int) -> int:
    """Return a seed that fits into a message; one that is drawn for a class may have 256 bits."""
    return seed % 2**63


def rank_seed(seed: int, rank: int) -> int:
    """Return the seed of one rank's generators, in 63 bits."""
    digest = hashlib.blake2b(f"{seed} {rank}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Generators:
    """The global generators of torch, Python and numpy in this process, seeded for a rank.

    Args:
        seed: the seed of all ranks.
        rank: the rank of this process.
        device: the device of its tensors, whose generator is seeded as well.
    """

    def __init__(self, seed: int, rank: int, device: torch.device) -> None:
        own = rank_seed(seed, rank)
        self._own = own
        # torch.manual_seed would also prepare for every kind of device there may be
        torch.default_generator.manual_seed(own)
        if device.type == "cuda":
            torch.cuda.manual_seed(own)
        random.seed(own)
        numpy.random.seed(own % 2**32)
        self._seeded = torch.default_generator.get_state()

    def used(self) -> bool:
        """Return whether torch's numbers have been drawn that depend on the seed of the ranks.

        A program that seeds torch itself draws numbers of its own.
        """
        generator = torch.default_generator
        own = generator.initial_seed() == self._own
        return own and not torch.equal(generator.get_state(), self._seeded)
