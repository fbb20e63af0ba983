"""What this process knows of the IPython that runs it, which is never imported for that."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["display_in_notebook", "ipython_shell", "is_kernel", "shows_results"]


def ipython_shell() -> Any:
    """Return IPython's shell, in a notebook or a terminal; ``None`` outside of IPython."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def is_kernel() -> bool:
    """Return whether the kernel of a notebook runs this process."""
    return getattr(ipython_shell(), "kernel", None) is not None


def shows_results() -> bool:
    """Return whether values of expressions are shown without a print, as in a notebook."""
    return ipython_shell() is not None or hasattr(sys, "ps1")


def display_in_notebook(value: Any) -> None:
    """Display a value in the cell that runs.

    Raises:
        KeyError: no IPython runs this process.
    """
    sys.modules["IPython"].display.display(value)
