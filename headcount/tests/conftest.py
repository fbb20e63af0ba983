"""What holds for every test of the engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from support.processes import heed_interrupts, our_processes

# A deadline is wall clock, and a busy machine may take a turn away in the middle of an example.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

# Several tests run at a time, and threads that wait for each other at the end of every small
# operation lose their turns to the other tests.
torch.set_num_threads(1)

heed_interrupts()


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """The test leaves no process behind."""
    before = set(our_processes())
    yield
    assert set(our_processes()) <= before
