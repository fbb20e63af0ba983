"""``timeline``: show where the time of a run went, and which ranks waited."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from grader.api.runs import Run
from grader.api.written import written
from grader.report.elements import Markup, block, element, join, page
from grader.report.looks import themed_image
from grader.report.timeline import timeline_png, timeline_svg, unit_of
from headcount.core.errors import RequestError
from headcount.core.notebook import shows_results
from headcount.trace.lanes import CODE, Lane, Lanes, lanes
from headcount.trace.trace import Trace

__all__ = ["Timeline", "timeline"]

#: Columns of the table: what a rank does, and the heading.
_COLUMNS = (
    (CODE, "in its own code"),
    ("send", "waiting in send"),
    ("recv", "waiting in recv"),
    ("collective", "waiting in collectives"),
)

#: Marks of a rank that the text lists; further ones are in the picture only.
_MOST_MARKS = 12

_CELL = "padding: 1px 14px 1px 0; text-align: left"

#: Pixels below which the picture does not shrink, so that its words can be read.
_LEAST = 680


class Timeline:
    """A run in time: a picture in a notebook, a list of the calls elsewhere.

    The picture and the table below it hold the times of this one run.  The text
    holds none, so that it is the same in every run of the same program.

    Attributes:
        lanes: the run as data.
    """

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes

    def __repr__(self) -> str:
        return self.lanes.table()

    @cached_property
    def picture(self) -> bytes:
        """The run as a PNG on a white ground; a page in a dark theme shows it on a dark one."""
        return timeline_png(self.lanes)

    def in_words(self) -> str:
        """Return in words what the picture shows, for readers who cannot see it."""
        lanes = self.lanes
        parts = [f"Time line of {_ranks(lanes)} over {_time(lanes.end)}."]
        for rank, lane in enumerate(lanes.lanes):
            did = [
                f"{_time(lane.seconds(what) * 1e9)} {name}"
                for what, name in _COLUMNS
                if lane.seconds(what)
            ]
            if lane.flights:
                did.append(
                    f"{_time(lane.in_flight * 1e9)} with a collective in flight,"
                    f" {_time(lane.hidden * 1e9)} of it in its own code"
                )
            did += [f"{mark.text} at {_time(mark.time)}" for mark in lane.marks[:_MOST_MARKS]]
            parts.append(f"Rank {rank}: {', '.join([*did, 'then ' + lane.end])}.")
        return " ".join(parts)

    def save(self, path: str | Path) -> None:
        """Write a page that any browser shows, in a light or a dark theme."""
        written = page(f"Time line of {_ranks(self.lanes)}", self._html())
        Path(path).write_text(written, encoding="utf-8")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # the HTML needs no script and shows an image, so that a notebook that
        # is not trusted shows it too; printed pages use the PNG
        return {
            "text/html": self._html(),
            "image/png": self.picture,
            "text/plain": repr(self),
        }

    def _html(self) -> Markup:
        picture = themed_image(
            timeline_svg(self.picture), self.in_words(), look="; border-radius: 6px", least=_LEAST
        )
        names = ("rank", *(name for _, name in _COLUMNS), "calls", "end")
        heads = (element("th", name, scope="col", style=_CELL) for name in names)
        rows = join(_row(rank, lane) for rank, lane in enumerate(self.lanes.lanes))
        head, body = element("thead", element("tr", *heads)), element("tbody", rows)
        table = element("table", head, body, style="border-collapse: collapse")
        summary = element("summary", "The same as a table")
        folded = element("details", summary, "\n", table, "\n")
        font = "font-family: var(--jp-ui-font-family, system-ui, sans-serif)"
        return block("div", picture, folded, style=font)


def _row(rank: int, lane: Lane) -> Markup:
    times = [_time(lane.seconds(what) * 1e9) for what, _ in _COLUMNS]
    cells = (str(rank), *times, str(len(lane.calls)), lane.end)
    return element("tr", *(element("td", cell, style=_CELL) for cell in cells))


def _ranks(lanes: Lanes) -> str:
    count = len(lanes.lanes)
    return "1 rank" if count == 1 else f"{count} ranks"


def _time(nanoseconds: float) -> str:
    size, name = unit_of(nanoseconds)
    return f"{nanoseconds / size:.3g} {name}" if nanoseconds else "0"


@written("timeline(run(broadcast, 4))")
def timeline(what: Run | Trace, *, since: str | None = None, until: str | None = None) -> Timeline:
    """Show where the time of a run went: in a rank's own code, or waiting.

    A run that failed is shown as well, up to where it was ended; get it with
    ``run(function, 4, may_fail=True)``.

    Args:
        what: the value of :func:`run`, or the record in it.
        since, until: show only what lies between the first of these marks and the last, see
            :func:`mark`; the beginning and the end of the run otherwise.

    Raises:
        RequestError: ``what`` is neither, or there is no such mark.
    """
    if isinstance(what, Run):
        found = lanes(what.trace, what.failure)
    elif isinstance(what, Trace):
        found = lanes(what)
    else:
        raise RequestError(
            "timeline takes what run returns: write"
            f" timeline(run({getattr(what, '__name__', 'function')}, 4))"
        )
    shown = Timeline(found if since is None and until is None else found.between(since, until))
    if not shows_results():
        print(shown)
    return shown
