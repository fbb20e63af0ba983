"""The calculator of chapter 16 as a reader turns it, with keys alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from grader.course.calculator import TrainingPlan
from tests.system.browser.lab import Reader, Server
from tests.system.browser.test_accessibility import findings

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]


#: Numbers of the calculator that have a slider.
SLIDERS = 3


def memory(plan: TrainingPlan) -> str:
    return f"need {plan.memory.total / 1e9:,.1f} GB"


def test_turning_knobs_changes_the_numbers(server: Server, page: Page) -> None:
    reader = Reader(server, page)
    reader.open("notebooks/16_scale_math.ipynb")
    reader.cell("from grader.api.calculator import").run()
    cell = reader.cell("calculator(hidden=4096")
    cell.run()
    status = cell.output.get_by_role("status")
    expect(status).to_contain_text(memory(TrainingPlan(zero=0)))
    # each slider appears on its own, and gets its name then
    expect(cell.output.locator(".noUi-handle[aria-label]")).to_have_count(SLIDERS)
    cell.output.first.evaluate("output => output.id = 'looked-at'")
    assert findings(page, "#looked-at") == []
    # with the arrow keys
    cell.output.get_by_role("spinbutton", name="hidden").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(status).to_contain_text(memory(TrainingPlan(zero=0, hidden=4224)))
    expect(cell.output.get_by_role("spinbutton", name="vocabulary")).to_be_focused()
    # by typing
    cell.output.get_by_role("spinbutton", name="layers").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("31")
    page.keyboard.press("Enter")
    expect(status).to_contain_text(memory(TrainingPlan(zero=0, hidden=4224, layers=31)))
    # a slider and its field move each other; both have names
    slider = cell.output.get_by_role("slider", name="layers, slider")
    expect(slider).to_have_attribute("aria-valuenow", "30.0")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(cell.output.get_by_role("spinbutton", name="layers")).to_have_value("32")
    expect(status).to_contain_text(memory(TrainingPlan(zero=0, hidden=4224, layers=32)))
    page.keyboard.press("ArrowLeft")
    for name in ("replicas (DP)", "ZeRO stage"):
        expect(cell.output.get_by_role("slider", name=f"{name}, slider")).to_be_visible()
    assert findings(page, "#looked-at") == []
    # a box: its tick
    cell.output.get_by_role("checkbox", name="recompute activations").focus()
    page.keyboard.press("Space")
    plan = TrainingPlan(zero=0, hidden=4224, layers=31, recompute=True)
    expect(status).to_contain_text(memory(plan))
    # what cannot be is said
    cell.output.get_by_role("spinbutton", name="stages (PP)").fill("64")
    page.keyboard.press("Enter")
    expect(status).to_contain_text("fewer stages, or more layers")
    # the fields at odds are marked, by more than a colour, and the last plan's numbers stay
    for name in ("✗ stages (PP)", "✗ layers"):
        expect(cell.output.get_by_role("spinbutton", name=name)).to_be_visible()
    expect(cell.output.get_by_role("img", name="Memory of a device")).to_be_visible()
    assert findings(page, "#looked-at") == []
    with server.dark():
        reader.open("notebooks/16_scale_math.ipynb")
    cell = reader.cell("calculator(hidden=4096")
    cell.run()
    expect(cell.output.get_by_role("spinbutton", name="hidden")).to_be_visible()
    cell.output.first.evaluate("output => output.id = 'looked-at'")
    assert findings(page, "#looked-at") == []


def test_a_saved_notebook_shows_the_numbers_without_a_kernel(reader: Reader) -> None:
    reader.open("solutions/16_scale_math.ipynb")
    cell = reader.cell("calculator(hidden=4096")
    expect(cell.output.first).to_contain_text("memory of a device")
    expect(cell.output.first).to_contain_text(f"{TrainingPlan(zero=0).memory.total / 1e9:,.2f} GB")
