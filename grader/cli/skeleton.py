"""``python -m grader new exercise``: an exercise that works, to be turned into one's own.

It passes a tensor to the right.  Everything that an exercise consists of is there: the declaration,
hints and advice, the stub and the solution, one right answer and one mistake.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import keyword
import re
import subprocess
import symtable
import sys
from collections.abc import Iterable
from pathlib import Path

from grader.exercise.answers import RIGHT
from headcount.core.errors import RequestError

__all__ = ["write_exercise"]

_MODULE = '"""Chapter {number}: say in one sentence what it is about."""\n'

#: What the declaration imports; it is sorted into what the chapter imports already.
_IMPORTS = """\
from grader.exercise.cases import kinds
from grader.exercise.declaration import Exercise, TrafficRules, Values
from grader.exercise.limits import messages, moved, neighbours_only, point
"""

_DECLARATION = """\
{name} = Exercise(
    signature="{name}(x: Tensor) -> Tensor",
    summary="the x of the left neighbour, on a ring",
    inputs=lambda draw: (
        draw.case(f"{{kind}}", x=draw.per_rank(kind)) for kind in kinds(draw.n)
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

_ANSWER = """\
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    came, right = torch.empty_like(x), (rank + 1) % n
    sending = dist.isend(x, right)
    dist.recv(came, (rank - 1) % n)
    sending.wait()
    return came"""

_HELP = """\
# {name}

## Hint 1

Which rank is on your right, and which on your left, where the ranks stand in a ring?

## Hint 2

Every rank sends its x to the right and receives from the left. If all of them sent first and
waited for the receiver, nobody would ever receive: begin the send, receive, then wait.

## Hint 3

This is the whole answer:

{answer}

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
{answer}
    ### END SOLUTION


# %%
check({name})
'''

_RIGHT_ANSWER = """\
# exercise: {name}
# diagnosis: none
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
        RequestError: this is no checkout, or a name is taken or is none; nothing is written then.
    """
    if not (course / "solutions").is_dir() or not (course / "tests").is_dir():
        raise RequestError(f"{course} is no checkout of the course: it has no solutions and tests")
    if importlib.util.find_spec("ruff") is None:
        raise RequestError("what changes the course is not installed here: make .venv/.tools")
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", chapter):
        raise RequestError(f"a chapter is named like 02_broadcast, and not {chapter!r}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise RequestError(f"an exercise is named like tree_broadcast, and not {name!r}")
    if name in known:
        raise RequestError(f"there is an exercise {name} already; choose another name")
    if keyword.iskeyword(name) or hasattr(builtins, name):
        raise RequestError(f"{name} has a meaning in Python itself; choose another name")
    number, _, topic = chapter.partition("_")
    words = {
        "name": name,
        "number": number,
        "title": topic.replace("_", " ").capitalize(),
        "words": name.replace("_", " "),
        "answer": _ANSWER,
    }
    package = course / "grader" / "course"
    module = package / "chapters" / f"ch{chapter}.py"
    solution = course / "solutions" / f"{chapter}.py"
    help = package / "help" / f"{chapter}.md"
    answers = package / "answers" / chapter
    right = answers / RIGHT / f"{name}_batch.py"
    mistake = answers / f"{name}_from_the_right.py"
    declared = _with_imports(_read(module) or _MODULE.format(**words), module)
    begun = _read(solution) or _CHAPTER.format(**words)
    for path, text in ((module, declared), (solution, begun)):
        if name in _names_of(text):
            where = path.relative_to(course)
            raise RequestError(f"{where} has another {name}, or imports it; choose another name")
    for path in (right, mistake):
        if path.exists():
            where = path.relative_to(course)
            raise RequestError(f"{where} is there already; choose another name")
    told = _read(help)
    texts = {
        module: _ruff(f"{declared}\n{_DECLARATION.format(**words)}", module, "format"),
        solution: _before_summary(begun, _CELLS.format(**words)),
        help: f"{told}\n{_HELP.format(**words)}".lstrip(),
        right: _RIGHT_ANSWER.format(**words),
        mistake: _MISTAKE.format(**words),
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [*texts]


def _before_summary(chapter: str, cells: str) -> str:
    """Return a chapter with further cells, before its summary if it has one."""
    text, heading, rest = chapter.partition("# %% [markdown]\n# ## Summary\n")
    return f"{text.rstrip()}\n\n{cells.strip()}\n\n{heading}{rest}" if heading else chapter + cells


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _with_imports(source: str, path: Path) -> str:
    """Return a module that imports what the declaration needs as well, sorted as before."""
    lines = source.splitlines(keepends=True)
    found = [one for one in ast.parse(source).body if isinstance(one, (ast.Import, ast.ImportFrom))]
    end = found[-1].end_lineno if found else len(lines)
    added = "".join([*lines[:end], _IMPORTS, *lines[end:]])
    return _ruff(added, path, "check", "--select=I", "--fix")


def _ruff(source: str, path: Path, *command: str) -> str:
    """Return what ruff makes of the source of a module, by the rules that hold where it lies."""
    place = ["--quiet", "--stdin-filename", str(path), "-"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, *place],
        input=source, stdout=subprocess.PIPE, encoding="utf-8", check=True,
    )  # fmt: skip
    return done.stdout


def _names_of(source: str) -> set[str]:
    """Return the names of a module: those that it binds, and those that its functions look up."""
    found, tables = set(), [symtable.symtable(source, "", "exec")]
    for table in tables:
        own = table.get_type() == "module"
        found |= {one.get_name() for one in table.get_symbols() if own or one.is_global()}
        tables += table.get_children()
    return found
