"""What ``python -m grader simulate`` prints."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.core import __version__
from grader.core.values import amount, duration
from grader.core.verdict import CaseVerdict
from grader.course.exercise import Exercise
from grader.judge.simulated_checks import SimulatedOutcome
from grader.report.json import SCHEMA_VERSION, case_as_dict
from grader.report.summary import visible
from grader.simulation.clusters import Cluster, Flat

__all__ = ["growth_json", "growth_report"]


def growth_report(
    grown: SimulatedOutcome, exercise: Exercise, cluster: Cluster, name: str, seed: int
) -> RenderableType:
    """An answer on simulated ranks: whether it is right, and what it would have taken.

    Args:
        grown: what became of it.
        exercise: whose answer it is.
        cluster: what messages cost.
        name: of the cluster, or nothing.
        seed: of the inputs.
    """
    n = grown.case.n
    ranks = "1 simulated rank" if n == 1 else f"{n:,} simulated ranks"
    parts: list[RenderableType] = [
        Text.assemble((exercise.name, "bold"), f" on {ranks}, {_words(cluster, name)}")
    ]
    parts += [Padding(_line(verdict), (0, 0, 0, 2)) for verdict in grown.verdicts]
    if grown.simulation.failure is None:
        parts.append(Padding(_costs(grown), (0, 0, 0, 2)))
    parts.append(Text(f"(seed {seed})", style="dim"))
    return Group(*parts)


def growth_json(grown: SimulatedOutcome, exercise: Exercise, cluster: Cluster, seed: int) -> str:
    """The same as one JSON object."""
    simulation = grown.simulation
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "grader_version": __version__,
        "exercise": exercise.name,
        "ranks": grown.case.n,
        "seed": seed,
        "cluster": msgspec.to_builtins(cluster),
        "passed": all(verdict.passed for verdict in grown.verdicts),
        # None: no run came to its end, and so there is no time
        "seconds": simulation.seconds if simulation.failure is None else None,
        "messages": simulation.messages,
        "bytes": simulation.bytes,
        "cases": [case_as_dict(verdict) for verdict in grown.verdicts],
    }
    return json.dumps(fields, ensure_ascii=True, indent=1)


def _words(cluster: Cluster, name: str) -> str:
    if name:
        return f"cluster {visible(name)}"
    if isinstance(cluster, Flat):
        return f"α = {cluster.alpha:g} s, β = {cluster.beta:g} s/byte"
    return f"nodes of {cluster.ranks_per_node} ranks"


def _line(verdict: CaseVerdict) -> Text:
    mark = ("✓ ", "green") if verdict.passed else ("✗ ", "red")
    if not verdict.passed:
        said = f"{verdict.name}: {verdict.diagnosis}: {verdict.message}"
        return Text.assemble(mark, visible(said))
    told = ", ".join(f"{bound.measured:,} ({bound.asks})" for bound in verdict.bounds)
    return Text.assemble(mark, f"{verdict.name}: {told or 'right'}")


def _costs(grown: SimulatedOutcome) -> Table:
    simulation = grown.simulation
    table = Table.grid(padding=(0, 2))
    table.add_row("virtual time", duration(simulation.seconds))
    table.add_row("messages", f"{simulation.messages:,}")
    sent = amount(simulation.bytes)
    if simulation.tally is not None:
        sent += f", by one rank at most {amount(simulation.tally.traffic.max_sent)}"
    table.add_row("sent", sent)
    return table
