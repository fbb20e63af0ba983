"""A line instead of a traceback where a name is missing that a cell of the notebook defines.

That is what everybody meets who comes back the next day: the kernel is new, and knows nothing of
the cells above.  A name that no cell defines stays Python's own error.
"""

from __future__ import annotations

import ast
import json
import re
import symtable
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from headcount.core.notebook import ipython_shell, notebook_file

__all__ = ["explain_missing_names"]

#: Characters of a statement that are quoted.
_WIDTH = 60


def explain_missing_names() -> None:
    """From now on, name the cell that defines a missing name, in the kernel of a notebook."""
    shell = ipython_shell()
    if not shell.custom_exceptions:  # else the learner, or a tool of theirs, shows them already
        shell.set_custom_exc((NameError,), _show)


def _show(
    shell: Any,
    kind: type[NameError],
    error: NameError,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    """Show a cell's exception as IPython does, or the mend in one line where there is one."""
    if kind is NameError and _is_cells(trace, shell.user_ns):
        mend = _mend(shell, error.name or "")
        if mend:
            # IPython asks the exception itself first how it is shown
            error._render_traceback_ = lambda: [f"NameError: {error}. {mend}"]  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _is_cells(trace: TracebackType, names: dict[str, Any]) -> bool:
    """Return whether an exception was raised by the code of a cell, and not by a library's."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals is names


def _mend(shell: Any, name: str) -> str:
    """Return what defines a name, as a request to run it; empty if no other cell does."""
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
    return ""


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
