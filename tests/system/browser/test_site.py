"""The course as web pages: built whole, and read in a browser from a plain web server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from grader import __version__
from grader.report.graph import graph_of
from headcount.core.verdict import Wait
from tests.system.browser.replays import Watched
from tests.system.browser.test_accessibility import findings, is_dark
from tools.site.__main__ import EDITIONS, MOVED, ROOT

#: One worker has the browser.  The first of these tests waits for the site, which has 300 s.
pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow,
    pytest.mark.timeout(360),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.site", "--to", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    # nothing is wrong: every link and every picture leads somewhere
    assert (done.returncode, done.stderr) == (0, "")
    return target / "html"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The address of a server of files, such as GitHub's: the search fetches pages."""
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of the requests."""


@pytest.fixture
def read(page: Page, address: str):
    """Open a page of the site; an error on it, or a file from elsewhere, fails the test."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    def failed(request: Request) -> None:
        # one who goes on before a page is complete ends what it still fetches
        if request.failure != "net::ERR_ABORTED":
            errors.append(request.url)

    page.on("requestfailed", failed)

    def elsewhere(route: Route) -> None:
        errors.append(route.request.url)
        route.abort()

    page.route(lambda url: not url.startswith((address, "data:")), elsewhere)

    def open_(name: str) -> Page:
        page.goto(f"{address}/{name}")
        return page

    yield open_
    assert errors == []


def test_both_editions_have_every_chapter(site: Path) -> None:
    for edition in EDITIONS:
        chapters = {path.stem for path in (ROOT / edition).glob("[0-9][0-9]_*.ipynb")}
        assert chapters
        assert chapters <= {path.stem for path in (site / edition).glob("*.html")}


