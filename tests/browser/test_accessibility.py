"""axe-core on what the grader shows: https://github.com/dequelabs/axe-core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from grader import replay
from tests.browser.lab import Reader, Server
from tests.browser.test_lab import REPLAY, RIGHT, WRONG
from tests.browser.test_pages import shift_twice

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

DEADLOCK = """def pass_on():
    x = torch.ones(2)
    dist.send(x, (dist.get_rank() + 1) % dist.get_world_size())


run(pass_on, 3, may_fail=True)"""


def findings(page: Page, where: str | None = None) -> list[str]:
    """What axe finds serious or critical, each with the elements it means."""
    response: dict[str, Any] = Axe().run(page, context=where).response
    assert response["passes"], "axe has looked at nothing"
    return [
        f"{v['impact']}: {v['help']}: {[node['html'] for node in v['nodes']]}"
        for v in response["violations"]
        if v["impact"] in ("serious", "critical")
    ]


@pytest.fixture(scope="module", params=["Light", "Dark"])
def themed(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp(request.param), theme=request.param)
    yield found
    found.close()


def test_verdicts_and_replays_in_jupyterlab(themed: Server, page: Page) -> None:
    reader = Reader(themed, page)
    reader.open("notebooks/02_broadcast.ipynb")
    reader.cell("from grader import check").run()
    cell = reader.cell("Everyone's x becomes src's x.")
    for code, shown in (
        (WRONG, "✗ broadcast"),
        (RIGHT, "✓ broadcast"),
        (DEADLOCK, "deadlock"),
        (REPLAY, "Start, before"),
    ):
        cell.write(code)
        cell.run()
        expect(cell.output.first).to_contain_text(shown)
        cell.output.first.evaluate("output => output.id = 'looked-at'")
        assert findings(page, "#looked-at") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_replay(page: Page, tmp_path: Path, scheme: str) -> None:
    target = tmp_path / "replay.html"
    replay(shift_twice, 3, torch.ones(2)).save(target)
    page.emulate_media(color_scheme=scheme)
    page.goto(target.as_uri())
    assert findings(page) == []


def test_an_exported_chapter(server: Server, page: Page, tmp_path: Path) -> None:
    target = tmp_path / "chapter.html"
    server.export("solutions/11_ring_all_reduce.ipynb", target)
    page.goto(target.as_uri(), wait_until="domcontentloaded")
    # what is ours on it; the rest of the page is nbconvert's
    assert findings(page, ".gather-round-replay") == []
