"""What ``make lab`` starts: the address that it prints, and every picture and link behind it."""

from __future__ import annotations

import itertools
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.system.browser.lab import PATIENCE, ROOT, Reader, Server
from tests.system.browser.learner import hidden, hidden_extensions
from tests.system.test_servers import anchors

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

#: Pictures and links of the prose as the browser has them, and pictures that do not show.
_LOOK = """async () => {
    const all = (where) => [...document.querySelectorAll(`.jp-Notebook ${where}`)];
    const pictures = all("img");
    await Promise.all(pictures.map((one) => one.decode().catch(() => null)));
    return {
        pictures: all(".jp-MarkdownOutput img").map((one) => one.src),
        broken: pictures.filter((one) => !one.naturalWidth).map((one) => one.src),
        // JupyterLab gives every heading a link to itself
        links: all(".jp-MarkdownOutput a[href]:not(.jp-InternalAnchorLink)").map((one) => one.href),
    };
}"""


def _addresses(path: Path) -> tuple[list[str], list[str]]:
    """The pictures that a notebook's prose shows, and what of the course it links to."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    prose = re.sub(r"^```.*?^```|`[^`\n]*`|\$[^$\n]*\$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", prose)
    here = [(mark, link) for mark, link in found if "://" not in link]
    return [link for mark, link in here if mark], [link for mark, link in here if not mark]


@pytest.mark.parametrize("edition", ["notebooks", "solutions"])
def test_the_server_has_every_picture_and_page_that_a_chapter_leads_to(
    server: Server, edition: str
) -> None:
    """Asked of the server of ``make lab``, where a link out of its root would be a 404.

    No cell is run here: nbval runs every cell of both editions (``make test``) and compares what
    the solved ones show.  To do that again in a browser would take half an hour.
    """
    chapters = sorted((server.course / edition).glob("*.ipynb"))
    assert [path.stem for path in chapters] == sorted(
        path.stem for path in (ROOT / "solutions").glob("*.py")
    )
    looked_at = 0
    for chapter in chapters:
        for link in itertools.chain(*_addresses(chapter)):
            address, anchor = urldefrag(link)
            place = posixpath.normpath(f"{edition}/{address}") if address else ""
            assert not place.startswith(".."), f"{chapter.name}: {link} leads out of the course"
            if place:
                assert server.status(f"files/{place}") == 200, f"{chapter.name}: {link}"
            if anchor:
                target = server.course / place
                assert target.suffix == ".md", f"{chapter.name}: {link}: no rule for anchors there"
                assert anchor in anchors(target), f"{chapter.name}: {link}"
            looked_at += 1
    assert looked_at > 100


def test_what_is_not_there_is_not_found(server: Server) -> None:
    assert server.status("files/imgs/missing.png") == 404


@pytest.mark.parametrize(
    "path", ["notebooks/00_ranks_and_groups.ipynb", "solutions/07_all_reduce.ipynb"]
)
def test_jupyterlab_finds_them_where_they_are(reader: Reader, path: str) -> None:
    """Its own rule for relative links, on chapters with pictures and links of every kind."""
    reader.open(path)
    pictures, links = _addresses(reader.server.course / path)
    found = reader.page.evaluate(_LOOK)
    assert found["broken"] == []
    assert len(found["pictures"]) == len(pictures) > 0
    local = [link for link in found["links"] if link.startswith(reader.server.url)]
    assert len(local) == len(links) > 0
    for link in [*local, *found["pictures"]]:
        assert reader.page.request.get(link).status == 200, link


@pytest.fixture(scope="module")
def another(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has just been started, by somebody whose port is taken."""
    found = Server(tmp_path_factory.mktemp("another"), port=urlsplit(server.url).port or 0)
    yield found
    found.close()


def test_a_port_in_use_gives_another_and_the_printed_address_is_right(
    server: Server, another: Server
) -> None:
    assert urlsplit(another.printed).port not in (None, urlsplit(server.url).port)
    with urlopen(another.printed, timeout=PATIENCE) as answer:
        # who has no token is sent to another page
        assert (answer.status, answer.url) == (200, another.printed)


