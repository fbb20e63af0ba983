"""axe-core on what the grader shows: https://github.com/dequelabs/axe-core."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image, ImageStat
from playwright.sync_api import Locator, Page, expect

from grader import replay, run, timeline
from grader.report.graph import graph_of
from headcount.core.verdict import Wait
from tests.system.browser.lab import Reader, Server
from tests.system.browser.test_lab import REPLAY, RIGHT, WRONG
from tests.system.browser.test_pages import shift_twice

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

DEADLOCK = """def pass_on():
    x = torch.ones(2)
    dist.send(x, (dist.get_rank() + 1) % dist.get_world_size())


run(pass_on, 3, may_fail=True)"""

STUB = """def broadcast(x, src):
    raise NotImplementedError


check(broadcast)"""

HUNG = """def broadcast(x, src):
    if dist.get_world_size() > 1:
        dist.recv(x, (dist.get_rank() + 1) % dist.get_world_size())


check(broadcast)"""

HUNG_REPLAY = HUNG.replace("check(broadcast)", "from grader import replay\n\nreplay(broadcast, 4)")

TIMELINE = DEADLOCK.replace("run(", "from grader import timeline\n\ntimeline(run(") + ")"

IN_PLACE = """def pass_on(x):
    if dist.get_rank() == 0:
        dist.send(x + 1, 1)
    elif dist.get_rank() == 1:
        dist.recv(x, 0)


run(pass_on, 3, torch.zeros(2))"""

EXPECTED = """predict("all have the `same`")
run(lambda: dist.get_rank(), 2)"""

HINTS = """from grader import hint

hint("broadcast")
hint("broadcast")"""

PROGRESS = """from grader import progress

progress()"""

#: What a notebook says of its kernel; without it, JupyterLab asks.
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}

SETUP = """import torch
import torch.distributed as dist

from grader import check, predict, run"""

#: What the grader shows in a notebook, and a text by which it is known to be there.
SHOWN = {
    "untouched": (STUB, "○ broadcast"),
    "wrong": (WRONG, "± broadcast"),
    "right": (RIGHT, "✓ broadcast"),
    "hung": (HUNG, "∞ broadcast"),
    "graph": (DEADLOCK, "deadlock"),
    "in place": (IN_PLACE, "x changed on rank 1"),
    "replay": (REPLAY, "of 3"),
    "replay of a run that hangs": (HUNG_REPLAY, "It hangs here"),
    "timeline": (TIMELINE, "The same as a table"),
    "prediction": (EXPECTED, "You predicted"),
    "hints": (HINTS, "broadcast: hint"),
    "progress": (PROGRESS, "exercises passed"),
}

#: Which of it is drawn, and the selector of the drawing.
PICTURES = {
    "graph": "role=img[name=/Who waits for whom/]",
    "timeline": "role=img[name=/Time line of 3 ranks/]",
    "replay": ".gr-stage",
}


def findings(page: Page, where: str | None = None) -> list[str]:
    """What axe finds, however minor, each with the elements it means."""
    response: dict[str, Any] = Axe().run(page, context=where).response
    assert response["passes"], "axe has looked at nothing"
    return [
        f"{v['impact']}: {v['help']}: {[node['html'] for node in v['nodes']]}"
        for v in response["violations"]
    ]


@pytest.mark.timeout(300)
def test_all_that_is_shown_in_jupyterlab_in_both_themes(server: Server, page: Page) -> None:
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL})
    codes = [SETUP, *(code for code, _ in SHOWN.values())]
    notebook.cells = [nbformat.v4.new_code_cell(code) for code in codes]
    nbformat.write(notebook, server.course / "shown.ipynb")
    reader = Reader(server, page)
    reader.open("shown.ipynb")
    reader.run_all()
    found = {("Light", name): axe for name, axe in looked_at(reader, dark=False).items()}
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    with server.dark():
        reader.open("shown.ipynb")  # which shows what was saved
    found |= {("Dark", name): axe for name, axe in looked_at(reader, dark=True).items()}
    assert found == {(theme, name): [] for theme in ("Light", "Dark") for name in SHOWN}
    # on paper, whatever the theme
    page.emulate_media(media="print")
    replay = outputs_of(reader, list(SHOWN).index("replay"))
    assert not is_dark(replay.locator(".gr-stage"))


def outputs_of(reader: Reader, place: int) -> Locator:
    """The outputs of one of the cells of ``SHOWN``, by its place."""
    cell = reader.page.locator(".jp-Notebook .jp-CodeCell").nth(1 + place)
    return cell.locator(".jp-OutputArea").first


def looked_at(reader: Reader, *, dark: bool) -> dict[str, list[str]]:
    """What axe finds in each cell's outputs, whose pictures are as dark as the page."""
    # the system says the opposite
    reader.page.emulate_media(color_scheme="light" if dark else "dark")
    found = {}
    for place, (name, (_, shown)) in enumerate(SHOWN.items()):
        outputs = outputs_of(reader, place)
        expect(outputs.locator(".jp-OutputArea-output").filter(has_text=shown)).to_have_count(1)
        # what can be unfolded is looked at, too
        for summary in outputs.locator("summary").all():
            summary.click()
        outputs.evaluate("(outputs, place) => outputs.id = 'shown' + place", place)
        found[name] = findings(reader.page, f"#shown{place}")
        if name in PICTURES:
            assert is_dark(outputs.locator(PICTURES[name])) == dark, name
    return found


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize(
    "named, dark",
    [
        ('class="vscode-light"', False),
        ('class="vscode-dark"', True),
        ('data-theme="light"', False),
        ('data-theme="dark"', True),
        ('data-theme="auto"', None),
        ("", None),
    ],
)
def test_a_graph_follows_the_theme_that_a_page_names_or_else_the_system(
    page: Page, named: str, dark: bool | None, system: str
) -> None:
    page.emulate_media(color_scheme=system)
    waits = (Wait(0, (1,), "waits", call="send"), Wait(1, (0,), "waits", call="send"))
    page.set_content(f"<body {named}>{graph_of(waits, (0, 1)).image}</body>")
    assert is_dark(page.get_by_role("img")) == (system == "dark" if dark is None else dark)


def is_dark(place: Locator) -> bool:
    """Whether the ground of what is drawn there is dark: most of it is ground."""
    expect(place).to_be_visible()
    place.scroll_into_view_if_needed()
    grey = Image.open(io.BytesIO(place.screenshot())).convert("L")
    (ground,) = ImageStat.Stat(grey).median
    assert not 80 < ground < 180, "neither light nor dark"
    return ground < 128


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_replay(page: Page, tmp_path: Path, scheme: str) -> None:
    target = tmp_path / "replay.html"
    replay(shift_twice, 3, torch.ones(2)).save(target)
    page.emulate_media(color_scheme=scheme)
    page.goto(target.as_uri())
    assert findings(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_timeline(page: Page, tmp_path: Path, scheme: str) -> None:
    target = tmp_path / "timeline.html"
    timeline(run(shift_twice, 3, torch.ones(2))).save(target)
    page.emulate_media(color_scheme=scheme)
    page.goto(target.as_uri())
    page.locator("summary").click()
    assert findings(page) == []
    assert is_dark(page.get_by_role("img")) == (scheme == "dark")


def test_an_exported_chapter(exported: Path, page: Page) -> None:
    page.goto(exported.as_uri(), wait_until="domcontentloaded")
    # what is ours on it; the rest of the page is nbconvert's
    assert findings(page, ".gather-round-replay") == []
