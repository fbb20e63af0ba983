"""What this process knows of the IPython that runs it, which is never imported for that."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

__all__ = [
    "display_in_notebook",
    "ipython_shell",
    "is_kernel",
    "notebook_file",
    "shows_results",
]


def ipython_shell() -> Any:
    """Return IPython's shell, in a notebook or a terminal; ``None`` outside of IPython."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def is_kernel() -> bool:
    """Return whether the kernel of a notebook runs this process."""
    return getattr(ipython_shell(), "kernel", None) is not None


def notebook_file() -> Path | None:
    """Return the file of the notebook whose kernel this is; None where no front end says so.

    Jupyter's server names it in the environment, and VS Code in a variable.
    """
    shell = ipython_shell()
    told = shell.user_ns.get("__vsc_ipynb_file__") if shell is not None else None
    name = told or os.environ.get("JPY_SESSION_NAME", "")
    return Path(name) if isinstance(name, str) and name.endswith(".ipynb") else None


def shows_results() -> bool:
    """Return whether values of expressions are shown without a print, as in a notebook."""
    return ipython_shell() is not None or hasattr(sys, "ps1")


def display_in_notebook(value: Any) -> None:
    """Display a value in the cell that runs.

    Raises:
        KeyError: no IPython runs this process.
    """
    sys.modules["IPython"].display.display(value)
