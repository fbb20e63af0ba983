"""``python -m tools.clusters`` writes the tables of presets into ``docs/simulation.md``."""

from __future__ import annotations

from pathlib import Path

from headcount.simulation.clusters import PRESETS, Citation, Flat, Preset

PAGE = Path(__file__).resolve().parent.parent / "docs" / "simulation.md"


def presets() -> str:
    """The constants of the presets, in Markdown."""
    lines = ["| name | | inside a node | between nodes |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {one.what} | {' | '.join(_levels(one))} |" for name, one in PRESETS.items()
    ]
    return "\n".join(lines)


def sources() -> str:
    """Where these constants come from, in Markdown."""
    lines = ["| name | field | source | |", "|---|---|---|---|"]
    for name, one in PRESETS.items():
        for field, source in one.sources.items():
            lines.append(f"| `{name}` | `{field}` | {source.kind} | {_said(source)} |")
    return "\n".join(lines)


def _levels(preset: Preset) -> tuple[str, str]:
    one = preset.cluster
    if isinstance(one, Flat):
        return _costs(one.alpha, one.beta), ""
    links = f"{one.links} link" + "s" * (one.links > 1)
    return (
        f"{one.ranks_per_node} ranks, {_costs(one.alpha_inside, one.beta_inside)}",
        f"{_costs(one.alpha_between, one.beta_between)}, {links}, {one.sharing}",
    )


def _costs(alpha: float, beta: float) -> str:
    return f"α {1e6 * alpha:g} µs, 1/β {1e-9 / beta:g} GB/s"


def _said(source: Citation) -> str:
    return f"{source.says} ([source]({source.url}))" if source.url else source.says


def page() -> str:
    """The page with the tables that it should have."""
    text = PAGE.read_text()
    for what, table in (("presets", presets()), ("sources", sources())):
        begin = f"<!-- {what}: written by python -m tools.clusters -->"
        end = f"<!-- end of {what} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