class Parts(HTMLParser):
    """What a page loads, and its words outside of code.

    Attributes:
        loaded: the addresses of scripts, styles, fonts and pictures.
        words: the words.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.words = ""
        self._silent = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if "src" in named:
            self.loaded.append(named["src"] or "")
        if tag == "link" and named.get("rel") != "canonical":
            self.loaded.append(named.get("href") or "")
        self._silent += tag in ("pre", "code", "script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("pre", "code", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words += data


def test_no_page_loads_anything_from_elsewhere_or_leaves_a_formula_as_it_was_typed(
    site: Path,
) -> None:
    formulas = 0
    for path in site.rglob("*.html"):
        page = Parts(path)
        assert not [one for one in page.loaded if re.match(r"(https?:)?//", one)], path
        assert not re.search(r"\\[a-zA-Z(\[]", page.words), path
        text = path.read_text(encoding="utf-8")
        formulas += text.count("<math ")
        assert "mathjax" not in text.replace("mathjax_ignore", "").lower(), path
    assert formulas > 1000
    for path in (site / "_static").rglob("*.css"):
        assert not re.search(r"@import|url\(.?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_the_front_page_answers_the_code_that_it_shows(read) -> None:
    page = read("index.html")
    answer = page.get_by_role("group", name=re.compile("^exchange: "))
    expect(answer).to_contain_text("deadlock")
    expect(answer.get_by_role("img", name="Who waits for whom")).to_be_visible()
    line = re.search(r"line (\d+)", answer.inner_text())
    assert line is not None
    shown = page.locator(".beside pre").first.inner_text().splitlines()
    (waits,) = (row for row in shown if row.split()[:1] == [line[1]])
    assert "dist.send(x, peer)" in waits
    # the moving picture is there
    ring = page.locator("article img").first
    assert ring.evaluate("image => image.complete && image.naturalWidth > 100")


def test_the_front_page_has_every_chapter_by_its_own_heading(read) -> None:
    headings = []
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        source = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        headings.append(re.findall(r"^# (.*)", source, re.M)[0])
    page = read("index.html")
    assert page.locator(".map a").all_inner_texts() == headings
    page.get_by_role("link", name="Read chapter 00").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(headings[0])


def test_what_is_for_the_publisher_is_not_on_the_site(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "{owner}" not in page, path
        assert "<!-- published" not in page, path
        assert "badge" not in Parts(path).words, path


def test_a_page_names_its_version_and_leads_to_the_others(read) -> None:
    page = read("solutions/02_broadcast.html")
    foot = page.locator("footer .version")
    expect(foot).to_contain_text(re.compile(rf"ersion {re.escape(__version__)}"))
    foot.get_by_role("link", name="other versions").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Versions of Gather Round")
    page.get_by_role("link", name=re.compile("ersion")).click()
    expect(page).not_to_have_url(re.compile("versions"))
    expect(page).to_have_title(re.compile("Gather Round"))
    assert findings(read("versions.html"), "main") == []


def test_a_replay_plays_without_a_kernel(read) -> None:
    page = read("solutions/11_ring_all_reduce.html")
    Watched(page, page.locator(".gather-round-replay").first).is_stepped()


def test_a_switch_leads_to_the_other_edition(read) -> None:
    page = read("solutions/02_broadcast.html")
    solution = page.locator("pre", has_text="dist.send").first
    expect(solution).to_be_visible()
    switch = page.get_by_role("navigation", name="Edition")
    assert switch.locator(":scope > *").all_inner_texts() == ["Student", "Solved"]
    # no letter is cut
    assert switch.evaluate("nav => nav.scrollHeight <= nav.clientHeight && nav.clientHeight > 20")
    switch.get_by_role("link", name="Student").click()
    expect(page).to_have_url(re.compile(r"notebooks/02_broadcast\.html"))
    expect(page.locator("pre", has_text="raise NotImplementedError").first).to_be_visible()
    page.get_by_role("navigation", name="Edition").get_by_role("link", name="Solved").click()
    expect(page).to_have_url(re.compile(r"solutions/02_broadcast\.html"))


@pytest.mark.parametrize("name", MOVED)
def test_a_page_that_has_moved_is_found_at_its_old_address(site: Path, name: str) -> None:
    old = site / "docs" / f"{name}.html"
    (to,) = re.findall(r"url=([^\"]+)", old.read_text(encoding="utf-8"))
    assert (old.parent / to).resolve() == site / "headcount" / "docs" / f"{name}.html"
    assert (old.parent / to).is_file()


def test_what_is_searched_is_found(read) -> None:
    page = read("search.html?q=rendezvous")
    expect(page.locator("#search-results li").first).to_be_visible()


@pytest.mark.parametrize("width", [360, 900, 1920])
@pytest.mark.parametrize(
    "name", ["index", "solutions/11_ring_all_reduce", "solutions/16_scale_math", "docs/servers"]
)
def test_a_page_fits_the_window(read, page: Page, name: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    read(f"{name}.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # the theme lets this part scroll, and we do not
    assert page.locator(".content").evaluate("part => part.scrollWidth - part.clientWidth") == 0


def test_a_wide_picture_scrolls_in_its_own_box(read, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    read("notebooks/02_broadcast.html")
    box = page.locator("article p:has(> img.wide)").first
    expect(box).to_have_attribute("tabindex", "0")
    drawn = box.locator("img").evaluate("image => image.clientWidth / image.naturalWidth")
    assert drawn == pytest.approx(0.5, abs=0.01)  # its words are as large as on a desk
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=box.element_handle())
    # where there is room, nothing scrolls, and the focus passes it by
    page.set_viewport_size({"width": 900, "height": 800})
    expect(box).not_to_have_attribute("tabindex", "0")


def test_on_paper_there_is_the_chapter_alone(read, page: Page) -> None:
    read("solutions/02_broadcast.html")
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Edition")).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["index", "solutions/index", "notebooks/02_broadcast", "solutions/02_broadcast"]
)
def test_axe_finds_nothing(read, page: Page, scheme: str, name: str) -> None:
    page.emulate_media(color_scheme=scheme)
    read(f"{name}.html")
    assert findings(page, "article") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_telephone(read, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 800})
    for name in ("index", "solutions/11_ring_all_reduce"):
        read(f"{name}.html")
        assert findings(page, "article") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_follow_the_theme_that_the_reader_chose(read, page: Page, theme: str) -> None:
    # the system says the opposite
    page.emulate_media(color_scheme="dark" if theme == "light" else "light")
    read("solutions/02_broadcast.html")
    page.evaluate("theme => document.body.dataset.theme = theme", theme)
    waits = (Wait(0, (1,), "waits", call="send"), Wait(1, (0,), "waits", call="send"))
    page.locator("article").evaluate(
        "(home, html) => home.insertAdjacentHTML('afterbegin', html)", graph_of(waits, (0, 1)).image
    )
    assert is_dark(page.get_by_role("img", name="Who waits for whom.").first) == (theme == "dark")
    assert is_dark(picture(page, "broadcast.png")) == (theme == "dark")


def picture(page: Page, name: str) -> Locator:
    """A picture of the course."""
    return page.locator(f"article img[src$='/{name}']")
