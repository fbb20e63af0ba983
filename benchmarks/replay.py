"""How long a replay takes to show the next round, in Chromium, and how large it is.

Eight ranks with sixteen elements each go around the ring, fourteen rounds. A
step is measured in the page, from the click to the frame in which the browser
has drawn the change, beside a click on a plain button that changes one word:
the ratio is what the picture itself costs.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from playwright.sync_api import Page, sync_playwright

from benchmarks.figures import Figure
from grader import replay
from grader.report.strip import still

#: Goal for a step, in milliseconds: what a person takes for at once.
GOAL = 50

#: Goal for the page, in kB: it lies in the notebook.
LARGEST = 300

PLAIN = "<button>word</button><script>\n" + (
    "const b = document.querySelector('button');"
    "b.addEventListener('click', () => { b.textContent = b.textContent === 'a' ? 'b' : 'a'; });"
    "</script>"
)

CLICKS = """async ([selector, count]) => {
    const button = document.querySelector(selector), times = [];
    const drawn = () => new Promise((done) => requestAnimationFrame(() => {
        const channel = new MessageChannel();  // runs once the frame has been painted
        channel.port1.onmessage = done;
        channel.port2.postMessage(0);
    }));
    for (let i = 0; i < count; i++) {
        await drawn();
        const began = performance.now();
        button.click();
        // asking for the size makes the browser lay out what has changed
        document.body.getBoundingClientRect();
        times.push(performance.now() - began);
    }
    return times;
}"""


def ring_of_sixteen() -> None:
    """Sixteen elements around the ring, as a student might write it."""
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = list((torch.arange(16.0) + 100 * rank).tensor_split(n))
    for step in range(2 * (n - 1)):
        out, into = chunks[(rank - step) % n], chunks[(rank - step - 1) % n]
        came = torch.empty_like(into)
        request = dist.isend(out, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        into.copy_(into + came if step < n - 1 else came)


def _times(page: Page, selector: str, count: int) -> list[float]:
    found: list[float] = page.evaluate(CLICKS, [selector, count])
    return found


def figures() -> Iterator[Figure]:
    """Yield the time of a step beside that of a plain button, and the size of the page.

    Raises:
        RuntimeError: there is no Chromium.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise RuntimeError("Chromium is not installed; on Debian: apt install chromium")
    with contextlib.redirect_stdout(io.StringIO()):  # outside of a notebook it prints itself
        shown = replay(ring_of_sixteen, 8)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        target, plain = Path(folder, "replay.html"), Path(folder, "plain.html")
        shown.save(target)
        plain.write_text(PLAIN, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        steps: list[float] = []
        words: list[float] = []
        for _ in range(5):
            page.goto(target.as_uri())
            steps += _times(page, ".gr-bar button:nth-of-type(4)", 14)
            page.goto(plain.as_uri())
            words += _times(page, "button", 14)
        browser.close()
    button = f"a plain button's {statistics.median(words):.1f} ms"
    yield Figure("a replay's slowest step, 8 ranks", max(steps), "ms", goal=GOAL)
    middle = statistics.median(steps)
    yield Figure("a replay's step", middle, "ms", button, middle / statistics.median(words))
    html, picture = len(shown._repr_html_()) / 1000, len(still(shown.film)) / 1000
    yield Figure("a replay's HTML", html, "kB", goal=LARGEST)
    yield Figure("its still picture", picture, "kB")
