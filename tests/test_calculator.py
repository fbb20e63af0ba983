"""The calculator: the same numbers as text, as a page and behind its controls."""

from __future__ import annotations

import re

import pytest
from jupyter_client.manager import start_new_kernel

from grader.api.calculator import TrainingPlan, calculator
from grader.core.errors import RequestError
from tests.test_kernel import Kernel


def test_its_text_has_the_numbers_of_the_plan(capsys):
    found = calculator(dp=8, zero=3, tp=2, pp=2)
    text, plan = repr(found), TrainingPlan(dp=8, zero=3, tp=2, pp=2)
    assert capsys.readouterr().out == text + "\n"  # a script sees it, too
    for value in plan.memory:
        assert f"{value / 1e9:,.2f} GB" in text
    assert (
        f"memory of a device {plan.memory.total / 1e9:15,.2f} GB".split()
        == next(line for line in text.splitlines() if line.startswith("memory")).split()
    )
    for overlap in plan.overlaps:
        assert f"{overlap.ratio:.3f}, " in text
        assert overlap.what in text
    assert "4.225, too long to hide" in text
    assert not re.search(r"0x[0-9a-f]", text)


def test_nothing_is_sent_where_every_degree_is_one():
    assert repr(calculator(dp=1)).endswith("nothing is sent: every degree is 1")


def test_an_unknown_field_is_named():
    with pytest.raises(RequestError, match="no 'width'; it has hidden, layers"):
        calculator(width=3)


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3")
    kernel = Kernel(manager, client)
    kernel.execute("from grader.api.calculator import calculator\nfound = calculator(dp=1)\n")
    yield kernel
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def shown(kernel):
    """The page below the controls."""
    return kernel.execute("print(found.widget.children[1].value)")["stream"]


def test_a_notebook_gets_controls_and_the_text(kernel):
    data = kernel.execute("found")["data"]
    assert set(data) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert data["text/plain"] == repr(calculator(dp=1))


def turn(kernel, label, value):
    code = f"[c] = [c for c in found.widget.children[0].children if c.description == {label!r}]\n"
    found = kernel.execute(code + f"c.value = {value!r}")
    assert found["error"] is None


def test_turning_a_knob_changes_page_and_text(kernel):
    before = shown(kernel)
    turn(kernel, "layers", 16)
    turn(kernel, "ZeRO stage", 2)
    turn(kernel, "replicas (DP)", 4)
    turn(kernel, "GB/s outside", 25.0)
    turn(kernel, "gated MLP (GLU)", False)
    plan = TrainingPlan(layers=16, zero=2, dp=4, bandwidth=25e9, glu=False)
    after = shown(kernel)
    assert after != before
    assert f"{plan.memory.total / 1e9:,.2f} GB" in after
    (ratio,) = (overlap.ratio for overlap in plan.overlaps)
    assert f"{ratio:.3f}" in after
    text = kernel.execute("print(repr(found))")["stream"]
    assert f"{plan.memory.total / 1e9:,.2f} GB" in text


def test_a_plan_that_cannot_be_is_said_in_its_place(kernel):
    turn(kernel, "layers", 1)
    turn(kernel, "stages (PP)", 2)
    assert "✗ 2 stages (pp) need as many layers" in shown(kernel)
    turn(kernel, "layers", 2)
    assert "memory of a device" in shown(kernel)
