"""What a submission's processes see and hold of the grader: what they need, and no answer."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import pickle
import pickletools
import shutil
import subprocess
import sys
import types
import venv
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from grader.api import catalogue
from grader.sandbox.sandboxes import missing, new_sandbox
from grader.submission.submission import Submission, fingerprints, tokens
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.simulation.algorithms import ALGORITHMS, packed
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import simulate

ROOT = Path(__file__).resolve().parents[2]

# what is read of all answers is read once
pytestmark = pytest.mark.xdist_group("sandbox view")

sandboxed = pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}")

#: A submission that looks for all that there is of the grader: on disk, among the modules, after
#: importing all that can be imported, and among the functions in memory.
PROBE = Submission.from_bytes(
    b"""
import contextlib, gc, importlib, os, sys, types

def files():
    found = {}
    for top in ["/", *sys.path, *{os.path.dirname(path) for path in sys.path}]:
        for name in os.listdir(top) if os.path.isdir(top) else ():
            if name.startswith(("grader", "headcount", "gather_round", "__editable__", "course")):
                path = os.path.join(top, name)
                for folder, _, names in os.walk(path):
                    found.update(read(os.path.join(folder, one)) for one in names)
                if os.path.isfile(path):
                    found.update([read(path)])
    return found

def read(path):
    with open(path, "rb") as file:
        return path, file.read().decode("utf-8", "replace")

def modules():
    names = [path for path in files() if path.startswith("/course/") and path.endswith(".py")]
    names = [path[len("/course/"):-len(".py")].replace("/", ".") for path in names]
    for name in names:
        importlib.import_module(name.removesuffix(".__init__"))
    return sorted(name for name in sys.modules if name.split(".")[0] in ("grader", "headcount"))

def functions():
    gc.unfreeze()
    found, codes = {}, [f.__code__ for f in gc.get_objects() if type(f) is types.FunctionType]
    while codes:
        code = codes.pop()
        codes += [one for one in code.co_consts if type(one) is types.CodeType]
        for package in ("grader", "headcount"):
            _, ours, module = code.co_filename.rpartition("/" + package + "/")
            if ours:
                found.setdefault(package + "/" + module, set()).add(code.co_name)
    return {module: sorted(names) for module, names in found.items()}
""",
    "probe.py",
)

MODULES = {
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
    for root, package in ((ROOT, "grader"), (ROOT / "headcount" / "src", "headcount"))
    for path in sorted((root / package).rglob("*.py"))
}

#: The names of the algorithms' functions.
NAMES = {entry.run.__name__ for known in ALGORITHMS.values() for entry in known.values()}
NAMES.add("subtree_end")


@pytest.fixture(scope="module")
def sandbox():
    with contextlib.closing(new_sandbox()) as made:
        yield made


def seen_by_a_rank(sandbox, entry):
    with ProcessWorld(sandbox, 1, PROBE.program) as world:
        outcome = world.run(Job(entry, ((),)))
    assert outcome.failure is None
    return outcome.results[0].value


def seen_by_a_simulated_rank(sandbox, entry, **options):
    job = Job(entry, ((),), **options)
    run = simulate(sandbox, PROBE.program, job, Flat())
    assert run.failure is None
    return run.results[0].value


@functools.cache
def functions_of(path):
    return list(functions_in(path.read_text()))


def functions_in(source):
    """The name, the line and the fingerprints of each function and method in a text."""
    coming = [ast.parse(source)]
    while coming:
        node = coming.pop()
        if isinstance(node, (ast.Module, ast.ClassDef)):
            coming += node.body
        elif isinstance(node, ast.FunctionDef):
            first = min([node, *node.decorator_list], key=lambda one: one.lineno)
            yield node.name, first.lineno, frozenset(fingerprints(tokens(node)))


@pytest.fixture(scope="module")
def answers():
    """Fingerprints of the functions of solutions, of oracles, and of the simulator's algorithms."""
    paths = [
        *(ROOT / "solutions").glob("*.py"),
        *(ROOT / "grader/course/chapters").glob("ch*.py"),
        MODULES["headcount.simulation.algorithms"],
    ]
    return {
        f"{name} of {path.name}": prints for path in paths for name, _, prints in functions_of(path)
    }


