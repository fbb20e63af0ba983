"""docs/verdicts.md says of published schedules what the grader says."""

from __future__ import annotations

import pytest

from tools.verdicts import PAGE, PROGRAMS, PUBLISHED, page, section


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda one: one.title)
def test_the_page_says_of_a_published_schedule_what_the_grader_says(published):
    assert section(published) in PAGE.read_text(encoding="utf-8")


def test_the_page_has_a_section_for_each_program_and_nothing_else():
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(page([]).rstrip("\n"))
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert titles == [one.title for one in PUBLISHED]
    assert {path.stem for path in PROGRAMS.glob("*.py")} == {one.program for one in PUBLISHED}
