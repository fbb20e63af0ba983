"""What the documentation says of simulated clusters and of algorithms."""

from __future__ import annotations

from pathlib import Path

from headcount.simulation.algorithms import table
from headcount.simulation.clusters import Flat, Nodes, cluster_from
from tools import clusters as page

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_has_the_presets_as_they_are():
    assert page.page() == page.PAGE.read_text(), "run: python -m tools.clusters"


def test_the_page_names_every_field_and_its_examples_are_clusters(tmp_path):
    text = page.PAGE.read_text()
    for kind in (Flat, Nodes):
        for field in kind.__struct_fields__:
            assert f"`{field}`" in text
    examples = [part.partition("```")[0] for part in text.split("```json\n")[1:]]
    assert examples
    for example in examples:
        path = tmp_path / "example.json"
        path.write_text(example)
        assert cluster_from(str(path)).network(16)


def test_the_documentation_has_the_table():
    text = (DOCS / "simulation.md").read_text()
    assert table() in text, f"put this into docs/simulation.md:\n{table()}"
