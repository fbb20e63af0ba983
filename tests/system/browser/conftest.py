"""One browser and one JupyterLab for the tests of this folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.system.browser.lab import ROOT, Reader, Server

#: Where the pictures of failed tests lie.
FAILURES = ROOT / "build" / "browser-failures"

#: A browser that asks nobody on the network for anything.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str:
    """Return where Chromium is; without it, the test that asks is skipped."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Chromium is not installed; on Debian: apt install chromium")
    return path


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="package")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("lab"))
    yield found
    found.close()


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    found = context.new_page()
    yield found
    if getattr(request.node, "failed", False):
        FAILURES.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "_", request.node.name)
        found.screenshot(path=FAILURES / f"{name}.png")
        Path(FAILURES / f"{name}.html").write_text(found.content(), encoding="utf-8")
    context.close()


@pytest.fixture
def reader(server: Server, page: Page) -> Reader:
    return Reader(server, page)


@pytest.fixture(scope="package")
def exported(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The solved ring chapter, saved as a page."""
    target = tmp_path_factory.mktemp("exported") / "chapter.html"
    server.export("solutions/11_ring_all_reduce.ipynb", target)
    return target


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    """The browser's own processes come and go; what a server has started is looked at below."""


@pytest.fixture(autouse=True)
def _no_kernel_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test's kernels end with it, and leave no rank behind."""
    yield
    if "server" in request.fixturenames:
        request.getfixturevalue("server").end_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    report = yield
    if report.when == "call" and report.failed:
        item.failed = True  # the page's fixture keeps a picture
    return report
