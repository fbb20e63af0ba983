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
        expect(self.place.locator(".gr-stage svg")).to_have_attribute(
            "aria-label", re.compile(text)
        )

    def drawn(self) -> str:
        """The picture as it is now."""
        return self.place.locator(".gr-stage svg").inner_html()

    def is_stepped(self) -> None:
        """Step it in every way there is; every step changes the picture."""
        expect(self.place).to_have_count(1)
        # it may be playing by itself, or not yet; once it has begun, it keeps room for messages
        self.button("Last").click()
        self.says("the end")
        self.button("First").click()
        self.says("Before round 1 of")
        seen = [self.rests()]
        self.button("Next").click()
        self.says("Round 1 of")
        seen.append(self.rests())
        self._page.keyboard.press("ArrowRight")
        self.says("Round 2 of")
        seen.append(self.rests())
        assert len(set(seen)) == 3
        self._page.keyboard.press("ArrowLeft")
        self.says("Round 1 of")
        assert self.rests() == seen[1]
        self._page.keyboard.press("End")
        self.says("the end")
        self._page.keyboard.press("Home")
        self.says("Before round 1 of")
        assert self.rests() == seen[0]
        slider = self.place.get_by_role("slider", name="Round")
        slider.focus()
        self._page.keyboard.press("ArrowRight")
        self.says("Round 1 of")
        self.button("First").focus()
        self._page.keyboard.press("Enter")
        self.says("Before round 1 of")
        self.place.get_by_role("combobox").select_option("fast")
        self.button("Play").click()
        expect(self.button("Pause")).to_be_visible()
        self.says("the end")
        expect(self.button("Play")).to_be_visible()

    def rests(self) -> str:
        """The picture as it is once all messages have arrived."""
        expect(self.place.locator(".gr-chunk")).to_have_count(0)
        return self.drawn()

    def is_stepped_from_its_picture(self) -> None:
        """Click on the picture; from there, keys step the player, and leave it nowhere."""
        self.button("First").click()
        self.place.locator(".gr-stage svg").click()
        keyboard = self._page.keyboard
        for key, text in (
            *(
                ("ArrowRight", "Round 1 of"),
                ("ArrowRight", "Round 2 of"),
                ("ArrowLeft", "Round 1 of"),
            ),
            *(("ArrowLeft", "Before round 1"), ("ArrowLeft", "Before round 1")),
            *(("End", "the end"), ("ArrowRight", "the end"), ("Home", "Before round 1")),
        ):
            keyboard.press(key)
            self.says(text)
        keyboard.press("Space")
        expect(self.button("Pause")).to_be_visible()
        keyboard.press("Space")
        expect(self.button("Play")).to_be_visible()
        inside = "place => place.contains(document.activeElement)"
        assert self.place.evaluate(inside)
