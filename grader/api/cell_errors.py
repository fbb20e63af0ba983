"""A line instead of a traceback for the two mistakes that everybody makes in a cell.

Who comes back the next day has a new kernel, which knows nothing of the cells above: the cell that
defines a missing name is named.  And who calls a function of ranks by itself is told how to run it:
the notebook is no rank.  Any other exception is shown as Python's own.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import symtable
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import grader
from headcount.core.notebook import ipython_shell, notebook_file

__all__ = ["explain_errors"]

#: Characters of a statement that are quoted.
_WIDTH = 60


def explain_errors() -> None:
    """From now on, say in one line how to mend these mistakes, in the kernel of a notebook."""
    shell = ipython_shell()
    if not shell.custom_exceptions:  # else the learner, or a tool of theirs, shows them already
        shell.set_custom_exc((NameError, ValueError, RuntimeError), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    """Show a cell's exception as IPython does, or the mend in one line where there is one."""
    mend = ""
    if isinstance(error, NameError):
        if kind is NameError and _is_cells(trace, shell.user_ns):
            mend = _mend(shell, error.name or "")
            mend = mend and f"NameError: {error}. {mend}"
    elif _needs_ranks(trace):
        mend = f"The notebook is not a rank: {_how_to_run(trace, shell.user_ns)}"
    if mend:
        # IPython asks the exception itself first how it is shown
        error._render_traceback_ = lambda: [mend]  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _needs_ranks(trace: TracebackType) -> bool:
    """Return whether torch has raised an exception for want of a process group."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    dist = sys.modules.get("torch.distributed")
    return module.startswith("torch.distributed") and not getattr(dist, "is_initialized", bool)()


def _how_to_run(trace: TracebackType, names: dict[str, Any]) -> str:
    """Return how to run the function of a cell that has asked torch for its rank."""
    step: TracebackType | None = trace
    while step is not None:
        name = step.tb_frame.f_code.co_name
        function = names.get(name)
        if step.tb_frame.f_globals is names and inspect.isfunction(function):
            return f"try `run({', '.join([name, '4', *inspect.signature(function).parameters])})`."
        step = step.tb_next
    return "put this into a function, and try `run(function, 4)`."


def _is_cells(trace: TracebackType, names: dict[str, Any]) -> bool:
    """Return whether an exception was raised by the code of a cell, and not by a library's."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals is names


def _mend(shell: Any, name: str) -> str:
    """Return what defines a name, as a request to run it; empty if nothing is known of it."""
    cells = list(_cells())
    sources = [shell.transform_cell(source).strip() for _, source in cells]
    running = shell.history_manager.input_hist_parsed[-1].strip()
    here = sources.index(running) if running in sources else len(sources)
    # the nearest before it, or else the first after it
    for i in (*range(here - 1, -1, -1), *range(here + 1, len(sources))):
        statement = _statement(sources[i], name)
        if statement:
            heading = cells[i][0]
            cell = f'the cell under "{heading}"' if heading else "the cell"
            where = cell if i else "the first code cell"
            return f"Run {where}, which has `{statement}`; then run this one again."
    public = name in grader.__all__
    return f"Run `from grader import {name}`; then run this cell again." if public else ""


def _cells() -> Iterator[tuple[str, str]]:
    """Yield the code cells of this kernel's notebook as it was saved, with the headings above."""
    path = notebook_file()
    try:
        cells = [] if path is None else json.loads(path.read_bytes())["cells"]
        heading = ""
        for cell in cells:
            text = "".join(cell["source"])
            if cell["cell_type"] == "code":
                yield heading, text
            elif cell["cell_type"] == "markdown":
                heading = ([heading, *re.findall(r"^#+ +(.+?) *$", text, re.M)])[-1]
    except (OSError, ValueError, LookupError, TypeError):
        return  # it is away, or no notebook


def _statement(source: str, name: str) -> str:
    """Return the first line of the statement by which a cell binds a name; empty if none does."""
    try:
        for node in ast.parse(source).body:
            statement = ast.get_source_segment(source, node) or ""
            table = symtable.symtable(statement, "cell", "exec")
            if name in table.get_identifiers():
                found = table.lookup(name)
                if found.is_assigned() or found.is_imported():
                    line = statement.splitlines()[0]
                    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return ""
