"""The house: which way imports run, what is documented, what is promised."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import json
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import grader
import headcount
from grader.api import catalogue
from grader.course.answers import FOLDER
from grader.sandbox import sandboxes as sandbox
from grader.sandbox.server import AHEAD
from headcount.core.wire import SIMULATOR
from headcount.launch.backends import BACKENDS, known_backends
from headcount.simulation import launch as simulation

ROOT = Path(__file__).resolve().parents[2]

#: The packages, by name: their folder, and their rooms from the ground up, of which each imports
#: only from those before it, and from itself.
PACKAGES = {
    "headcount": (
        ROOT / "headcount" / "src" / "headcount",
        (
            *("core", "trace", "rank", "server", "launch", "report", "runs"),
            *("simulation", "simulations", "script", "pytest_plugin", "cli", "__main__"),
        ),
    ),
    "grader": (
        ROOT / "grader",
        (
            *(
                "errors",
                "files",
                "private_apis",
                "submission",
                "instruments",
                "exercise",
                "sandbox",
                "judge",
                "report",
            ),
            *("course", "classroom", "api", "doctor", "cli", "__main__"),
        ),
    ),
}

#: By package, the page that says how it works.
ARCHITECTURE = {
    "headcount": (ROOT / "headcount" / "docs" / "architecture.md").read_text(),
    "grader": (ROOT / "docs" / "architecture.md").read_text(),
}

#: All rooms, headcount's below the grader's.
ROOMS = [f"{name}.{room}" for name, (_, rooms) in PACKAGES.items() for room in rooms]

#: Rooms of headcount of which neither imports the other.
APART = {"headcount.simulation", "headcount.script"}


def modules():
    for package, _ in PACKAGES.values():
        for path in sorted(package.rglob("*.py")):
            if FOLDER in path.parent.parents:
                continue  # an answer, which is data
            yield path, ".".join(path.relative_to(package.parent).with_suffix("").parts)


def room_of(module):
    """The room that ``headcount.trace.deadlock`` is in: ``headcount.trace``."""
    return ".".join(module.split(".")[:2])


def is_ours(module):
    return module.partition(".")[0] in PACKAGES


def imported(path, types=True):
    tree = ast.parse(path.read_text())
    if not types:
        Untyped().visit(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


class Untyped(ast.NodeTransformer):
    """Removes imports that are for types alone."""

    def visit_If(self, node):
        return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node


def test_every_module_is_in_a_room():
    doors = {f"{name}.__init__" for name in PACKAGES}
    assert {room_of(name) for _, name in modules()} == {*ROOMS, *doors}


def test_imports_run_downward_only():
    """Lazy imports and those for types alone included: there is no cycle of rooms."""
    for path, name in modules():
        mine = room_of(name)
        if mine.endswith(".__init__"):
            continue  # the package's door: it hands on names of all rooms
        for target in imported(path):
            theirs = room_of(target)
            if theirs in ROOMS:
                assert ROOMS.index(theirs) <= ROOMS.index(mine), f"{name} imports {target}"
                assert not {mine, theirs} >= APART, f"{name} imports {target}"


def test_every_room_says_what_it_is_for_and_where_its_door_is():
    for package, rooms in PACKAGES.values():
        for room in rooms:
            door = package / room / "__init__.py"
            if door.exists():
                assert ast.get_docstring(ast.parse(door.read_text())), room


#: Names of torch, Python and IPython, which are no room's; the table of private APIs has torch's.
LIBRARIES = {
    *("_build_tree", "_function_events", "_get_default_store", "_needs_processing"),
    *("_get_backend", "_register_builtin_comm_hook"),
    *("_exit", "_parameters", "_repr_html_", "_repr_mimebundle_", "_render_traceback_"),
}


def private_reads(tree):
    """Return the lines and private names of a room that a module reads: ``group._recorder``.

    What the module itself defines or assigns is its own, unless ``super()`` is asked for it.
    """
    own, reads = set(LIBRARIES), []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.attr)
        elif isinstance(node, ast.AnnAssign):
            own.add(ast.unparse(node.target))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            inherited = ast.unparse(node.value) == "super()"
            reads += [(node.lineno, node.attr)] if inherited or node.attr not in own else []
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module):
            reads += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "monkeypatch.setattr":
            texts = [str(one.value) for one in node.args[:2] if isinstance(one, ast.Constant)]
            reads += [(node.lineno, text.rpartition(".")[2]) for text in texts]
    return [(line, name) for line, name in reads if re.match(r"_(?!.*__$)", name)]


@pytest.mark.parametrize(
    "code",
    [
        "dist.group.WORLD._recorder.posted",
        "from grader.course.limits import _HOLDS",
        "class A(HeldStorages):\n    def f(self): return self._seen",
        "class A(HeldStorages):\n    def _alive(self): return super()._alive()",
        "monkeypatch.setattr(checks, '_judged', {})",
        "monkeypatch.setattr('grader.api.checks._judged', {})",
    ],
)
def test_a_private_read_is_found(code):
    assert private_reads(ast.parse(code))


def test_no_chapter_reads_what_is_private_in_a_room():
    """What a chapter needs of a room has a public name, and its author need not read the room."""
    paths = [
        *(path for path, name in modules() if name.startswith("grader.course.chapters.")),
        *(path for path in (ROOT / "solutions").glob("*.py")),
    ]
    found = {path.name: private_reads(ast.parse(path.read_text())) for path in paths}
    assert {name: reads for name, reads in found.items() if reads} == {}


def test_no_test_reads_what_is_private_in_a_room():
    """A test asks for what others may ask for, so that what is private can change without it."""
    ours = set()
    for path, _ in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                ours.add(node.name)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                ours.add(ast.unparse(node).rpartition(".")[2])
    trees = (ROOT / "tests", ROOT / "headcount" / "tests")
    found = {
        path.relative_to(ROOT): [
            (line, name)
            for line, name in private_reads(ast.parse(path.read_text()))
            if name in ours
        ]
        for tree in trees
        for path in tree.rglob("test_*.py")
    }
    assert len(found) > 100
    assert {path: reads for path, reads in found.items() if reads} == {}


def test_a_name_of_a_class_is_used_once():
    """Then no reader has to ask which one is meant."""
    places = defaultdict(list)
    for path, name in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[name.partition(".")[0], node.name].append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def lists_of_diagnoses(tree):
    """Return the lines of collections, and of chains of ``or``, that name several diagnoses."""
    found = []
    for node in ast.walk(tree):
        parts = []
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.BoolOp):
            parts = [
                c for one in node.values if isinstance(one, ast.Compare) for c in one.comparators
            ]
        elif isinstance(node, ast.MatchOr):
            parts = [one.value for one in node.patterns if isinstance(one, ast.MatchValue)]
        named = [one for one in parts if ast.unparse(one).startswith("Diagnosis.")]
        found += [named[0].lineno] if len(named) > 1 else []
    return found


@pytest.mark.parametrize(
    "code",
    [
        "FAULTS = frozenset({Diagnosis.DEADLOCK, Diagnosis.TIMEOUT})",
        "WORDS = {Diagnosis.DEADLOCK: 1, Diagnosis.TIMEOUT: 2}",
        "one in (Diagnosis.DEADLOCK, Diagnosis.TIMEOUT)",
        "one is Diagnosis.DEADLOCK or one == Diagnosis.TIMEOUT",
        "match one:\n    case Diagnosis.DEADLOCK | Diagnosis.TIMEOUT: pass",
    ],
)
def test_a_list_of_diagnoses_is_found(code):
    assert lists_of_diagnoses(ast.parse(code))


def test_no_module_lists_diagnoses():
    """What several have in common is a field of their entries, so that a new one says it as well.

    A chapter may list what its own exercise's mistakes end with.
    """
    found = {
        name: lists_of_diagnoses(ast.parse(path.read_text()))
        for path, name in modules()
        if not name.startswith("grader.course.chapters.")
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_few_modules_stand_loose():
    for package, _ in PACKAGES.values():
        loose = [path.name for path in package.glob("*.py")]
        assert len(loose) <= 8, loose


#: Modules of headcount that the finder of a deadlock needs; others may pick up this part alone.
FINDER = 8


def test_the_finder_needs_little():
    found = needed_by("headcount.trace.deadlock")
    assert len([name for name in found if name.count(".") == 2]) <= FINDER, sorted(found)


def test_headcount_knows_no_exercise_and_no_course():
    for path, name in modules():
        if name.startswith("headcount."):
            assert "grader" not in path.read_text(), path


def needed_by(*names, without=()):
    """The modules that are imported with these as they run, lazily too, in the form of ``MODULES``.

    Those of the rooms ``without`` are not followed, nor the doors, which hand on any name.
    """
    sources = {name.removesuffix(".__init__"): path for path, name in modules()}
    coming, found = list(names), set()
    while coming:
        name = coming.pop()
        if name in sources and name not in found and room_of(name) not in without:
            found.add(name)
            coming += [name.rpartition(".")[0]]
            if name not in PACKAGES:
                coming += imported(sources[name], types=False)
    return found


#: What a rank, the parser, the compiler and their servers need; simulations are another matter.
NEEDED = needed_by(
    "headcount.server.process",
    "headcount.server.ahead",
    "headcount.server.fork_server",
    "grader.sandbox.server",
    "grader.sandbox.compiler",
    *AHEAD,
    without=("headcount.simulation",),
)


def test_a_sandbox_shows_the_modules_that_a_rank_imports_and_no_others():
    shown = set(sandbox.MODULES)
    missing, spare = sorted(NEEDED - shown), sorted(shown - NEEDED)
    where = "MODULES of grader/sandbox/sandboxes.py"
    assert not missing, f"a rank imports {missing}: add them to {where}, if they hold no answer"
    assert not spare, f"nothing in a sandbox imports {spare}: remove them from {where}"


def test_simulated_ranks_are_sent_the_modules_that_they_import_and_no_others():
    needed, sent = needed_by(SIMULATOR) - NEEDED, set(simulation.MODULES)
    missing, spare = sorted(needed - sent), sorted(sent - needed)
    where = "MODULES of headcount/src/headcount/simulation/launch.py"
    assert not missing, (
        f"a simulation imports {missing}: add them to {where}, if they hold no answer"
    )
    assert not spare, f"no simulation imports {spare}: remove them from {where}"


def test_what_travels_to_a_rank_needs_only_what_a_sandbox_shows():
    needed = {}

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            needed[module] = name
            return super().find_class(module, name)

    for exercise in catalogue().values():
        Reader(io.BytesIO(exercise.packed_adapter() or pickle.dumps(None))).load()
    assert set(filter(is_ours, needed)) <= set(sandbox.MODULES), needed


def test_every_backend_has_its_transport_and_its_place_in_the_docs():
    entries = known_backends()
    for entry in entries.values():
        assert importlib.util.find_spec(entry.transport), entry.name
    section = ARCHITECTURE["headcount"].partition("## Transports")[2].partition("\n## ")[0]
    assert set(re.findall(r"^- \*\*(\w+)\*\*", section, re.M)) == {
        entry.title for entry in BACKENDS.values()
    }
    for name in entries.keys() - BACKENDS.keys():
        assert f"\n## {entries[name].title}\n" in ARCHITECTURE["grader"]
    (graded,) = re.findall(r"Grading a class is on (.+) only", ARCHITECTURE["grader"])
    assert [entry.title for entry in entries.values() if entry.in_sandbox] == [graded]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_architecture_lists_the_rooms_in_their_order(package):
    section = ARCHITECTURE[package].partition("## The rooms")[2].partition("\n## ")[0]
    table = section.partition("```\n")[2].partition("```")[0]
    listed = [room for line in table.splitlines() for room in line.split("  ")[0].split(", ")]
    assert [*listed, "__main__"] == list(PACKAGES[package][1])


@pytest.mark.parametrize("page", PACKAGES)
def test_the_ways_through_the_code_name_what_is_there(page):
    section = ARCHITECTURE[page].partition("## Ways through the code")[2].partition("\n## ")[0]
    named = re.findall(r"`([^`]+\.py):([^`]+)`", section)
    assert named
    for path, name in named:
        package = PACKAGES[path.partition("/")[0]][0]
        body = ast.parse((package.parent / path).read_text()).body
        for part in name.split("."):
            found = [one for one in body if getattr(one, "name", None) == part]
            assert found, f"{path} has no {name}"
            body = found[0].body


def test_importing_the_package_starts_nothing_and_changes_nothing():
    code = (
        "import sys, psutil; before = sys.excepthook, sys.displayhook, list(sys.meta_path)\n"
        "import grader, headcount\n"
        "assert 'torch' not in sys.modules\n"
        "assert before == (sys.excepthook, sys.displayhook, sys.meta_path)\n"
        "assert not psutil.Process().children()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


#: By package, what it may import besides Python's library: what its wheel brings, ...
BROUGHT = {
    "headcount": {"torch", "numpy", "msgspec", "cloudpickle", "greenlet", "psutil", "rich"},
    "grader": {
        *("headcount", "torch", "numpy", "msgspec", "cloudpickle", "psutil", "rich"),
        "markdown_it",
    },
}

#: ... and by module, what it does without where that is not installed.
OPTIONAL = {
    "headcount.rank.process_limits": {"pyseccomp"},
    "grader.sandbox.sandboxes": {"pyseccomp"},
    "grader.submission.submission": {"IPython"},
    "grader.report.live": {"IPython"},
    "grader.report.drawing": {"matplotlib", "PIL"},
    "grader.report.timeline": {"matplotlib", "PIL"},
}

#: Rooms whose packages are an extra's: they are asked for where they are needed.
EXTRAS = ("grader.course", "grader.classroom", "grader.api", "grader.cli")


def test_a_package_imports_what_its_wheel_brings():
    for path, name in modules():
        if room_of(name) in (*EXTRAS, "grader.doctor"):
            continue
        package = name.partition(".")[0]
        outside = {target.partition(".")[0] for target in imported(path)} - {package}
        extra = outside - sys.stdlib_module_names - BROUGHT[package]
        assert extra <= OPTIONAL.get(name, set()), f"{name} imports {extra}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_brings_what_is_imported(package):
    folder = ROOT / "headcount" if package == "headcount" else ROOT
    project = (folder / "pyproject.toml").read_text().partition("dependencies = [")[2]
    stated = re.findall(r'"([\w-]+)', project.partition("]")[0])
    assert {name.removesuffix("-py").replace("-", "_") for name in stated} == BROUGHT[package]


@pytest.mark.parametrize("command", ["list", "list --json", "hint broadcast", "progress"])
def test_a_command_that_runs_nothing_does_not_import_torch(command):
    """Torch takes two seconds; these answer at once."""
    code = (
        "import sys; sys.argv = ['-m']; from grader.cli.main import main;"
        f" main({command.split()}); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "GRADER_PROGRESS": ""},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout


def all_modules():
    for package in (headcount, grader):
        yield package
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(info.name)


def test_everything_public_is_documented_and_exported():
    for module in all_modules():
        assert module.__doc__, f"{module.__name__} has no docstring"
        if ".chapters.ch" in module.__name__:
            continue
        exported = getattr(module, "__all__", [])
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                assert value.__doc__, f"{module.__name__}.{name} has no docstring"
        for name in exported:
            assert hasattr(module, name), f"{module.__name__} exports {name!r}, which it lacks"


#: A name of ours by its path: in a reference, or in an import, which a text may hold as well, as
#: the code of another process does.
REFERENCE = re.compile(r":\w+:`~?((?:grader|headcount)(?:\.\w+)+)")
IMPORT = re.compile(
    r"from ((?:grader|headcount)(?:\.\w+)*) import ((?:\w+(?: as \w+)?(?:, )?)+|\((?:[^)]+)\))"
)

#: The endings of files that name what is ours.
TEXTS = {".py", ".md", ".yml", ".toml"}


def named_by_their_path(text):
    yield from REFERENCE.findall(text)
    for module, names in IMPORT.findall(text):
        for name in re.findall(r"(\w+)(?: as \w+)?", re.sub("#.*", "", names)):
            yield f"{module}.{name}"


def is_there(name):
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if part in getattr(found, "__annotations__", ()):  # a field without a default
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize(
    "name", ["headcount.trace.nothing", "headcount.nothing.Trace", "grader.no"]
)
def test_a_name_that_is_gone_is_found(name):
    module, _, last = name.rpartition(".")
    assert [*named_by_their_path(f"see :func:`{name}`")] == [name]
    assert [*named_by_their_path(f"'from {module} import {last} as x'")] == [name]
    assert not is_there(name)


def test_what_is_named_by_its_path_is_there():
    folders = ("grader", "headcount", "tools", "tests", "docs", "benchmarks", ".github")
    files = [path for one in folders for path in (ROOT / one).rglob("*") if path.suffix in TEXTS]
    found = {
        name: path.relative_to(ROOT)
        for path in files
        if path != Path(__file__) and FOLDER not in path.parents
        for name in named_by_their_path(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 500
    assert not {name: path for name, path in found.items() if not is_there(name)}


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
    from grader.cli.main import make_parser

    known = make_parser().format_help()
    for command in set(re.findall(r"python -m grader ([a-z]+)", readme)):
        assert f"    {command} " in known, command


def test_the_readmes_functions_are_there_in_every_chapter(readme):
    """What a kernel does not know by name IPython takes for its own, as ``reset`` and ``run``."""
    block = readme.partition("## In a notebook")[2].partition("```python\n")[2].partition("```")[0]
    first, *lines = block.strip().splitlines()
    names = first.removeprefix("from grader import ").split(", ")
    assert len(names) == 9
    assert {line.partition("(")[0] for line in lines if "(" in line} <= {*names}
    for chapter in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(chapter.read_bytes())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        first = next(one for one in code if "from grader import" in one)
        imports = first.partition("from grader import ")[2].partition("\n\n")[0]
        assert {*names} <= {*re.findall(r"\w+", imports)}, chapter.name


def test_requirements_and_metadata_name_the_same_packages():
    def names(lines):
        return {re.split(r"[<>=~! ]", line)[0] for line in lines if line and line[0] != "#"}

    needed = set()
    for folder, parts in (
        (ROOT / "headcount", ["dependencies"]),
        (ROOT, ["dependencies", "course"]),
    ):
        project = (folder / "pyproject.toml").read_text()
        for part in parts:
            found = re.search(rf"^{part} = \[\n(.*?)^\]", project, re.M | re.S)[1]
            needed |= names(re.findall(r'"(.+)",', found))
    required = names((ROOT / "requirements.txt").read_text().splitlines())
    # headcount is a folder here, and ipython comes with JupyterLab
    assert needed - {"headcount", "ipython"} == required
