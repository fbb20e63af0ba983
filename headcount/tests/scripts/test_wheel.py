"""What is published, installed alone: it is small, starts nothing, and passes the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("wheel"),
    pytest.mark.skipif(
        not (PROJECT / "src").is_dir(), reason="there is no source to build a wheel of"
    ),
]


def python(folder, *words, **environment):
    """Run Python in a folder outside of the repository, with the wheel before all else."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(folder / "installed"), **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the wheel, and with what it installs in ``installed``."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = ("-m", "pip", "--disable-pip-version-check")
    # a copy, since a build leaves files beside the source
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((PROJECT / name).read_bytes())
    python(
        folder,
        "-c",
        "import shutil, sys; shutil.copytree(*sys.argv[1:])",
        PROJECT / "src",
        source / "src",
    )
    python(folder, *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    python(folder, *pip, "install", "--no-deps", "--target", folder / "installed", wheel)
    return folder


def test_it_is_smaller_than_a_megabyte(installed):
    (wheel,) = installed.glob("*.whl")
    assert wheel.stat().st_size < 1_000_000


#: Prints what an import of the package has changed.
IMPORT = """
import multiprocessing, os, sys, threading
before = set(sys.modules)
hooks = sys.excepthook, threading.excepthook, list(sys.meta_path), dict(os.environ)
import headcount
assert hooks == (sys.excepthook, threading.excepthook, list(sys.meta_path), dict(os.environ))
assert threading.active_count() == 1 and not multiprocessing.active_children()
assert not os.path.exists(f"/proc/self/task/{os.getpid()}/children") or not open(
    f"/proc/self/task/{os.getpid()}/children").read()
print(headcount.__file__)
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_its_import_starts_nothing_and_patches_nothing(installed):
    place, names = python(installed, "-c", IMPORT).splitlines()
    assert Path(place).is_relative_to(installed / "installed")
    assert "torch" not in names.split()  # and so nothing of it is patched


#: Prints the packages, besides Python's own, that any module of the package imports.
CLOSURE = """
import importlib, pkgutil, sys
import headcount
for found in pkgutil.walk_packages(headcount.__path__, "headcount."):
    if found.name != "headcount.__main__":
        importlib.import_module(found.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_it_imports_nothing_of_what_uses_it(installed):
    names = python(installed, "-c", CLOSURE).split()
    assert "headcount" in names
    assert "grader" not in names


def test_its_tests_of_the_first_floor_pass(installed):
    tests = PROJECT / "tests" / "unit"
    said = python(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    assert " passed" in said
