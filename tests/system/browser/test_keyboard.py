"""A chapter worked through in JupyterLab by keyboard alone, as ``make lab`` opens it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.system.browser.lab import PATIENCE, Reader
from tests.system.browser.test_lab import REPLAY, RIGHT, WRONG

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

#: Counts what a mouse or a finger does.
_COUNT = """
    window.pointed = 0;
    for (const kind of ["pointerdown", "mousedown", "touchstart", "wheel"]) {
        addEventListener(kind, () => window.pointed++, { capture: true });
    }
"""

#: More stops of the Tab key than any cell has.
_FAR = 25


class Typist:
    """A reader without a mouse.

    Args:
        page: with a notebook that has just been opened.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.press = page.keyboard.press

    @property
    def cell(self) -> Locator:
        """The cell that JupyterLab's keys act on."""
        return self.page.locator(".jp-Notebook .jp-Cell.jp-mod-active")

    @property
    def output(self) -> Locator:
        """What that cell shows."""
        return self.cell.locator(".jp-OutputArea-output")

    @property
    def focus(self) -> Locator:
        """What has the keyboard."""
        return self.page.locator(":focus")

    def goes_down_to(self, text: str) -> None:
        """Press the down arrow until the cell with a text in its code is reached."""
        cells = self.page.locator(".jp-Notebook .jp-Cell").count()
        for _ in range(cells):
            if text in self.cell.locator(".jp-InputArea").inner_text():
                return
            self.press("ArrowDown")
        raise AssertionError(f"no cell below has {text!r}")

    def tabs_to(self, target: Locator, key: str = "Tab") -> None:
        """Press Tab until something has the keyboard."""
        for _ in range(_FAR):
            self.press(key)
            if target.evaluate("one => one === document.activeElement"):
                return
        raise AssertionError(f"Tab does not reach {target}")

    def writes(self, code: str) -> None:
        """Replace the cell's code, and leave its editor."""
        self.press("Enter")
        expect(self.focus).to_have_class(re.compile("cm-content"))
        self.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(code)
        self.press("Escape")

    def runs(self) -> None:
        """Run the cell where it is, and wait for its end."""
        prompt = self.cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        self.press("Control+Enter")
        expect(prompt).not_to_have_text(before)
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=PATIENCE * 1000)


def test_a_chapter_is_worked_through_by_keyboard_alone(reader: Reader) -> None:
    page = reader.page
    page.add_init_script(_COUNT)
    reader.open("notebooks/02_broadcast.ipynb")
    typist = Typist(page)
    # its first cell has the keyboard; cells run one after the other
    expect(typist.cell).to_contain_text("02 · Broadcast")
    for text in (
        "from grader import check",
        "What it does",
        "def built_in",
        "The call looks the same",
        "def each_has_its_own",
        "Predict",
    ):
        typist.press("Shift+Enter")
        expect(typist.cell).to_contain_text(text)
    # a guess opens, and says whether it is right
    guess = typist.cell.locator("details", has_text="Yes: ")
    expect(guess.locator("p")).to_be_hidden()
    typist.tabs_to(guess.locator("summary"))
    typist.press("Enter")
    expect(guess.locator("p")).to_contain_text("Yes: ")
    typist.tabs_to(typist.cell, "Shift+Tab")
    typist.press("Shift+Enter")
    expect(typist.cell).to_contain_text("def one_leaves_it_out")
    typist.runs()
    expect(typist.output).to_contain_text(["deadlock"])
    # an exercise, at first as it is and then wrong
    typist.goes_down_to("Everyone's x becomes src's x.")
    typist.runs()
    expect(typist.output).to_contain_text("○ broadcast")
    typist.writes(WRONG)
    typist.runs()
    expect(typist.output).to_contain_text("± broadcast")
    # all its cases are a fold away
    fold = page.locator("summary", has_text=re.compile(r"All \d+ cases"))
    details = typist.output.locator("details", has=fold)
    expect(details.locator("li").first).to_be_hidden()
    typist.tabs_to(details.locator("summary"))
    typist.press("Enter")
    expect(details.locator("li").first).to_be_visible()
    typist.press("Enter")
    expect(details.locator("li").first).to_be_hidden()
    typist.tabs_to(typist.cell, "Shift+Tab")
    # a replay of it, in a cell of its own
    typist.press("b")
    typist.writes(REPLAY)
    typist.runs()
    replay = typist.output.locator(".gather-round-replay")
    caption = replay.locator(".gr-caption")
    # it plays by itself until somebody steps it
    typist.tabs_to(replay.get_by_role("button", name="First", exact=True))
    typist.press("Enter")
    expect(caption).to_contain_text("Before round 1 of")
    typist.tabs_to(replay.get_by_role("button", name="Next", exact=True))
    typist.press("Enter")
    expect(caption).to_contain_text("Round 1 of")
    typist.press("Space")
    expect(caption).to_contain_text("Round 2 of")
    typist.tabs_to(replay.get_by_role("slider", name="Round"))
    typist.press("ArrowLeft")
    expect(caption).to_contain_text("Round 1 of")
    typist.tabs_to(replay.locator(".gr-stage"))
    typist.press("End")
    expect(caption).to_contain_text("the end")
    messages = replay.locator("details")
    typist.tabs_to(messages.locator("summary"))
    typist.press("Enter")
    expect(messages.locator("li").first).to_be_visible()
    # it is left by one key from anywhere in it, or passed by Tab
    typist.press("Escape")
    expect(typist.focus).to_have_class(re.compile("jp-Cell"))
    typist.tabs_to(messages.locator("summary"))
    still = typist.output.get_by_text("All rounds in one picture")
    typist.tabs_to(still)
    typist.press("Enter")
    expect(typist.output.get_by_role("img", name="Every round as a picture.")).to_be_visible()
    typist.tabs_to(typist.cell, "Shift+Tab")
    # the right answer, and from its verdict to the next exercise
    typist.press("ArrowUp")
    typist.writes(RIGHT)
    typist.runs()
    expect(typist.output).to_contain_text("✓ broadcast passed")
    heading = page.get_by_role("heading", name="Exercise: tree_broadcast")
    expect(heading).not_to_be_in_viewport()
    typist.tabs_to(typist.output.get_by_role("link", name="tree_broadcast"))
    typist.press("Enter")
    expect(heading).to_be_in_viewport()
    typist.goes_down_to("def tree_broadcast")
    typist.runs()
    expect(typist.output).to_contain_text("○ tree_broadcast")
    assert page.evaluate("pointed") == 0
