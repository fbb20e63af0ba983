"""``calculator``: change the numbers of a training run, and see what fits and what overlaps.

The formulas are those of :mod:`grader.course.sizes`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from grader.course import sizes
from grader.report.elements import Markup, element
from grader.report.looks import Look
from headcount.core.errors import RequestError
from headcount.core.notebook import shows_results

__all__ = ["Calculator", "Memory", "Overlap", "PlanError", "TrainingPlan", "calculator"]


# A training run on paper: a model, how it is spread over devices, and what follows. ----

#: Bytes of a weight, a gradient or an activation in bfloat16.
_BYTES = 2


class Memory(NamedTuple):
    """Bytes on one device of the first stage.

    Attributes:
        weights, gradients, optimizer: as in :class:`grader.course.sizes.TrainingState`.
        activations: what is kept for the backward passes to come.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float

    @property
    def total(self) -> float:
        """All four."""
        return sum(self)


class Overlap(NamedTuple):
    """A communication, and what it could be hidden behind.

    Attributes:
        name: of the parallelism, with its degree.
        what: is sent, beside what.
        ratio: the seconds of one over the seconds of the other.
    """

    name: str
    what: str
    ratio: float

    @property
    def hidden(self) -> bool:
        """Whether the computation takes at least as long as the communication."""
        return self.ratio <= 1


class PlanError(RequestError):
    """There is no such plan.

    Attributes:
        fields: the fields of :class:`TrainingPlan` that are at fault, or at odds.
    """

    def __init__(self, message: str, *fields: str) -> None:
        super().__init__(message)
        self.fields = fields


@dataclass(frozen=True)
class Control:
    """How a number of a plan is checked, and changed in a notebook.

    Attributes:
        start: its value where none is given.
        label: what stands beside its control; empty if it has none.
        unit: in which it is typed; whole numbers are typed as they are.
        least, most: the smallest number that a plan has, and the largest that its control takes.
        step: how much an arrow key changes it.
        slider: the values that a slider beside it passes through; none if it has no slider.
    """

    start: float
    label: str = ""
    unit: float = 1
    least: int = 1
    most: int = 2**16
    step: int = 1
    slider: tuple[int, ...] = ()

    def number(self, typed: Any) -> Any:
        """Return the number of a plan that a typed value stands for."""
        return typed if self.unit == 1 else typed * self.unit


def _field(start: float, label: str = "", **control: Any) -> Any:
    return field(default=start, metadata={"control": Control(start, label, **control)})


@cache
def _controls() -> dict[str, Control]:
    return {one.name: one.metadata["control"] for one in fields(TrainingPlan)}


