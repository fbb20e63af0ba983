"""The pages of a class in a browser, from files and without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from grader.classroom.pages import write
from grader.classroom.results import ClassResults, Pair
from tests.classes import HOSTILE, hostile_class, large_class, small_class
from tests.system.browser.test_accessibility import findings

#: One worker has the browser.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]


@pytest.fixture
def opened(page: Page, tmp_path: Path):
    """Open a file of a class; what the page complains of fails the test."""
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        complaints.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.extend(
        [request.url] if not request.url.startswith(("file:", "data:")) else []
    ))  # fmt: skip

    def open_(results: ClassResults, name: str = "class.html", pairs: Sequence[Pair] = ()) -> Page:
        write(results, tmp_path, pairs)
        page.goto((tmp_path / name).as_uri())
        return page

    yield open_
    assert complaints == []


def names(page: Page) -> list[str]:
    rows = page.locator("#class tbody tr:visible th a")
    return rows.all_inner_texts()


def head(page: Page, name: str):
    return page.locator("#class thead th").filter(has_text=re.compile(f"^{name}"))


def test_columns_sort_by_a_click_and_by_the_keyboard(opened) -> None:
    page = opened(small_class())
    assert names(page)[:3] == ["Ada Lovelace", "Bob", "Cyd"]
    points = head(page, "Points")
    assert points.get_attribute("aria-sort") is None
    points.get_by_role("button").click()
    assert points.get_attribute("aria-sort") == "descending"
    assert names(page)[0] == "Ada Lovelace"
    assert names(page)[-1] == "Dee"  # has no score
    points.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert points.get_attribute("aria-sort") == "ascending"
    assert names(page)[:2] == ["Dee", "Eve"]
    head(page, "Student").get_by_role("button").click()
    assert points.get_attribute("aria-sort") is None
    assert names(page) == ["Ada Lovelace", "Bob", "Cyd", "Dee", "Eve", "Fay, Gus"]
    page.get_by_role("button", name="exchange").click()
    assert names(page)[0] == "Ada Lovelace"


@pytest.mark.parametrize(
    "words, found",
    [
        ("lovelace ADA", ["Ada Lovelace"]),
        ("103", ["Cyd"]),
        ("deadlock", ["Bob"]),
        ("does not parse", ["Bob"]),
        ("nobody of that name", []),
    ],
)
def test_the_search_finds_names_numbers_and_diagnoses(opened, words, found) -> None:
    page = opened(small_class())
    page.get_by_label("Search").fill(words)
    expect(page.locator("#shown")).to_have_text(f"{len(found)} of 6 shown")
    assert names(page) == found
    assert page.locator("#nobody").is_visible() == (not found)
    page.get_by_label("Search").fill("")
    assert len(names(page)) == 6


def test_accents_need_not_be_typed(opened) -> None:
    page = opened(hostile_class())
    page.get_by_label("Search").fill("zoe nguyen")
    assert names(page) == ["Zoë Nguyễn 名前 محمد"]


def test_the_table_is_narrowed_to_who_needs_a_look(opened) -> None:
    page = opened(small_class())
    show = page.get_by_label("Show")
    for label, found in (
        ("where the grader failed", ["Cyd", "Dee"]),
        ("graded without a sandbox", ["Fay, Gus"]),
        ("who hung", ["Bob"]),
        ("changed since the earlier grading", ["Bob"]),
        ("with nothing handed in", ["Eve"]),
        ("everyone", ["Ada Lovelace", "Bob", "Cyd", "Dee", "Eve", "Fay, Gus"]),
    ):
        show.select_option(label=label)
        assert names(page) == found


def test_nothing_that_a_stranger_wrote_runs(opened) -> None:
    results = hostile_class()
    page = opened(results)
    assert len(names(page)) == len(HOSTILE)
    page.locator("#class th a").first.hover()
    for column in page.locator("#class thead button").all():
        column.click()
    assert page.title() == f"{results.title}: the class"
    page.locator("#class a[href='feedback/h3.html']").click()
    expect(page).to_have_title(re.compile("onmouseover"))
    page.locator("summary").first.click()
    assert page.title() != "owned"


def test_a_script_that_slipped_in_would_not_run(page: Page, tmp_path: Path) -> None:
    write(small_class(), tmp_path)
    for name in ("class.html", "feedback/bob.html"):
        path = tmp_path / name
        slipped = "<script>document.title = 'owned'</script>"
        slipped += "<img src=x onerror=\"document.title = 'owned'\">"
        path.write_text(path.read_text("utf-8").replace("<main>", f"<main>{slipped}"), "utf-8")
        page.goto(path.as_uri())
        expect(page.locator("h1")).to_have_text("Week 2")
        assert page.title().startswith("Week 2")


def test_without_scripts_everything_is_there(browser: Browser, tmp_path: Path) -> None:
    write(small_class(), tmp_path)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "class.html").as_uri())
    assert len(names(page)) == 6
    assert not page.get_by_label("Search").is_visible()
    assert page.locator("#class thead button").count() == 0
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["class.html", "similar.html", "feedback/bob.html", "feedback/dee.html"]
)
def test_axe_finds_nothing(opened, page: Page, scheme: str, name: str) -> None:
    page.emulate_media(color_scheme=scheme)
    opened(small_class(), name, [Pair("ada", "bob", 0.913, 12.5, ("broadcast",))])
    for summary in page.locator("summary").all():
        summary.click()
    assert findings(page) == []


@pytest.mark.parametrize("width", [320, 420, 900])
def test_narrow_windows_scroll_tables_and_not_the_page(opened, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for results in (small_class(), hostile_class()):
        for name in ("class.html", f"feedback/{results.rows[1].key}.html"):
            opened(results, name)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [320, 900, 1440, 1920])
def test_no_table_but_that_of_students_is_cut_off(opened, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    opened(small_class())
    for table in page.locator(".scroll:has(.stacked)").all():
        box = table.evaluate("one => [one.scrollWidth, one.clientWidth]")
        assert box[0] <= box[1], table.inner_text()


def test_a_mistake_leads_to_those_who_made_it_and_a_cell_to_its_verdict(opened) -> None:
    page = opened(small_class())
    page.locator("td.mistakes summary").filter(has_text="wrong result").click()
    page.locator("td.mistakes a", has_text="Bob").first.click()
    expect(page.locator("article#broadcast:target")).to_be_visible()
    page.go_back()
    page.locator("#class td.hung a").click()
    expect(page.locator("article#exchange:target")).to_be_visible()


def test_on_paper_nothing_scrolls_and_nothing_is_to_be_clicked(opened, page: Page) -> None:
    opened(small_class())
    page.emulate_media(media="print")
    for region in page.locator(".scroll").all():
        assert region.evaluate("one => getComputedStyle(one).maxHeight") == "none"
    expect(page.get_by_label("Search")).to_be_hidden()
    expect(page.get_by_role("navigation")).to_be_hidden()


def test_a_large_class_sorts_and_searches(opened) -> None:
    page = opened(large_class(500, 45))
    page.get_by_label("Search").fill("student 49")
    expect(page.locator("#shown")).to_have_text("15 of 500 shown")
    page.get_by_role("button", name="exercise_44").click()
    assert len(names(page)) == 15
