"""``calculator``: change the numbers of a training run, and see what fits and what overlaps.

The formulas are those of :mod:`grader.course.sizes`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from grader.api import shows_results
from grader.core.errors import RequestError
from grader.course import sizes
from grader.report.looks import Look

__all__ = ["Calculator", "Memory", "Overlap", "TrainingPlan", "calculator"]


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


@dataclass(frozen=True)
class TrainingPlan:
    """A model, a batch, the degrees of parallelism, and the machine.

    Attributes:
        hidden, layers, vocab, glu, tied_head, max_positions: as in
            :func:`grader.course.sizes.model_params`.
        seq: tokens of a sequence.
        micro_batch: sequences that go through at once.
        dp: replicas.
        zero: stage of ZeRO among them, 0 to 3.
        tp: devices that share every matrix, and every activation (sequence parallel).
        pp: stages.
        recompute: whether a block keeps its input only, and computes the rest again.
        peak_flops: of a device, operations a second.
        bandwidth: of its link to other machines, bytes a second in one direction.
        bandwidth_inside: of its link inside the machine, where TP's traffic goes.

    Raises:
        RequestError: there is no such run.
    """

    hidden: int = 4096
    layers: int = 32
    vocab: int = 32_000
    glu: bool = True
    tied_head: bool = False
    max_positions: int = 0
    seq: int = 4096
    micro_batch: int = 1
    dp: int = 8
    zero: int = 1
    tp: int = 1
    pp: int = 1
    recompute: bool = False
    peak_flops: float = 989e12
    bandwidth: float = 50e9
    bandwidth_inside: float = 450e9

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "seq", "micro_batch", "dp", "tp", "pp"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise RequestError(f"{name} is a whole number from 1 on, not {value!r}")
        for name in ("vocab", "max_positions"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise RequestError(f"{name} is a whole number from 0 on, not {value!r}")
        for name in ("peak_flops", "bandwidth", "bandwidth_inside"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 < value < float("inf")):
                raise RequestError(f"{name} is a number above 0, not {value!r}")
        if self.zero not in (0, 1, 2, 3):
            raise RequestError(f"zero is a stage, 0 to 3, not {self.zero!r}")
        if self.pp > self.layers:
            raise RequestError(
                f"{self.pp} stages (pp) need as many layers, and there are {self.layers}:"
                " fewer stages, or more layers"
            )
        if self.hidden % self.tp:
            raise RequestError(
                f"{self.tp} devices (tp) cannot share hidden = {self.hidden} evenly:"
                " take a tp that divides it"
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
        many micro-batches under way as there are stages.

        (Korthikanti and others 2022, section 4.2.3, https://arxiv.org/abs/2205.05198.)
        """
        state = sizes.state_bytes(self.params_here, self.dp, self.zero)
        everything = sizes.kept_activations(self.hidden, self.glu)
        each, at_work = (self.hidden, everything) if self.recompute else (everything, 0)
        kept = each * self._first_layers * self.pp + at_work
        tokens = self.seq * self.micro_batch
        return Memory(*state, _BYTES * tokens * kept / self.tp)

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """The communications of every degree above 1."""
        found = []
        machine = self.peak_flops, self.bandwidth, _BYTES
        if self.dp > 1 and self.zero == 3:
            ratio = sizes.zero3_overlap_ratio(self.seq, self.micro_batch, self.dp, *machine)
            what = "all-gather of a block's weights, beside the block before"
            found.append(Overlap(f"ZeRO-3 over {self.dp}", what, ratio))
        elif self.dp > 1:
            ratio = sizes.dp_overlap_ratio(self.seq * self.micro_batch, self.dp, *machine)
            what = "all-reduce of gradients, beside the backward pass"
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


def _sizes(plan: TrainingPlan) -> _Rows:
    memory = plan.memory
    return [
        ("parameters", _count(plan.params)),
        ("devices", f"{plan.devices:,}"),
        ("weights", _gigabytes(memory.weights)),
        ("gradients", _gigabytes(memory.gradients)),
        ("optimizer", _gigabytes(memory.optimizer)),
        ("activations", _gigabytes(memory.activations)),
        ("memory of a device", _gigabytes(memory.total)),
    ]


def _verdict(ratio: float) -> str:
    return f"{ratio:.3f}, can be hidden" if ratio <= 1 else f"{ratio:.3f}, too long to hide"


def _overlaps(plan: TrainingPlan) -> Iterator[tuple[str, str, str]]:
    for overlap in plan.overlaps:
        yield overlap.name, _verdict(overlap.ratio), overlap.what


