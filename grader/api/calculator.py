"""``calculator``: turn the knobs of a training run, and see what fits and what overlaps.

The numbers are those of :mod:`grader.course.plans`; here they are only shown.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

from grader.api import shows_results
from grader.core.errors import RequestError
from grader.course.plans import Plan

__all__ = ["Calculator", "calculator"]

#: What is shown: headings of two columns of words, and rows.
_Rows = list[tuple[str, str]]


def _count(number: float) -> str:
    """A count with a word that people say."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:,.3g} {word}" if number < 1000 * size else f"{number:.3g}"
    return f"{number:,.0f}"


def _gigabytes(nbytes: float) -> str:
    return f"{nbytes / 1e9:,.2f} GB"


def _sizes(plan: Plan) -> _Rows:
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


def _overlaps(plan: Plan) -> Iterator[tuple[str, str, str]]:
    for overlap in plan.overlaps:
        yield overlap.name, _verdict(overlap.ratio), overlap.what


def table(plan: Plan) -> str:
    """The numbers as text."""
    rows = _sizes(plan)
    lines = [f"{name:20} {value:>16}" for name, value in rows]
    lines += [f"{name:20} {verdict}: {what}" for name, verdict, what in _overlaps(plan)]
    if not plan.overlaps:
        lines.append("nothing is sent: every degree is 1")
    return "\n".join(lines)


def _page(plan: Plan) -> str:
    """The same as HTML."""
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
    return f'<p role="status">✗ {html.escape(str(error))}</p>'


#: What the controls are called, and in which unit they are shown.
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

#: How far an arrow key goes in a number, where that is not 1.
_STEPS = {"hidden": 128, "vocab": 1000, "seq": 128}

#: The largest number that a field takes.
_MOST = {"zero": 3, "hidden": 2**20, "vocab": 10**8, "seq": 2**24}


class Calculator:
    """A plan whose knobs can be turned: controls in a notebook, a table elsewhere.

    Attributes:
        plan: as it is now.
    """

    def __init__(self, plan: Plan) -> None:
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
        # whoever cannot show the controls shows the text
        return {**self.widget._repr_mimebundle_(), "text/plain": repr(self)}


def _read(name: str, value: Any) -> Any:
    """What a control's value means."""
    unit = _LABELS[name][1]
    return value if unit == 1 else value * unit


def _control(widgets: Any, name: str, value: Any) -> Any:
    """The control for one field of a plan: one that can be used by keyboard, everywhere.

    Numbers are typed, and no list or slider stands for them: JupyterLab takes the arrow
    keys from a list, and ipywidgets gives its sliders no name that a screen reader could say.
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
    """Memory of a device and overlap ratios of a training run, with knobs to turn.

    Args:
        start: fields of :class:`grader.course.plans.Plan` that are to begin otherwise, such as
            ``hidden=8192, layers=80``.

    Raises:
        RequestError: there is no such field, or no such run.
    """
    known = [field.name for field in fields(Plan)]
    for name in start:
        if name not in known:
            raise RequestError(f"a plan has no {name!r}; it has {', '.join(known)}")
    found = Calculator(Plan(**start))
    if not shows_results():
        print(found)
    return found
