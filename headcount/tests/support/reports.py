"""What the documents say of reports that other programs read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "run.md"


def told(report: Mapping[str, object]) -> bool:
    """Return whether run.md describes every field of a report."""
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index("**For other programs.**") : page.index("This is the trace of")]
    return report.keys() <= {*re.findall(r"`(\w+)`", table)}