def table(plan: TrainingPlan) -> str:
    """Return the numbers as text."""
    rows = _sizes(plan)
    lines = [f"{name:20} {value:>16}" for name, value in rows]
    lines += [f"{name:20} {verdict}: {what}" for name, verdict, what in _overlaps(plan)]
    if not plan.overlaps:
        lines.append("nothing is sent: every degree is 1")
    return "\n".join(lines)


def _page(plan: TrainingPlan) -> str:
    """Return the numbers as HTML."""
    cells = "".join(
        f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:right">{html.escape(value)}</td></tr>'
        for name, value in _sizes(plan)
    )
    sent = "".join(
        f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(verdict)}: {html.escape(what)}</td></tr>'
        for name, verdict, what in _overlaps(plan)
    )
    summary = ["memory of a device " + _gigabytes(plan.memory.total)]
    summary += [f"{name}: {verdict}" for name, verdict, _ in _overlaps(plan)]
    none = "" if sent else "<p>nothing is sent: every degree is 1</p>"
    return (
        f'<p role="status"><strong>{html.escape("; ".join(summary))}</strong></p>'
        f"<table><tbody>{cells}</tbody></table><table><tbody>{sent}</tbody></table>{none}"
    )


def _error(error: RequestError) -> str:
    return f'<p role="status">{Look.FAILED.mark} {html.escape(str(error))}</p>'


#: The label of each control, and the unit in which its value is shown.
_LABELS: dict[str, tuple[str, float]] = {
    "hidden": ("hidden", 1),
    "layers": ("layers", 1),
    "vocab": ("vocabulary", 1),
    "seq": ("sequence", 1),
    "micro_batch": ("micro-batch", 1),
    "dp": ("replicas (DP)", 1),
    "tp": ("tensor (TP)", 1),
    "pp": ("stages (PP)", 1),
    "zero": ("ZeRO stage", 1),
    "peak_flops": ("TFLOP/s", 1e12),
    "bandwidth": ("GB/s outside", 1e9),
    "bandwidth_inside": ("GB/s inside", 1e9),
    "glu": ("gated MLP (GLU)", 1),
    "tied_head": ("tied head", 1),
    "recompute": ("recompute activations", 1),
}

#: How much an arrow key changes a number, where that is not 1.
_STEPS = {"hidden": 128, "vocab": 1000, "seq": 128}

#: The largest number that a field takes.
_MOST = {"zero": 3, "hidden": 2**20, "vocab": 10**8, "seq": 2**24}


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
        import ipywidgets

        controls = {name: _control(ipywidgets, name, getattr(self.plan, name)) for name in _LABELS}
        shown = ipywidgets.HTML(_page(self.plan))

        def changed(_: Any) -> None:
            values = {name: _read(name, control.value) for name, control in controls.items()}
            try:
                self.plan = replace(self.plan, **values)
            except RequestError as error:
                shown.value = _error(error)
            else:
                shown.value = _page(self.plan)

        for control in controls.values():
            control.observe(changed, "value")
        columns = ipywidgets.Layout(grid_template_columns="repeat(auto-fill, minmax(310px, 1fr))")
        return ipywidgets.VBox([ipywidgets.GridBox(list(controls.values()), layout=columns), shown])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # front ends that cannot show the controls show the text
        return {**self.widget._repr_mimebundle_(), "text/plain": repr(self)}


def _read(name: str, value: Any) -> Any:
    """Return the number of a plan that a control's value stands for."""
    unit = _LABELS[name][1]
    return value if unit == 1 else value * unit


def _control(widgets: Any, name: str, value: Any) -> Any:
    """Make the control for one field of a plan, such that it can be used by keyboard everywhere.

    Numbers are typed, not chosen from a list or with a slider: JupyterLab captures the arrow
    keys of a list, and ipywidgets gives its sliders no name that a screen reader could say.
    """
    label, unit = _LABELS[name]
    style = {"description_width": "130px"}
    if isinstance(value, bool):
        return widgets.Checkbox(value=value, description=label, indent=False)
    if unit != 1:
        return widgets.BoundedFloatText(
            value=value / unit, min=1e-3, max=1e9, description=label, style=style
        )
    return widgets.BoundedIntText(
        value=value,
        min=0,
        max=max(_MOST.get(name, 2**16), value),
        step=_STEPS.get(name, 1),
        description=label,
        style=style,
    )


def calculator(**start: Any) -> Calculator:
    """Show memory of a device and overlap ratios of a training run, with numbers to change.

    Args:
        start: initial values of :class:`TrainingPlan` fields, such as
            ``hidden=8192, layers=80``.

    Raises:
        RequestError: there is no such field, or no such run.
    """
    known = [field.name for field in fields(TrainingPlan)]
    for name in start:
        if name not in known:
            raise RequestError(f"a plan has no {name!r}; it has {', '.join(known)}")
    found = Calculator(TrainingPlan(**start))
    if not shows_results():
        print(found)
    return found
