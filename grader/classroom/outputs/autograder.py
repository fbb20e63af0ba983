"""A zip for Gradescope that grades with this grader.

https://gradescope-autograders.readthedocs.io/en/latest/specs/: ``setup.sh`` runs
once, when the image is built, with the zip's contents in ``/autograder/source``;
``run_autograder`` runs for each submission, reads ``/autograder/submission`` and
has to write ``/autograder/results/results.json``.

The zip holds the grader itself, so that what grades on Gradescope is what was
uploaded, and nothing newer.  When the grader fails, no results are written and
the script ends with an error: Gradescope then says that the autograder failed,
instead of giving 0 points.

Where Gradescope's containers cannot make a sandbox, the submission is graded
without one: each has a container to itself, which ends with it.  The results
then say ``unsafe``, since code in the container could reach the grader.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import grader
from grader.core.errors import RequestError

__all__ = ["autograder"]

_HERE = "grader.classroom.outputs"

#: Of the repository, what installing the grader takes.
_NEEDED = ("LICENSE", "README.md", "pyproject.toml", "requirements.txt")

#: The earliest time a zip can tell: the same grader makes the same bytes.
_WHEN = (1980, 1, 1, 0, 0, 0)

_SCRIPT, _FILE = 0o755, 0o644


def autograder() -> bytes:
    """The zip, ready to upload under Configure Autograder.

    Raises:
        RequestError: the grader does not run from a clone of its repository,
            where the files are that installing it takes.
    """
    package = Path(grader.__file__).resolve().parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("setup.sh", "run_autograder"):
            # a shell takes a carriage return for a letter
            script = resources.files(_HERE).joinpath("assets").joinpath(name).read_bytes()
            _add(archive, name, script.replace(b"\r\n", b"\n"), _SCRIPT)
        for name in _NEEDED:
            if not (package.parent / name).is_file():
                raise RequestError(
                    f"{package.parent} has no {name}; make the zip from a clone of the repository"
                )
            _add(archive, f"gather-round/{name}", (package.parent / name).read_bytes(), _FILE)
        for path in _sources(package):
            name = path.relative_to(package.parent).as_posix()
            _add(archive, f"gather-round/{name}", path.read_bytes(), _FILE)
    return buffer.getvalue()


def _sources(package: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(folder) / name for name in sorted(files) if not name.startswith("."))


def _add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, or the mode below means nothing
    entry.external_attr = mode << 16
    archive.writestr(entry, data)
