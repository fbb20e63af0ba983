"""The calculator: the same numbers as text, as a page and behind its controls."""

from __future__ import annotations

import re

import pytest

from grader.course.calculator import TrainingPlan, calculator, page
from headcount.core.errors import RequestError
from tests.grader.test_kernel import Kernel
from tests.kernels import start_kernel


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


#: One worker has the kernel.
in_kernel = pytest.mark.xdist_group("in_kernel")


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_kernel()
    kernel = Kernel(manager, client)
    kernel.execute("from grader.api.calculator import calculator\nfound = calculator(dp=1)\n")
    yield kernel
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def shown(kernel):
    """The page below the controls."""
    return kernel.execute("print(found.widget.children[3].value)")["stream"]


@in_kernel
@pytest.mark.exhaustive
def test_a_notebook_gets_controls_and_the_text(kernel):
    data = kernel.execute("found")["data"]
    assert set(data) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert data["text/plain"] == repr(calculator(dp=1))


#: In the kernel: the number fields and boxes, by label, and the sliders beside some of them.
CONTROLS = """
fields, sliders = {}, {}
rows = found.widget.children
for row in (*rows[:3], rows[4]):
    for c in row.children:
        if c.description:
            fields[c.description] = last = c
        else:
            sliders[last.description] = c
"""


def turn(kernel, label, value, kind="fields"):
    found = kernel.execute(f"{CONTROLS}\n{kind}[{label!r}].value = {value!r}")
    assert found["error"] is None


def value(kernel, label, kind="fields"):
    return int(kernel.execute(f"{CONTROLS}\nprint({kind}[{label!r}].value)")["stream"])


@in_kernel
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


@in_kernel
def test_a_plan_that_cannot_be_is_said_in_its_place(kernel):
    turn(kernel, "layers", 1)
    turn(kernel, "stages (PP)", 2)
    page = shown(kernel)
    assert "✗ 2 stages (pp) need as many layers" in page
    # the rest is kept, the fields at odds are marked, and nothing else is
    assert "Below: the last plan that can be" in page
    assert "memory of a device" in page
    marked = f"{CONTROLS}\nprint([name for name, c in fields.items() if c._dom_classes])"
    assert kernel.execute(marked)["stream"] == "['✗ layers', '✗ stages (PP)']\n"
    turn(kernel, "✗ layers", 2)
    assert "✗" not in shown(kernel)
    assert kernel.execute(marked)["stream"] == "[]\n"


@in_kernel
def test_what_does_not_fit_is_said_and_drawn(kernel):
    turn(kernel, "GB of memory", 0.5)
    page, text = shown(kernel), kernel.execute("print(repr(found))")["stream"]
    assert re.search(r"of 0\.50 GB: [\d.]+ GB too much", text)
    assert re.search(r"would need [\d.]+ GB and has 0\.5 GB: [\d.]+ GB too much\.", page)
    assert "gather-wall gather-over" in page
    turn(kernel, "GB of memory", 4000.0)
    assert re.search(r"needs [\d.]+ GB of its 4,000 GB, so the plan fits\.", shown(kernel))
    assert "gather-wall gather-over" not in shown(kernel)


def drawn(page):
    """Where the wall stands and where the bar ends, in percent of the width."""
    (wall,) = re.findall(r'gather-wall[^"]*" style="left: (\d+)%', page)
    parts = re.findall(r'<span title="[^"]*" style="width: ([\d.]+)%', page)
    return float(wall), sum(map(float, parts))


def test_the_wall_does_not_move_and_the_bar_grows_with_the_memory():
    ends = {}
    for layers in (8, 32, 80):
        plan = TrainingPlan(layers=layers)
        wall, ends[layers] = drawn(page(plan))
        assert wall == 40
        assert ends[layers] == pytest.approx(40 * plan.memory.total / 80e9, abs=0.05)
        # what is cut off is said
        assert ("goes on to" in page(plan)) == (ends[layers] > 100)
    assert ends[8] < 40 < ends[80]


def test_the_headline_is_a_sentence():
    def headline(**fields):
        return re.findall(r"<strong>(.*?)</strong>", page(TrainingPlan(**fields)))[0]

    assert headline(zero=0) == (
        "Each of the 8 GPUs would need 167.4 GB and has 80 GB: 87.4 GB too much."
        " DP over 8 sends 4.2 times as long as the computation beside it: too long to hide."
    )
    assert headline(layers=4, dp=1) == "The GPU needs 24.6 GB of its 80 GB, so the plan fits."
    assert headline(layers=4, pp=2, dp=1).startswith("Each GPU of the first stage needs ")
    hidden = "PP over 2 can hide what it sends behind the computation."
    assert headline(layers=4, pp=2, dp=1).endswith(hidden)


@in_kernel
def test_a_slider_and_its_field_move_each_other(kernel):
    turn(kernel, "layers", 48, "sliders")
    assert value(kernel, "layers") == 49  # the slider begins at one layer
    turn(kernel, "replicas (DP)", 6, "sliders")
    assert value(kernel, "replicas (DP)") == 64
    turn(kernel, "ZeRO stage", 3, "sliders")
    plan = kernel.execute("print(found.plan.layers, found.plan.dp, found.plan.zero)")["stream"]
    assert plan == "49 64 3\n"
    # a number that the slider does not have stays in the field
    turn(kernel, "replicas (DP)", 100)
    assert value(kernel, "replicas (DP)", "sliders") == 6
    assert value(kernel, "replicas (DP)") == 100
    turn(kernel, "layers", 1000)
    assert value(kernel, "layers", "sliders") == 127
    assert value(kernel, "layers") == 1000


def test_a_pipeline_has_a_bubble_and_recomputation_costs_a_third():
    plan = TrainingPlan(pp=4, micro_batches=8)
    assert plan.bubble == 3 / 11  # 3 turns of 11 nothing has come yet, or all has gone
    text = repr(calculator(pp=4, micro_batches=8))
    longer = plan.flops_here / plan.peak_flops * 11 / 8
    assert f"27.3 % of a step, {longer:.3g} s with it" in text
    again = TrainingPlan(pp=4, micro_batches=8, recompute=True)
    assert again.flops_here == pytest.approx(plan.flops_here * 4 / 3)
    assert TrainingPlan(pp=4, micro_batches=1).bubble == 3 / 4
    assert TrainingPlan().bubble == 0


def test_recomputation_gives_gradients_more_to_hide_behind():
    """Backward takes 2 + 4 operations for each token and parameter in place of 4."""
    (once,), (again,) = (TrainingPlan(recompute=which).overlaps for which in (False, True))
    assert (round(once.ratio, 3), round(again.ratio, 3)) == (4.225, 2.817)
    assert again.what == f"{once.what}, which recomputes"
    # what stands beside a forward pass stays as it is
    once, again = (
        TrainingPlan(zero=3, tp=2, pp=2, recompute=which).overlaps for which in (False, True)
    )
    assert once == again


def test_no_more_micro_batches_are_under_way_than_there_are():
    few, many = (TrainingPlan(pp=4, micro_batches=m).memory.activations for m in (2, 16))
    assert few == many / 2
