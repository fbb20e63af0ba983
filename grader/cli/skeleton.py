"""``python -m grader new exercise``: an exercise that works, to be turned into one's own.

It passes a tensor to the right.  Everything that an exercise consists of is there: the declaration,
hints and advice, the stub and the solution, one right answer and one mistake.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from headcount.core.errors import RequestError

__all__ = ["write_exercise"]

#: What the declaration imports: names by module.
_IMPORTS = {
    "grader.exercise.cases": ("Kind",),
    "grader.exercise.declaration": ("Exercise", "TrafficRules", "Values"),
    "grader.exercise.limits": ("messages", "moved", "neighbours_only", "point"),
}

#: Longest line of a module.
_WIDTH = 100

_MODULE = '''"""Chapter {number}: say in one sentence what it is about."""

from __future__ import annotations

import torch
'''

_DECLARATION = """\
{name} = Exercise(
    signature="{name}(x: Tensor) -> Tensor",
    summary="the x of the left neighbour, on a ring",
    inputs=lambda draw: (
        draw.case(f"{{kind}}", x=draw.per_rank(kind))
        for kind in (Kind(torch.int64, (3,)), Kind(torch.float32, (2, 4)))
    ),
    values=Values(lambda c: [c.x[r - 1] for r in c.ranks]),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n if c.n > 1 else 0),
            point(neighbours_only()),
        ),
        least=moved,
    ),
)
"""

_HELP = """\
# {name}

## Hint 1

Which rank is on your right, and which on your left, where the ranks stand in a ring?

## Hint 2

Every rank sends its x to the right and receives from the left. If all of them sent first and
waited for the receiver, nobody would ever receive: begin the send, receive, then wait.

## Hint 3

This is the whole answer:

    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    came, right = torch.empty_like(x), (rank + 1) % n
    sending = dist.isend(x, right)
    dist.recv(came, (rank - 1) % n)
    sending.wait()
    return came

## deadlock

Every rank waits for another. Go through the lines above: who could move first?
"""

_CHAPTER = """\
# %% [markdown]
# # {number} · {title}
#
# Begin with a question that the reader wants to have answered.

# %%
import torch
import torch.distributed as dist

from grader import check
"""

_CELLS = '''

# %% [markdown]
# ## Exercise: {words}
#
# Return the `x` of your left neighbour, on a ring: rank 0 is the right neighbour of the last rank.

# %%
def {name}(x: torch.Tensor) -> torch.Tensor:
    """The x of the left neighbour."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    came, right = torch.empty_like(x), (rank + 1) % n
    sending = dist.isend(x, right)
    dist.recv(came, (rank - 1) % n)
    sending.wait()
    return came
    ### END SOLUTION


# %%
check({name})
'''

_ACCEPTED = """\
# exercise: {name}
import torch.distributed as dist


def {name}(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = x.clone()
    if n > 1:
        left, right = (rank - 1) % n, (rank + 1) % n
        pair = [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, y, left)]
        for request in dist.batch_isend_irecv(pair):
            request.wait()
    return y
"""

_MISTAKE = '''\
"""Every rank ends with its right neighbour's x: send to the right, and receive from the left."""
# exercise: {name}
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def {name}(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank - 1) % n)
    dist.recv(y, (rank + 1) % n)
    request.wait()
    return y
'''


def write_exercise(course: Path, chapter: str, name: str, known: Iterable[str]) -> list[Path]:
    """Write an exercise that works into a chapter, and return the files.

    A chapter that is not there begins with it.

    Args:
        course: a checkout of the course.
        chapter: its name, such as ``02_broadcast``.
        name: the name of the exercise, a name of Python.
        known: the names of the exercises that there are.

    Raises:
        RequestError: this is no checkout, or a name is taken or is none.
    """
    if not (course / "solutions").is_dir() or not (course / "tests").is_dir():
        raise RequestError(f"{course} is no checkout of the course: it has no solutions and tests")
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", chapter):
        raise RequestError(f"a chapter is named like 02_broadcast, and not {chapter!r}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise RequestError(f"an exercise is named like tree_broadcast, and not {name!r}")
    if name in known:
        raise RequestError(f"there is an exercise {name} already; choose another name")
    number, _, topic = chapter.partition("_")
    words = {
        "name": name,
        "number": number,
        "title": topic.replace("_", " ").capitalize(),
        "words": name.replace("_", " "),
    }
    module = course / "grader" / "course" / "chapters" / f"ch{chapter}.py"
    declared = module.read_text(encoding="utf-8") if module.exists() else _MODULE.format(**words)
    added = [
        (course / "solutions" / f"{chapter}.py", _CHAPTER, _CELLS),
        (course / "grader" / "course" / "help" / f"{chapter}.md", "", _HELP),
    ]
    whole = [
        (course / "tests" / "accepted" / chapter / f"{name}_batch.py", _ACCEPTED),
        (
            course / "grader" / "course" / "mistakes" / chapter / f"{name}_from_the_right.py",
            _MISTAKE,
        ),
    ]
    written = [module, *(path for path, *_ in added), *(path for path, _ in whole)]
    for path, _ in whole:
        if path.exists():
            raise RequestError(f"{path} is there already; choose another name")
        path.parent.mkdir(parents=True, exist_ok=True)
    declared = _with_imports(declared).rstrip() + "\n"
    lone = not isinstance(ast.parse(declared).body[-1], (ast.Import, ast.ImportFrom))
    between = "\n\n" if lone else "\n"
    module.write_text(f"{declared}{between}{_DECLARATION.format(**words)}", encoding="utf-8")
    for path, begin, text in added:
        before = path.read_text(encoding="utf-8") if path.exists() else begin.format(**words)
        between = "\n" if before and path.suffix == ".md" else ""
        path.write_text(f"{before}{between}{text.format(**words)}", encoding="utf-8")
    for path, text in whole:
        path.write_text(text.format(**words), encoding="utf-8")
    return written


def _with_imports(source: str) -> str:
    """Return a module that imports what the declaration needs, its imports sorted as before."""
    for name, wanted in {"torch": (), **_IMPORTS}.items():
        lines = source.splitlines()
        tree = ast.parse(source).body
        imports = [node for node in tree if isinstance(node, (ast.Import, ast.ImportFrom))]
        if not wanted:
            if not any(
                isinstance(node, ast.Import) and node.names[0].name == name for node in imports
            ):
                first = next(n for n in imports if _module_of(n).startswith("grader"))
                lines[first.lineno - 1 : first.lineno - 1] = [f"import {name}", ""]
        else:
            same = [node for node in imports if _module_of(node) == name]
            later = [node for node in imports if _module_of(node) > name]
            have = {alias.name for node in same for alias in node.names}
            text = _import(name, have | set(wanted))
            if same:
                lines[same[0].lineno - 1 : same[0].end_lineno] = text
            elif later:
                lines[later[0].lineno - 1 : later[0].lineno - 1] = text
            else:
                end = imports[-1].end_lineno or 0
                lone = not _module_of(imports[-1]).startswith("grader")
                lines[end:end] = ["", *text] if lone else text
        source = "\n".join(lines) + "\n"
    return source


def _module_of(node: ast.Import | ast.ImportFrom) -> str:
    # what Python and torch bring stands above, in groups of its own
    if isinstance(node, ast.Import):
        return ""
    module = node.module or ""
    return module if module.startswith("grader") else ""


def _import(module: str, names: set[str]) -> list[str]:
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in ordered), ")"]
