"""Modules that fork servers import before they fork, so that ranks have them at once."""

from __future__ import annotations

from headcount.core.wire import SIMULATOR

__all__ = ["import_ahead", "modules"]

#: Their names, in the order of their import.
modules = [SIMULATOR]


def import_ahead(*names: str) -> None:
    """Let fork servers that are started from now on import further modules."""
    modules.extend(name for name in names if name not in modules)
