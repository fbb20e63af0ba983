"""``python -m grader reset``: an exercise of a notebook begins again, and the old text is kept."""

from __future__ import annotations

import ast
import contextlib
import json
from pathlib import Path
from typing import Any

from grader.course.index import IndexEntry
from grader.files import replace_file
from headcount.core.errors import RequestError, UnreadableFile
from headcount.core.files import contents

__all__ = ["keep_beside", "reset"]


def reset(path: Path, exercise: IndexEntry) -> Path | None:
    """Put the stub of an exercise back into the cell of a notebook that defines it.

    If several cells do, the last is meant, because it is the one that is judged.  The old text of
    the cell is written to a new file beside the notebook first.

    Returns:
        The file with the old text; None if the cell is the stub already, and nothing was written.

    Raises:
        UnreadableFile: the path is no notebook.
        RequestError: no cell of it defines the exercise.
    """
    notebook = _notebook(path)
    cell = _answer(notebook["cells"], exercise.name, exercise.cell)
    if cell is None:
        raise RequestError(
            f"no cell of {path} defines {exercise.name}, so there is none to reset; for its stub"
            f' in a new cell, run `from grader import reset; reset("{exercise.name}")` there'
        )
    old = _text(cell)
    if old.rstrip() == exercise.stub.rstrip():
        return None
    kept = keep_beside(path.parent / f"{exercise.name}.py", (old.rstrip("\n") + "\n").encode())
    # in the form of the file itself: a list of lines, or one text
    is_list = isinstance(cell["source"], list)
    cell["source"] = exercise.stub.splitlines(keepends=True) if is_list else exercise.stub
    cell["outputs"], cell["execution_count"] = [], None
    text = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
    replace_file(path, text.encode())
    return kept


def _notebook(path: Path) -> dict[str, Any]:
    data = contents(path)
    try:
        found = json.loads(data)
        if all(isinstance(_text(cell), str) for cell in found["cells"]):
            return dict(found)
    except (ValueError, TypeError, KeyError):
        pass
    raise UnreadableFile(f"{path} is no notebook; reset takes the .ipynb file of a chapter")


def _text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def _answer(cells: list[dict[str, Any]], name: str, cell_id: str) -> dict[str, Any] | None:
    """Return the last cell that defines a name, or else the one that did at the beginning."""
    code = [cell for cell in cells if cell.get("cell_type") == "code"]
    defining = [cell for cell in code if name in _defined(_text(cell))]
    # what is in the original cell now may be no Python, or nothing
    found = defining[-1:] or [cell for cell in code if cell.get("id") == cell_id]
    return found[0] if found else None


def _defined(source: str) -> set[str]:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = {getattr(node, "name", "") for node in body}
    for node in body:
        for target in getattr(node, "targets", None) or [getattr(node, "target", None)]:
            if isinstance(target, ast.Name):
                names.add(target.id)
    return names


def keep_beside(path: Path, data: bytes) -> Path:
    """Write what a file holds to the first ``NAME.old`` beside it that does not exist yet."""
    number = 1
    while True:
        kept = path.with_name(f"{path.stem}.old{'' if number == 1 else number}{path.suffix}")
        with contextlib.suppress(FileExistsError), kept.open("xb") as file:
            file.write(data)
            return kept
        number += 1