@dataclass(frozen=True)
class TrainingPlan:
    """A model, a batch, the degrees of parallelism, and the machine.

    Attributes:
        hidden, layers, vocab, glu, tied_head, max_positions: as in
            :func:`grader.course.sizes.model_params`.
        seq: tokens of a sequence.
        micro_batch: sequences that go through at once.
        micro_batches: how many of these a replica takes in a step.
        dp: replicas.
        zero: stage of ZeRO among them, 0 to 3.
        tp: devices that share every matrix, and every activation (sequence parallel).
        pp: stages.
        recompute: whether a block keeps its input only, and computes the rest again.
        device_memory: of a device, bytes.
        peak_flops: of a device, operations a second.
        bandwidth: of its link to other machines, bytes a second in one direction.
        bandwidth_inside: of its link inside the machine, where TP's traffic goes.

    Raises:
        PlanError: there is no such run.
    """

    hidden: int = _field(4096, "hidden", step=128, most=2**20)
    layers: int = _field(32, "layers", slider=tuple(range(1, 129)))
    vocab: int = _field(32_000, "vocabulary", least=0, step=1000, most=10**8)
    seq: int = _field(4096, "sequence", step=128, most=2**24)
    micro_batch: int = _field(1, "micro-batch")
    micro_batches: int = _field(8, "micro-batches")
    dp: int = _field(8, "replicas (DP)", slider=tuple(2**k for k in range(13)))
    tp: int = _field(1, "tensor (TP)")
    pp: int = _field(1, "stages (PP)")
    zero: int = _field(1, "ZeRO stage", least=0, most=3, slider=(0, 1, 2, 3))
    device_memory: float = _field(80e9, "GB of memory", unit=1e9)
    peak_flops: float = _field(989e12, "TFLOP/s", unit=1e12)
    bandwidth: float = _field(50e9, "GB/s outside", unit=1e9)
    bandwidth_inside: float = _field(450e9, "GB/s inside", unit=1e9)
    glu: bool = _field(True, "gated MLP (GLU)")
    tied_head: bool = _field(False, "tied head")
    recompute: bool = _field(False, "recompute activations")
    max_positions: int = _field(0, least=0)

    def __post_init__(self) -> None:
        for name, control in _controls().items():
            value = getattr(self, name)
            if control.unit != 1:
                if not (isinstance(value, (int, float)) and 0 < value < float("inf")):
                    raise PlanError(f"{name} is a number above 0, not {value!r}", name)
            elif name == "zero":
                if value not in control.slider:
                    raise PlanError(f"zero is a stage, 0 to 3, not {value!r}", name)
            elif not isinstance(control.start, bool) and (
                type(value) is not int or value < control.least
            ):
                least = control.least
                raise PlanError(f"{name} is a whole number from {least} on, not {value!r}", name)
        if self.pp > self.layers:
            raise PlanError(
                f"{self.pp} stages (pp) need as many layers, and there are {self.layers}:"
                " fewer stages, or more layers",
                "pp",
                "layers",
            )
        if self.hidden % self.tp:
            raise PlanError(
                f"{self.tp} devices (tp) cannot share hidden = {self.hidden} evenly:"
                " take a tp that divides it",
                "tp",
                "hidden",
            )

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.dp * self.tp * self.pp

    @property
    def params(self) -> int:
        """The parameters of the whole model."""
        return sizes.model_params(
            self.hidden, self.layers, self.vocab, self.glu, self.tied_head, self.max_positions
        )

    @property
    def params_here(self) -> float:
        """The parameters that a device of the first stage computes with.

        The first stage has the embedding, and one layer more than the last where layers cannot
        be shared out evenly; the head is on the last stage.
        """
        no_head = self.tied_head or self.pp > 1
        stage = sizes.model_params(
            self.hidden, self._first_layers, self.vocab, self.glu, no_head, self.max_positions
        )
        return stage / self.tp

    @property
    def _first_layers(self) -> int:
        return -(-self.layers // self.pp)

    @property
    def memory(self) -> Memory:
        """The memory of a device of the first stage, which keeps the most activations.

        Where one forward pass is followed by one backward pass, the first stage has as
        many micro-batches under way as there are stages, if there are so many.

        (Korthikanti and others 2022, section 4.2.3, https://arxiv.org/abs/2205.05198.)
        """
        state = sizes.state_bytes(self.params_here, self.dp, self.zero)
        everything = sizes.kept_activations(self.hidden, self.glu)
        each, at_work = (self.hidden, everything) if self.recompute else (everything, 0)
        under_way = min(self.pp, self.micro_batches)
        kept = each * self._first_layers * under_way + at_work
        tokens = self.seq * self.micro_batch
        return Memory(*state, _BYTES * tokens * kept / self.tp)

    @property
    def spare(self) -> float:
        """Bytes of a device's memory that are left; negative if it does not fit."""
        return self.device_memory - self.memory.total

    @property
    def flops_here(self) -> float:
        """Operations of one step on a device, with the forward pass that recomputation adds."""
        tokens = self.seq * self.micro_batch * self.micro_batches
        once = sizes.step_flops(tokens, self.params) / (self.tp * self.pp)
        return once * (2 + 4 + 2) / (2 + 4) if self.recompute else once

    @property
    def bubble(self) -> float:
        """The share of a step in which a stage stands still, 0 to 1."""
        return sizes.bubble_share(self.pp, self.micro_batches)

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """The communications of every degree above 1.

        Recomputation makes the backward pass longer, so more is hidden behind it.  The other
        three stand beside a forward pass, and stay as they are.
        """
        found = []
        machine = self.peak_flops, self.bandwidth, _BYTES
        if self.dp > 1 and self.zero == 3:
            ratio = sizes.zero3_overlap_ratio(self.seq, self.micro_batch, self.dp, *machine)
            what = "all-gather of a block's weights, beside the block before"
            found.append(Overlap(f"ZeRO-3 over {self.dp}", what, ratio))
        elif self.dp > 1:
            ratio = sizes.dp_overlap_ratio(self.seq * self.micro_batch, self.dp, *machine)
            what = "all-reduce of gradients, beside a micro-batch's backward pass"
            if self.recompute:  # backward then takes 2 + 4 operations in place of 4
                ratio *= 4 / (2 + 4)
                what += ", which recomputes"
            found.append(Overlap(f"DP over {self.dp}", what, ratio))
        if self.tp > 1:
            ratio = sizes.tp_overlap_ratio(
                self.hidden, self.tp, self.peak_flops, self.bandwidth_inside, _BYTES
            )
            what = "all-gather of activations, beside a matrix of hidden × hidden"
            found.append(Overlap(f"TP over {self.tp}", what, ratio))
        if self.pp > 1:
            ratio = sizes.pp_overlap_ratio(
                self.hidden, self.layers // self.pp, *machine, glu=self.glu
            )
            what = "activations to the next stage, beside its blocks"
            found.append(Overlap(f"PP over {self.pp}", what, ratio))
        return tuple(found)


# The calculator. ------------------------------------------------------------------

#: Rows of a table: a name and a value.
_Rows = list[tuple[str, str]]


def _count(number: float) -> str:
    """Return a count in words."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:,.3g} {word}" if number < 1000 * size else f"{number:.3g}"
    return f"{number:,.0f}"


def _gigabytes(nbytes: float) -> str:
    return f"{nbytes / 1e9:,.2f} GB"


def _memory_words(plan: TrainingPlan) -> str:
    """Return whether a device's memory suffices, in words."""
    of = f"of {_gigabytes(plan.device_memory)}"
    if plan.spare < 0:
        return f"{of}: {_gigabytes(-plan.spare)} too much"
    return f"{of}: fits, {_gigabytes(plan.spare)} to spare"


def _sizes(plan: TrainingPlan) -> _Rows:
    memory = plan.memory
    kinds = [(kind, _gigabytes(nbytes)) for kind, nbytes in memory._asdict().items()]
    seconds = plan.flops_here / plan.peak_flops
    rows = [
        ("parameters", _count(plan.params)),
        ("devices", f"{plan.devices:,}"),
        *kinds,
        ("memory of a device", _gigabytes(memory.total)),
        ("", _memory_words(plan)),
        ("work of a device", f"{plan.flops_here / 1e12:,.0f} TFLOP a step"),
        ("", f"{plan.micro_batches} micro-batches of {plan.seq * plan.micro_batch:,} tokens"),
        ("", f"{seconds:.3g} s at the peak" + (", a third more to recompute" * plan.recompute)),
    ]
    if plan.pp > 1:
        with_it = seconds / (1 - plan.bubble)
        rows.append(("bubble", f"{100 * plan.bubble:.1f} % of a step, {with_it:.3g} s with it"))
    return rows


def _verdict(ratio: float) -> str:
    return f"{ratio:.3f}, can be hidden" if ratio <= 1 else f"{ratio:.3f}, too long to hide"


def _overlaps(plan: TrainingPlan) -> Iterator[tuple[str, str, str]]:
    for overlap in plan.overlaps:
        yield overlap.name, _verdict(overlap.ratio), overlap.what


def table(plan: TrainingPlan) -> str:
    """Return the numbers as text."""
    rows = _sizes(plan)
    lines = [f"{name:20} {value:>16}".rstrip() for name, value in rows]
    lines += [f"{name:20} {verdict}: {what}" for name, verdict, what in _overlaps(plan)]
    if not plan.overlaps:
        lines.append("nothing is sent: every degree is 1")
    return "\n".join(lines)


#: The colour of each kind of memory: 3 : 1 at least against the ground of either theme.
_COLOURS = {
    "weights": "#3b7ddd",
    "gradients": "#c2711c",
    "optimizer": "#8a63d2",
    "activations": "#1f8a5b",
}

_STYLE = """<style>
.gather-plan { max-width: 60em; line-height: 1.5; color: var(--jp-ui-font-color1, inherit); }
.gather-plan table { margin: 0.4em 0; border-collapse: collapse; }
.gather-plan :is(th, td) { padding: 1px 14px 1px 0; text-align: left; font-weight: normal; }
.gather-plan th { white-space: nowrap; }
.gather-plan .gather-bar { position: relative; height: 2em; margin: 0.9em 0 2.2em; }
.gather-plan .gather-room { position: absolute; inset: 0 auto 0 0;
  border: 1px solid var(--jp-border-color1, #9e9e9e); box-sizing: border-box; }
.gather-plan .gather-parts { position: absolute; inset: 3px 0; display: flex; overflow: hidden; }
.gather-plan .gather-parts > span { flex: none; box-sizing: border-box;
  border-right: 2px solid var(--jp-layout-color0, transparent); }
.gather-plan .gather-cut { clip-path: polygon(0 0, 100% 0, calc(100% - 8px) 25%, 100% 50%,
  calc(100% - 8px) 75%, 100% 100%, 0 100%); }
.gather-plan .gather-wall { position: absolute; top: -7px; bottom: -7px; margin-left: -2px;
  border-left: 4px solid var(--jp-ui-font-color1, currentColor); }
.gather-plan .gather-over { border-left-style: dashed;
  border-left-color: var(--jp-error-color1, #d32f2f); }
.gather-plan :is(.gather-wall, .gather-end) > span { position: absolute; top: 100%;
  white-space: nowrap; font-size: 0.9em; }
.gather-plan .gather-wall > span { right: -2px; }
.gather-plan .gather-end { position: absolute; top: 0; bottom: -7px; right: 0; }
.gather-plan .gather-end > span { right: 0; }
.gather-plan .gather-key { display: inline-block; width: 0.8em; height: 0.8em;
  margin-right: 0.5em; }
.gather-slider .noUi-handle { background: var(--jp-brand-color1, #1976d2) !important; }
.gather-fault input { box-shadow: 0 0 0 2px var(--jp-error-color1, #d32f2f) !important; }
</style>"""


def page(plan: TrainingPlan, fault: str = "") -> Markup:
    """Return the numbers as HTML.

    Args:
        plan: the plan that they belong to.
        fault: the error of the plan that was asked for, while the last valid plan is shown instead;
            empty if there is none.
    """
    status = " ".join(_in_sentences(plan))
    if fault:
        status = f"{Look.FAILED.mark} {fault}. Below: the last plan that can be."
    cells = []
    for name, value in _sizes(plan):
        if value == _memory_words(plan):
            continue  # the headline says it
        colour = f"background: {_COLOURS.get(name)}"
        key = element("span", class_="gather-key", style=colour) if name in _COLOURS else ""
        # a row without a name goes on with the one above
        head = element("th", key, name, scope="row") if name else element("td")
        cells.append(element("tr", head, element("td", value)))
    sent = [
        element("tr", element("th", name, scope="row"), element("td", f"{verdict}: {what}"))
        for name, verdict, what in _overlaps(plan)
    ]
    shown = element(
        "div",
        element("p", element("strong", status), role="status"),
        _bar(plan),
        element("table", element("tbody", *cells)),
        element("table", element("tbody", *sent)),
        "" if sent else element("p", "nothing is sent: every degree is 1"),
        class_="gather-plan",
    )
    return Markup(f"{_STYLE}{shown}")


#: Where the end of a device's memory is drawn, in percent of the width, whatever the plan.
_WALL = 40


def _bar(plan: TrainingPlan) -> Markup:
    """Return a bar of the kinds of memory, which fits below a wall or breaks through it.

    The wall stands where a device's memory ends, and does not move; a bar that is too long for
    the width is cut off, with a torn end and words.
    """
    memory = plan.memory
    kinds = {kind: f"{kind} {_gigabytes(size)}" for kind, size in memory._asdict().items()}
    parts = [
        element(
            "span",
            title=kinds[kind],
            style=f"width: {_WALL * size / plan.device_memory:.2f}%; background: {_COLOURS[kind]}",
        )
        for kind, size in memory._asdict().items()
    ]
    is_cut = _WALL * memory.total > 100 * plan.device_memory
    words = (
        f"{'; '.join(kinds.values())}; together {_gigabytes(memory.total)} {_memory_words(plan)}"
    )
    return element(
        "div",
        element("span", class_="gather-room", style=f"width: {_WALL}%"),
        element(
            "span", *parts, class_="gather-parts" + " gather-cut" * is_cut, style="width: 100%"
        ),
        element(
            "span",
            element("span", _short(plan.device_memory)),
            class_="gather-wall" + " gather-over" * (plan.spare < 0),
            style=f"left: {_WALL}%",
        ),
        element(
            "span",
            element("span", f"goes on to {_short(memory.total)} ▸" * is_cut),
            class_="gather-end",
        ),
        class_="gather-bar",
        role="img",
        aria_label=f"Memory of a device: {words}",
    )


def _short(nbytes: float) -> str:
    """Return gigabytes as one says them, as in 167.4 GB and 80 GB."""
    number = f"{nbytes / 1e9:,.1f}" if nbytes >= 1e8 else f"{nbytes / 1e9:.3g}"
    return f"{number.removesuffix('.0')} GB"


def _in_sentences(plan: TrainingPlan) -> Iterator[str]:
    """Return whether the plan fits, and whether its communication can be hidden."""
    who = "The GPU" if plan.devices == 1 else f"Each of the {plan.devices:,} GPUs"
    if plan.pp > 1:
        who = "Each GPU of the first stage"
    needs, has = _short(plan.memory.total), _short(plan.device_memory)
    if plan.spare < 0:
        yield f"{who} would need {needs} and has {has}: {_short(-plan.spare)} too much."
    else:
        yield f"{who} needs {needs} of its {has}, so the plan fits."
    for overlap in plan.overlaps:
        if overlap.hidden:
            yield f"{overlap.name} can hide what it sends behind the computation."
        else:
            longer = f"{overlap.ratio:.1f} times as long as the computation beside it"
            yield f"{overlap.name} sends {longer}: too long to hide."


class Calculator:
    """A plan whose numbers can be changed: controls in a notebook, a table elsewhere.

    Attributes:
        plan: the plan as it is now.
    """

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan = plan

    def __repr__(self) -> str:
        return table(self.plan)

    @cached_property
    def widget(self) -> Any:
        """The controls, with the numbers below."""
        import ipywidgets as widgets

        shown = widgets.HTML(page(self.plan))
        row = widgets.Layout(flex_flow="row wrap", align_items="center")
        columns = widgets.Layout(grid_template_columns="repeat(auto-fill, minmax(310px, 1fr))")
        inputs, rows = {}, []
        for name, control in _controls().items():
            if control.label:
                inputs[name] = box = _input(control, getattr(self.plan, name))
                if control.slider:
                    rows.append(widgets.Box([box, _slider(control.slider, box)], layout=row))
                    rows[-1].add_class(_ROW)

        def changed(_: Any) -> None:
            values = {name: _controls()[name].number(box.value) for name, box in inputs.items()}
            at_fault: tuple[str, ...] = ()
            try:
                self.plan = replace(self.plan, **values)
                shown.value = page(self.plan)
            except PlanError as error:
                at_fault = error.fields
                shown.value = page(self.plan, str(error))
            for name, box in inputs.items():
                mark = box.add_class if name in at_fault else box.remove_class
                mark("gather-fault")
                cross = f"{Look.FAILED.mark} " * (name in at_fault)
                box.description = cross + _controls()[name].label

        for box in inputs.values():
            box.observe(changed, "value")
        others = [box for name, box in inputs.items() if not _controls()[name].slider]
        numbers = widgets.GridBox(others, layout=columns)
        # the bar stands next to what moves it; the last output names the sliders
        script = {"output_type": "display_data", "data": {"text/html": _NAMING}, "metadata": {}}
        return widgets.VBox([*rows, shown, numbers, widgets.Output(outputs=(script,))])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # front ends that cannot show the controls show the text
        return {**self.widget._repr_mimebundle_(), "text/plain": repr(self)}


def _input(control: Control, value: Any) -> Any:
    """Make the control for a number of a plan, such that it can be used by keyboard everywhere.

    Numbers are typed, not chosen from a list: JupyterLab captures the arrow keys of a list.
    """
    import ipywidgets as widgets

    if isinstance(value, bool):
        return widgets.Checkbox(value=value, description=control.label, indent=False)
    shown = {"description": control.label, "style": {"description_width": "130px"}}
    if control.unit != 1:
        return widgets.BoundedFloatText(value=value / control.unit, min=1e-3, max=1e9, **shown)
    most = max(control.most, value)
    return widgets.BoundedIntText(value=value, min=0, max=most, step=control.step, **shown)


def _slider(values: tuple[int, ...], field: Any) -> Any:
    """Make a slider that moves a number field, and is moved by it.

    A number that the slider does not have puts it at the nearest one below, and stays in the field.
    """
    import ipywidgets as widgets

    def place() -> int:
        return bisect_right(values, field.value) - 1

    slider = widgets.IntSlider(
        value=place(),
        max=len(values) - 1,
        readout=False,
        layout=widgets.Layout(flex="1 1 200px", max_width="500px"),
    )
    slider.add_class(_SLIDER)

    def move_field(_: Any) -> None:
        if slider.value != place():
            field.value = values[slider.value]

    def move_slider(_: Any) -> None:
        slider.value = max(place(), 0)

    slider.observe(move_field, "value")
    field.observe(move_slider, "value")
    return slider


#: The classes of a slider, and of the row where it stands beside its field.
_SLIDER, _ROW = "gather-slider", "gather-row"

#: ipywidgets gives a slider no name that a screen reader could say: it gets that of its field.
#: Each appears on its own, at any time.
_NAMING = f"""<script>(() => {{
let left = {sum(bool(one.slider) for one in _controls().values())};
const name = () => {{
  for (const handle of document.querySelectorAll(".{_SLIDER} .noUi-handle:not([aria-label])")) {{
    const label = handle.closest(".{_ROW}")?.querySelector("label")?.textContent;
    if (label && left) {{
      handle.setAttribute("aria-label", `${{label}}, slider`);
      left -= 1;
    }}
  }}
  if (!left) watch.disconnect();
}};
const watch = new MutationObserver(name);
watch.observe(document.body, {{ childList: true, subtree: true }});
name();
}})()</script>"""


def calculator(**start: Any) -> Calculator:
    """Show memory of a device and overlap ratios of a training run, with numbers to change.

    Args:
        start: initial values of :class:`TrainingPlan` fields, such as
            ``hidden=8192, layers=80``.

    Raises:
        RequestError: there is no such field, or no such run.
    """
    known = [*_controls()]
    for name in start:
        if name not in known:
            raise RequestError(f"a plan has no {name!r}; it has {', '.join(known)}")
    found = Calculator(TrainingPlan(**start))
    if not shows_results():
        print(found)
    return found
