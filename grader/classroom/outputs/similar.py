"""``similar.html``: pairs of submissions that an instructor may want to compare."""

from __future__ import annotations

from collections.abc import Sequence

from grader.classroom.outputs.pages import page
from grader.classroom.outputs.results import ClassResults
from grader.classroom.similarity import Pair

__all__ = ["similar_page"]


def similar_page(results: ClassResults, pairs: Sequence[Pair]) -> str:
    """The page; its links lead to ``feedback/``."""
    rows = {row.key: row for row in results.rows}
    known = [pair for pair in pairs if pair.first in rows and pair.second in rows]
    return page("similar.html.j2", results=results, pairs=known, rows=rows)
