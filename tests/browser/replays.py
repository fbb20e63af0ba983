"""A replay as somebody uses it, wherever it stands."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect


class Watched:
    """A replay on a page.

    Args:
        page: where the keyboard is.
        place: the player's element.
    """

    def __init__(self, page: Page, place: Locator) -> None:
        self._page = page
        self.place = place

    def button(self, name: str) -> Locator:
        """One of its buttons."""
        return self.place.get_by_role("button", name=name, exact=True)

    def says(self, text: str) -> None:
        """It tells that it is at some round, in words and in its picture's name."""
        expect(self.place.locator(".gr-caption")).to_contain_text(re.compile(text))
        expect(self.place.locator("svg")).to_have_attribute("aria-label", re.compile(text))

    def drawn(self) -> str:
        """The picture as it is now."""
        return self.place.locator("svg").inner_html()

    def is_stepped(self) -> None:
        """Step it in every way there is; every step changes the picture."""
        expect(self.place).to_have_count(1)
        self.says("Round 1 of")
        seen = [self.drawn()]
        self.button("One round on").click()
        self.says("Round 2 of")
        seen.append(self.drawn())
        self._page.keyboard.press("ArrowRight")
        self.says("(Round 3 of|The end)")
        seen.append(self.drawn())
        assert len(set(seen)) == 3
        self._page.keyboard.press("ArrowLeft")
        self.says("Round 2 of")
        assert self.drawn() == seen[1]
        self._page.keyboard.press("End")
        self.says("The end")
        self._page.keyboard.press("Home")
        self.says("Round 1 of")
        assert self.drawn() == seen[0]
        slider = self.place.get_by_role("slider", name="Round")
        slider.focus()
        self._page.keyboard.press("ArrowRight")
        self.says("Round 2 of")
        self.button("First round").focus()
        self._page.keyboard.press("Enter")
        self.says("Round 1 of")
        self.place.get_by_role("combobox").select_option("fast")
        self.button("Play").click()
        expect(self.button("Pause")).to_be_visible()
        self.says("The end")
        expect(self.button("Play")).to_be_visible()
