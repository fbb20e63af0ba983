"""The house: which way imports run, what is documented, what is promised."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import grader

ROOT = Path(__file__).resolve().parent.parent

#: From the ground up.  A module imports from lower layers, and from its own package.
LAYERS = (
    {"errors", "verdict", "version"},
    {"bandwidth", "costs", "sizes", "transports", "values", "program", "reading", "tags"},
    {"plans", "traffic", "compare", "definitions", "winnowing"},
    {"outline"},
    {"cases", "probes", "clocks"},
    {"devices"},
    {"oracles", "limits"},
    {"exercise", "information"},
    {"exercises", "submission", "hints"},
    {"simulation"},
    {"worlds"},
    {"assess"},
    {"turns", "scoring"},
    {"growth", "native"},
    {"judge", "logbook"},
    {"standing"},
    {"session", "reports", "pictures"},
    {"classroom", "bench"},
    {"api", "doctor", "releasing"},
    {"calculator", "earning", "replaying", "scaling", "timing"},
    {"simulate_options"},
    {"__init__", "__main__"},
)


def modules():
    for path in sorted((ROOT / "grader").rglob("*.py")):
        yield path, ".".join(path.relative_to(ROOT).with_suffix("").parts)


def part_of(module):
    """The piece of the house that ``grader.trace.message_matcher`` belongs to: ``traffic``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def level(part):
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_has_a_layer():
    assert {part_of(name) for _, name in modules()} == set().union(*LAYERS)


def test_imports_run_downward_only():
    package_doors = {"__init__"}  # `grader` itself, imported for its names
    for path, name in modules():
        mine = part_of(name)
        for target in imported(path):
            if not target.startswith("grader."):
                continue
            theirs = part_of(target)
            if theirs == mine or theirs not in set().union(*LAYERS) - package_doors:
                continue
            assert level(theirs) < level(mine), f"{name} imports {target}"


def test_a_rank_needs_neither_exercises_nor_judge():
    code = "import sys; sys.argv = ['-m']; import grader.server.process; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    loaded = {m for m in done.stdout.split() if m.startswith("grader.")}
    upper = {
        "cases",
        "exercise",
        "oracles",
        "assess",
        "exercises",
        "judge",
        "reports",
        "hints",
        "api",
        "submission",
    }
    assert loaded
    assert not {m for m in loaded if part_of(m) in upper}


def test_importing_the_package_does_not_import_torch():
    code = "import sys; sys.argv = ['-m']; import grader; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "False\n"


def all_modules():
    yield grader
    for info in pkgutil.walk_packages(grader.__path__, "grader."):
        yield importlib.import_module(info.name)


def test_everything_public_is_documented_and_exported():
    for module in all_modules():
        assert module.__doc__, f"{module.__name__} has no docstring"
        if ".exercises.ch" in module.__name__:
            continue
        exported = getattr(module, "__all__", [])
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                assert value.__doc__, f"{module.__name__}.{name} has no docstring"
        for name in exported:
            assert hasattr(module, name), f"{module.__name__} exports {name!r}, which it lacks"


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text()


def test_the_readmes_make_targets_exist(readme):
    makefile = (ROOT / "Makefile").read_text()
    wanted = set(re.findall(r"\bmake ([a-z]+)", readme))
    assert {"lab", "test"} <= wanted
    assert wanted <= set(re.findall(r"^([a-z]+):", makefile, re.M))


def test_the_readmes_links_lead_somewhere(readme):
    for target in re.findall(r"\]\((?!https?://|#)([^)]+)\)", readme):
        assert (ROOT / target.partition("#")[0]).exists(), target


def test_the_readmes_commands_are_those_of_the_command_line(readme):
    from grader.cli.main import _parser

    known = _parser().format_help()
    for command in set(re.findall(r"python -m grader ([a-z]+)", readme)):
        assert f"    {command} " in known, command


def test_requirements_and_metadata_name_the_same_packages():
    def names(lines):
        return {re.split(r"[<>=~! ]", line)[0] for line in lines if line and line[0] != "#"}

    project = (ROOT / "pyproject.toml").read_text()
    dependencies = re.search(r"^dependencies = \[\n(.*?)^\]", project, re.M | re.S)[1]
    required = names((ROOT / "requirements.txt").read_text().splitlines())
    assert names(re.findall(r'"(.+)",', dependencies)) - {"ipython"} == required
