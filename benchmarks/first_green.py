"""How long a learner waits: from ``make lab``, installed before, to the first green verdict.

    python -m benchmarks.first_green --repeat 5

JupyterLab is started as the Makefile starts it, on a copy of the course, and shows its first
chapter in Chromium, whose cache is empty.  A script runs the imports and types ``who_am_i`` as
soon as there are cells to type into; it waits for nothing in between.  Let nothing else run
meanwhile.

- *server*: until the address is printed
- *page*: until cells can be run, and wait for the kernel
- *imports*: until the chapter's first cell has run, in a kernel that may have to start before
- *check*: until the verdict is on the page

Beside the seconds stands the processor time that everything took until then, which hardly depends
on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, expect, sync_playwright
from rich.console import Console
from rich.table import Table

from tests.system.browser.conftest import FLAGS, chromium
from tests.system.browser.lab import PATIENCE, Reader, Server

#: Seconds from ``make lab`` to the verdict that are wanted on two idle processors.
GOAL = 12.0

ANSWER = """def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])


check(who_am_i)"""

SHARES = ("server", "page", "imports", "check")


class _Replies:
    """When the kernel has told the page that it has run a cell."""

    def __init__(self, page: Page) -> None:
        self.times: list[float] = []
        page.on("websocket", lambda socket: socket.on("framereceived", self._note))

    def _note(self, frame: str | bytes) -> None:
        text = frame if isinstance(frame, str) else frame.decode("utf-8", "replace")
        if '"execute_reply"' in text:
            self.times.append(time.monotonic())


def _processor_seconds(processes: Iterable[psutil.Process]) -> float:
    """Return what processes have used, and those of their children that have ended."""
    found = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found += times.user + times.system + times.children_user + times.children_system
    return found


def _tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def once(browser: Browser, home: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Measure one start; return the seconds of each share, and processor time by program."""
    us = psutil.Process()
    server = Server(home)
    printed = time.monotonic()
    try:
        before = _processor_seconds(_tree(us.pid)) - _processor_seconds(_tree(server.pid))
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        page = context.new_page()
        replies = _Replies(page)
        page.goto(server.printed)
        # until the page has asked for a kernel, JupyterLab loses what is to be run
        expect(page.locator("#jp-bottom-panel", has_text="Python 3 (ipykernel) |")).to_be_visible(
            timeout=PATIENCE * 1000
        )
        ready = time.monotonic()
        reader = Reader(server, page)
        reader.cell("from grader import check").start()
        stub = reader.cell("An int64 tensor [rank, world_size].")
        stub.write(ANSWER)
        stub.start()
        expect(stub.output).to_contain_text("✓ who_am_i passed", timeout=PATIENCE * 1000)
        green = time.monotonic()
        moments = (server.started, printed, ready, replies.times[0], green)
        shares = {
            share: until - since
            for share, since, until in zip(SHARES, moments, moments[1:], strict=False)
        }
        lab = _tree(server.pid)
        rest = [one for one in _tree(us.pid) if one not in lab]
        used = {
            "JupyterLab": _processor_seconds(lab[:1]),
            "kernels": _processor_seconds(lab[1:]),
            "browser": _processor_seconds(rest) - before,
        }
        context.close()
        server.end_kernels()
    finally:
        server.close()
    return shares, used


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure several times, and print the medians; 0 if the goal is met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    request = parser.parse_args(arguments)
    # a learner's Python compiles a module once, and not at every start
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        for turn in range(request.repeat):
            found.append(once(browser, Path(folder) / str(turn)))
        browser.close()
    table = Table()
    table.add_column("")
    for heading in ("median", "least", "most"):
        table.add_column(heading, justify="right")
    wholes = [sum(shares.values()) for shares, _ in found]
    rows = {share: [shares[share] for shares, _ in found] for share in SHARES}
    rows["make lab to green"] = wholes
    rows |= {f"processor: {name}": [used[name] for _, used in found] for name in found[0][1]}
    for name, seconds in rows.items():
        if name in ("make lab to green", "processor: JupyterLab"):
            table.add_section()
        figures = (statistics.median(seconds), min(seconds), max(seconds))
        table.add_row(name, *(f"{one:.2f} s" for one in figures))
    Console(highlight=False).print(table)
    met = statistics.median(wholes) <= GOAL
    print(f"The goal of {GOAL:g} s is {'met' if met else 'missed'}.")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