def alike(functions, answers, few=4, share=0.25):
    """Pairs of a function and an answer that are like each other.

    They are if they have ``few`` fingerprints in common, and a ``share`` of the smaller one's.
    """
    owners = defaultdict(list)
    for answer, prints in answers.items():
        for one in prints:
            owners[one].append(answer)
    for name, prints in functions.items():
        common = Counter(answer for one in prints for answer in owners[one])
        for answer, number in common.items():
            if number >= few and number >= share * min(len(prints), len(answers[answer])):
                yield f"{name} is like {answer}"


def by_place(sources):
    return {
        f"{name} of {path}": prints
        for path, text in sources.items()
        for name, _, prints in functions_in(text)
    }


def named_like_answers(sources):
    """The functions and classes of modules that have the name of an exercise or an algorithm."""
    for path, text in sources.items():
        for node in ast.parse(text).body:
            if getattr(node, "name", None) in {*catalogue(), *NAMES}:
                yield f"{node.name} of {path}"


def lines_of_answers():
    """The lines of answers that communicate."""
    for path in (ROOT / "solutions").glob("*.py"):
        text = path.read_text()
        for node in ast.parse(text).body:
            if getattr(node, "name", None) in catalogue():
                lines = text.splitlines()[node.lineno : node.end_lineno]
                yield from (line.strip() for line in lines if "dist." in line and len(line) > 40)


@sandboxed
def test_no_answer_lies_where_a_rank_can_read_it(sandbox, answers):
    files = seen_by_a_rank(sandbox, "files")
    sources = {path: text for path, text in files.items() if path.endswith(".py")}
    assert len(sources) > 20
    assert list(alike(by_place(sources), answers)) == []
    assert list(named_like_answers(sources)) == []
    # what an installation leaves behind, such as a description of the package, is text
    told = {line.strip() for text in files.values() for line in text.splitlines()}
    assert told & set(lines_of_answers()) == set()
    # compiled code may outlive its source
    stems = {Path(path).stem for path in sources}
    assert {Path(path).name.split(".")[0] for path in files if path.endswith(".pyc")} <= stems


@sandboxed
def test_a_rank_can_import_all_modules_that_it_sees_and_holds_no_other(sandbox):
    modules = seen_by_a_rank(sandbox, "modules")
    assert len(modules) > 20
    rooms = {".".join(name.split(".")[:2]) for name in modules if "." in name}
    assert rooms == {
        *("headcount.core", "headcount.rank", "headcount.server"),
        *("grader.errors", "grader.instruments", "grader.sandbox", "grader.submission"),
    }
    held = {name for names in seen_by_a_rank(sandbox, "functions").values() for name in names}
    assert len(held) > 100
    assert held & NAMES == set()


@sandboxed
def test_simulated_ranks_hold_no_answer(sandbox, answers):
    modules = seen_by_a_simulated_rank(sandbox, "modules", allowed=frozenset())
    assert "headcount.simulation.world" in modules
    sources = {name: MODULES[name].read_text() for name in modules}
    assert list(alike(by_place(sources), answers)) == []
    assert list(named_like_answers(sources)) == []
    held = seen_by_a_simulated_rank(sandbox, "functions", allowed=frozenset())
    assert {name for names in held.values() for name in names} & NAMES == set()


@pytest.mark.parametrize(
    ("allowed", "sent"),
    [
        ((), set()),
        (("new_group",), set()),
        (("all_gather",), {"all_gather_bruck"}),
        (("broadcast",), {"broadcast_binomial_tree"}),
        (("gather",), {"gather_binomial_tree", "subtree_end"}),
        (("all_gather_into_tensor", "barrier"), {"barrier_dissemination"}),
    ],
)
def test_a_simulation_gets_the_algorithms_of_collectives_that_are_allowed(allowed, sent):
    functions = packed({}, frozenset(allowed))
    words = {
        word
        for function in functions.values()
        for _, word, _ in pickletools.genops(function)
        if isinstance(word, str)
    }
    assert words & NAMES == sent