def test_the_first_chapter_opens_with_the_kernel_that_was_started_with_the_server(
    another: Server, page: Page
) -> None:
    before = another.sessions()
    assert [one["path"] for one in before] == ["notebooks/00_ranks_and_groups.ipynb"]
    page.goto(another.printed)
    title = page.get_by_role("heading", name="00 · Ranks and groups")
    expect(title).to_be_visible(timeout=PATIENCE * 1000)
    reader = Reader(another, page)
    reader.wait_until_idle()
    cell = reader.cell("from grader import check")
    cell.write("import sys, pathlib\nprint('grader.api' in sys.modules, pathlib.Path.cwd().name)")
    cell.run()
    expect(cell.output).to_have_text("True notebooks\n")
    assert [one["kernel"]["id"] for one in another.sessions()] == [before[0]["kernel"]["id"]]


def test_nothing_is_asked_of_the_network_and_lines_have_numbers(server: Server) -> None:
    assert server.default("@jupyterlab/apputils-extension:notification", "fetchNews") == "false"
    cells = server.default("@jupyterlab/notebook-extension:tracker", "codeCellConfig")
    assert cells["lineNumbers"] is True


PASS = """import torch, torch.distributed as dist
from grader import check

def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

check(who_am_i)"""


def test_the_map_is_in_the_left_bar_and_a_later_choice_stays(reader: Reader) -> None:
    page, panel = reader.page, reader.page.locator("#gather-round-map")
    files = page.locator("#filebrowser")
    page.goto(reader.server.address("").replace("/tree/", ""))
    expect(panel).to_be_visible(timeout=PATIENCE * 1000)
    expect(files).not_to_be_visible()
    panel.locator(".tile").get_by_role("link", name="02 · Broadcast").click()
    reader.wait_until_idle()
    cell = reader.cell("from grader import check")
    cell.write(PASS)
    tile = panel.locator(".tile").first
    expect(tile).to_contain_text("0 of 2 passed")
    cell.run()
    expect(tile).to_contain_text("1 of 2 passed")
    with page.expect_response(lambda r: '"current":"filebrowser"' in (r.request.post_data or "")):
        page.get_by_role("tab", name="File Browser").click()
    page.reload()
    expect(files).to_be_visible(timeout=PATIENCE * 1000)
    expect(panel).not_to_be_visible()


def test_in_a_narrow_window_the_left_bar_is_closed(reader: Reader) -> None:
    page = reader.page
    page.set_viewport_size({"width": 600, "height": 800})
    page.goto(reader.server.address("").replace("/tree/", ""))
    expect(page.locator(".jp-Launcher")).to_be_visible(timeout=PATIENCE * 1000)
    expect(page.locator("#gather-round-map .tile").first).to_be_attached()
    expect(page.locator("#filebrowser")).not_to_be_visible()
    expect(page.locator("#gather-round-map")).not_to_be_visible()


def test_pictures_are_dark_in_the_dark_theme(reader: Reader) -> None:
    page = reader.page
    picture = page.locator(".jp-Notebook img[src*='.png']").first
    with reader.server.dark():
        page.goto(reader.server.address("notebooks/02_broadcast.ipynb"))
        expect(picture).to_have_css("filter", re.compile("invert"), timeout=PATIENCE * 1000)
    page.goto(reader.server.address("notebooks/02_broadcast.ipynb"))
    expect(picture).to_have_css("filter", "none", timeout=PATIENCE * 1000)


def test_a_learners_kernel_has_no_tools(reader: Reader) -> None:
    """All of these tests run on what requirements.txt brings: the rest is hidden."""
    tools = {"nbgrader", "mypy", "playwright", "distributed", "hypothesis"}
    assert tools <= set(hidden(ROOT / "requirements.txt"))
    reader.open("notebooks/02_broadcast.ipynb")
    cell = reader.cell("from grader import check")
    cell.write(
        "import importlib.util as u\n"
        f"print([n for n in {sorted(tools)} if u.find_spec(n)], bool(u.find_spec('nbval')))"
    )
    cell.run()
    expect(cell.output).to_have_text("[] True\n")
    assert "@jupyter/nbgrader" in hidden_extensions(ROOT / "requirements.txt")
    menu = reader.page.get_by_role("menuitem")
    expect(menu.filter(has_text="Kernel")).to_have_count(1)
    expect(menu.filter(has_text="Nbgrader")).to_have_count(0)
