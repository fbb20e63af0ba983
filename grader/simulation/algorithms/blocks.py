"""A flat tensor in consecutive blocks, of which neighbours travel as one message."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import accumulate

import torch

__all__ = ["Blocks", "even", "of_sizes"]


class Blocks:
    """Consecutive blocks of a flat tensor.

    Args:
        flat: the tensor.
        starts: where each block begins, and where the last one ends.
    """

    __slots__ = ("flat", "starts")

    def __init__(self, flat: torch.Tensor, starts: Sequence[int]) -> None:
        self.flat = flat
        self.starts = starts

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.flat[self.starts[index] : self.starts[index + 1]]

    def span(self, first: int, last: int) -> torch.Tensor:
        """The blocks from ``first`` up to ``last``, without it, as one tensor."""
        return self.flat[self.starts[first] : self.starts[last]]


def even(flat: torch.Tensor, count: int) -> Blocks:
    """As many blocks as asked for, and as even as can be; the first ones are longer."""
    return Blocks(flat, _even_starts(flat.numel(), count))


def of_sizes(flat: torch.Tensor, sizes: Sequence[int]) -> Blocks:
    """Blocks of the sizes that are given."""
    return Blocks(flat, _starts(tuple(sizes)))


# all ranks cut alike, and thousands of them by thousands of blocks
@functools.lru_cache(maxsize=64)
def _even_starts(length: int, count: int) -> tuple[int, ...]:
    size, longer = divmod(length, count)
    return tuple(index * size + min(index, longer) for index in range(count + 1))


@functools.lru_cache(maxsize=64)
def _starts(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(accumulate(sizes, initial=0))
