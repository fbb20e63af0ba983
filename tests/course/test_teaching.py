"""``docs/teaching.md``: its times and points are those of the chapters, and none is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course.answers import FOLDER
from grader.course.index import course_index, title_of
from grader.exercise.answers import read_answers

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("solutions/??_*.py")}

#: The chapters' names by number, such as ``02``.
NAMES = {name[:2]: name for name in sorted(SOURCES)}


def minutes(chapter):
    """The time that a chapter says it takes, in minutes."""
    found = re.search(r"^# \*\*Time:\*\* (\d+)(½?) (minutes|hours)", SOURCES[NAMES[chapter]], re.M)
    return int((int(found[1]) + 0.5 * bool(found[2])) * (60 if found[3] == "hours" else 1))


def exercises(chapter):
    return course_index().chapters()[NAMES[chapter]]


def points(chapter):
    return sum(exercise.points for exercise in exercises(chapter))


def needs(chapter):
    """The chapters that a chapter says it needs."""
    said = SOURCES[NAMES[chapter]].partition("**You need**")[2].partition("**Time:**")[0]
    return set(listed(re.sub(r"\]\([^)]*\)|\n# ", " ", said).replace("[", "").replace("  ", " ")))


def listed(text):
    """The chapters in a text such as ``00 to 03, 12``."""
    return [
        f"{number:02}"
        for first, last in re.findall(r"(\d\d)(?: to (\d\d))?", text)
        for number in range(int(first), int(last or first) + 1)
    ]


def in_hours(time):
    return f"{time // 60} h {time % 60:02}" if time % 60 else f"{time // 60} h"


def syllabus(weeks):
    """The chapters of each week in the syllabus of so many weeks, and all rows of its table."""
    table = PAGE.partition(f"### {weeks} weeks")[2].partition("| week |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    return [listed(row[1]) for row in rows[:-1]], rows


SYLLABI = {"Four": 4, "Eight": 8, "Fourteen": 14}


@pytest.mark.parametrize("weeks", SYLLABI)
def test_a_syllabus_has_the_chapters_times_and_points(weeks):
    plan, rows = syllabus(weeks)
    assert len(plan) == SYLLABI[weeks]
    for number, (chapters, row) in enumerate(zip(plan, rows[:-1], strict=True), 1):
        time, worth = sum(map(minutes, chapters)), sum(map(points, chapters))
        assert [row[0], *row[2:]] == [str(number), in_hours(time), f"{worth:g}"]
    taken = [chapter for chapters in plan for chapter in chapters]
    time, worth = sum(map(minutes, taken)), sum(map(points, taken))
    assert rows[-1] == ["all", "", in_hours(time), f"{worth:g}"]


@pytest.mark.parametrize("weeks", SYLLABI)
def test_a_syllabus_has_what_a_chapter_needs_before_it(weeks):
    plan, _ = syllabus(weeks)
    taken = [chapter for chapters in plan for chapter in chapters]
    for i, chapter in enumerate(taken):
        assert needs(chapter) <= set(taken[:i]), chapter


def test_the_longest_syllabus_is_the_whole_course_in_order():
    plan, _ = syllabus("Fourteen")
    assert [chapter for chapters in plan for chapter in chapters] == list(NAMES)


def test_the_hours_of_the_goals_add_up():
    table = PAGE.partition("| goal | chapters | hours |\n|---|---|---|\n")[2].partition("\n\n")[0]
    taken = set()
    for row in table.splitlines():
        _, _, chapters, hours, _ = (cell.strip() for cell in row.split("|"))
        taken |= set(listed(chapters))
        assert all(needs(chapter) <= taken for chapter in taken), row
        assert int(hours) == round(sum(map(minutes, taken)) / 60), row


def test_what_nothing_needs_is_needed_by_nothing():
    sentence = re.search(r"Nothing needs chapters (.*?)\.", PAGE)[1]
    needed = {before for chapter in NAMES for before in needs(chapter)}
    assert set(listed(sentence)) == set(NAMES) - needed - {"30"}


def test_every_chapter_has_its_entry_which_is_short():
    entries = PAGE.partition("## Chapter by chapter\n")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert [entry.partition("\n")[0] for entry in entries] == [title_of(n) for n in NAMES.values()]
    for chapter, entry in zip(NAMES, entries, strict=True):
        time, count, worth = minutes(chapter), len(exercises(chapter)), points(chapter)
        _, _, figures, *said = entry.strip().splitlines()
        assert figures == (
            f"*{in_hours(time) if time >= 120 else f'{time} minutes'},"
            f" {count} exercise{'s' * (count != 1)}, {worth:g} point{'s' * (worth != 1)}.*"
            f" [The notebook](../notebooks/{NAMES[chapter]}.ipynb)"
        ), chapter
        assert len(said) <= 9, chapter  # with a blank line
        parts = [line[4:].partition(".**")[0] for line in said if line.startswith("- **")]
        assert parts == ["Aims", "They write", "Ask"], chapter


def test_what_is_counted_is_right():
    mistakes = [
        one for folder in FOLDER.glob("[0-9]*") for one in read_answers(folder) if one.speaks
    ]
    assert "More than 1,300 programs in `grader/course/answers/` each make one mistake" in PAGE
    assert len(mistakes) > 1300
    predictions = sum(source.count("**Predict:**") for source in SOURCES.values())
    assert f"The chapters ask {predictions} questions that begin with **Predict**" in PAGE


def test_exercises_that_are_named_exist():
    entries = PAGE.partition("## Chapter by chapter\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"In `(\w+)`,", entries))
    assert named
    assert named <= set(course_index())
