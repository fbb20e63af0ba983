"""The exceptions of the course and its grader, and the kinds of files that hold answers.

They join those of :mod:`headcount.core.errors`::

    HeadcountError
    ├── RequestError           the request itself was wrong
    │   ├── MissingPackage     an optional package is not installed
    │   └── UnknownExercise    no exercise of that name in the course
    ├── DeclarationError       an exercise is declared wrongly
    └── ProgressFileError      the file of a learner's progress cannot be used
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from headcount.core.errors import HeadcountError, RequestError

__all__ = [
    "DeclarationError",
    "MissingPackage",
    "ProgressFileError",
    "UnknownExercise",
    "code_kind",
]


#: Modules of packages that the engine does without, and the extra that installs each.
_EXTRAS = {
    "IPython": "course",
    "PIL": "course",
    "cryptography": "class",
    "distributed": "class",
    "ipywidgets": "course",
    "jinja2": "class",
    "matplotlib": "course",
    "tomli": "class",
    "yaml": "class",
}


class MissingPackage(RequestError):
    """What was asked for needs a package that is not installed.

    Args:
        what: what was asked for.
        module: the module that is not there, one of an extra's.
    """

    def __init__(self, what: str, module: str) -> None:
        extra = _EXTRAS[module]
        super().__init__(
            f"{what} needs {module}, which is not installed: pip install 'gather-round[{extra}]'"
        )

    @classmethod
    def from_error(cls, what: str, error: ModuleNotFoundError) -> MissingPackage | None:
        """Return the error for a module that was not found; None if no extra installs it."""
        module = (error.name or "").partition(".")[0]
        return cls(what, module) if module in _EXTRAS else None


class UnknownExercise(RequestError, KeyError):
    """The course has no exercise of this name.

    It is also a :class:`KeyError`, which the ``get`` of a mapping such as the catalogue expects.

    Args:
        name: the name that was asked for.
        known: the names of the course, from which a near one is suggested.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        near = difflib.get_close_matches(name, list(known), n=1)
        mend = f"did you mean {near[0]}?" if near else "`python -m grader list` shows them all."
        super().__init__(f"there is no exercise named {name!r}; {mend}")

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show it in quotes


class DeclarationError(HeadcountError):
    """An exercise of the course is declared wrongly; the message is for maintainers."""


class ProgressFileError(HeadcountError):
    """The file of a learner's progress cannot be read or written; the message says the mend."""


#: The end of a name that tells the kind of a file.  Browsers save a notebook as ``.ipynb.json`` or
#: ``.ipynb.txt``, and put the counter of a second download before the last ending.
_ENDING = re.compile(
    r"(?P<kind>\.py|\.ipynb)(?:(?P<copy>[-_ ]?\(?\d{1,3}\)?)?\.(?:txt|json))?\Z", re.IGNORECASE
)


def code_kind(name: str) -> tuple[str, str]:
    """Return a file's name without the ending that tells its kind, and the kind.

    Args:
        name: the name, or a path.

    Returns:
        The kind is ``.py``, ``.ipynb``, or empty for a file that holds neither.
    """
    found = _ENDING.search(name)
    if found is None:
        return name, ""
    return name[: found.start()] + (found["copy"] or ""), found["kind"].lower()
