"""Pages without a kernel and without a network: exported notebooks, saved replays."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from playwright.sync_api import Page, Route

from grader import replay
from tests.browser.lab import Server
from tests.browser.replays import Watched

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]


def shift_twice(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    for _ in range(2):
        request = dist.isend(x, (rank + 1) % n)
        y = torch.empty_like(x)
        dist.recv(y, (rank - 1) % n)
        request.wait()
        x = y


@pytest.fixture
def offline(page: Page) -> Page:
    """A page that reaches nothing but this machine's files."""

    def refuse(route: Route) -> None:
        route.abort()

    page.route("http*://**", refuse)
    return page


def test_an_exported_chapter_still_steps(server: Server, offline: Page, tmp_path: Path) -> None:
    target = tmp_path / "chapter.html"
    server.export("solutions/11_ring_all_reduce.ipynb", target)
    offline.goto(target.as_uri(), wait_until="domcontentloaded")
    Watched(offline, offline.locator(".gather-round-replay").first).is_stepped()


def test_a_saved_replay_steps(offline: Page, tmp_path: Path) -> None:
    target = tmp_path / "replay.html"
    replay(shift_twice, 3, torch.ones(2)).save(target)
    offline.goto(target.as_uri())
    Watched(offline, offline.locator(".gather-round-replay")).is_stepped()