def carried_by(adapter):
    """The functions of the course that an adapter takes along, by name, file and line."""
    found, seen, coming = set(), {}, [pickle.loads(adapter)]
    while coming:
        one = coming.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, types.FunctionType):
            if one.__module__.startswith("grader.course."):
                found.add((one.__name__, one.__code__.co_filename, one.__code__.co_firstlineno))
                known = {n: v for n, v in one.__globals__.items() if n != "__builtins__"}
                coming += [*known.values(), *(one.__defaults__ or ())]
                coming += [cell.cell_contents for cell in one.__closure__ or ()]
        elif isinstance(one, type):
            coming += vars(one).values() if one.__module__.startswith("grader.course.") else ()
        elif isinstance(one, (staticmethod, classmethod)):
            coming.append(one.__func__)
        elif isinstance(one, dict):
            coming += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            coming += one
    return found


def test_no_adapter_takes_an_answer_along():
    paths = [
        *(ROOT / "solutions").glob("*.py"),
        *(ROOT / "grader/course/answers").glob("*/right/*.py"),
    ]
    answers = {
        f"{name} of {path.name}": prints
        for path in paths
        for name, _, prints in functions_of(path)
        if name in catalogue()
    }
    adapters = [one.packed_adapter() for one in catalogue().values() if one.adapter is not None]
    carried = set().union(*map(carried_by, adapters))
    assert len(carried) > len(adapters)
    known = {
        (name, str(path), line): prints
        for path in (ROOT / "grader/course/chapters").glob("ch*.py")
        for name, line, prints in functions_of(path)
    }
    prints = {f"{key[0]} of {key[1]}": known[key] for key in carried if key[0] != "<lambda>"}
    # an adapter is short, and so is what could be an answer in it
    assert list(alike(prints, answers, few=2, share=0.4)) == []


def python_in(folder):
    """A virtual environment with the packages of this one."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "others.pth").write_text("\n".join(p for p in sys.path if p.endswith("-packages")))
    return python, site


LOOK = """
import os, subprocess, sys
secrets, sys.argv = sys.argv[1:], ["-m"]  # as in a command: the import of grader starts nothing
from grader.sandbox.sandboxes import sandbox_command
look = '''
import importlib.util, os, psutil, sys
print(importlib.util.find_spec("grader").origin, *map(os.path.exists, sys.argv[1:]))
'''
subprocess.run([*sandbox_command(), sys.executable, "-c", look, *secrets], check=True)
"""


@sandboxed
@pytest.mark.parametrize("place", ["installed", "installed and a checkout", "in Python's folder"])
def test_a_grader_within_pythons_folder_is_hidden(tmp_path, place):
    python, site = python_in(tmp_path)
    copies = {
        "installed": [site],
        "installed and a checkout": [site, tmp_path / "share" / "course"],
        "in Python's folder": [tmp_path],
    }[place]
    secrets = []
    for folder in copies:
        secrets.append(folder / "headcount" / "simulation" / "algorithms.py")
        secrets.append(folder / "grader" / "course" / "chapters" / "ch02_broadcast.py")
        shutil.copytree(ROOT / "grader", folder / "grader")
        shutil.copytree(ROOT / "headcount" / "src" / "headcount", folder / "headcount")
        if folder != site:
            secrets.append(folder / "solutions" / "02_broadcast.py")
            secrets[-1].parent.mkdir()
            secrets[-1].write_text("an answer")
    done = subprocess.run(
        [python, "-c", LOOK, *secrets],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(copies[-1])},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert all(path.exists() for path in secrets)
    assert done.stdout.split() == ["/course/grader/__init__.py", *["False"] * len(secrets)]
