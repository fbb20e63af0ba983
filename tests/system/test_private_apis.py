"""The table of private APIs: it is complete, nothing in it is left over, and it notices changes."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import threading
from collections import defaultdict
from pathlib import Path

import pytest

import grader
import headcount
from grader import doctor
from grader.course.answers import FOLDER
from grader.private_apis import PRIVATE_APIS as GRADERS
from headcount.core import private_apis
from headcount.core.private_apis import PRIVATE_APIS, TESTED, PrivateApi, changes, checked

ROOT = Path(__file__).resolve().parents[2]

#: Names with an underscore that Python's documentation describes.
DOCUMENTED = {"_thread", "_exit", "_asdict", "_replace", "_fields"}


# The table and the source. ---------------------------------------------------------------


def is_private(name):
    """Whether a name is marked as private; ``_sunder_`` names are protocols with documentation."""
    return name.startswith("_") and not name.endswith("_") and name not in DOCUMENTED


def is_own(attribute):
    """Whether an attribute is one of ``self`` or ``cls``."""
    return isinstance(attribute.value, ast.Name) and attribute.value.id in ("self", "cls")


class Uses(ast.NodeVisitor):
    """The private names of other packages that a module of the grader uses.

    Attributes:
        dotted: those whose module is known: ``threading._active``.
        bare: attributes of values whose class is not: ``_version``.
        words: every name and text in the module.
    """

    def __init__(self, tree, own):
        self.names, self.own, self.dotted, self.bare, self.words = {}, own, set(), set(), set()
        self.visit(tree)

    def visit_Import(self, node):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self.names[alias.asname or first] = alias.name if alias.asname else first
            self._add(alias.name)

    def visit_ImportFrom(self, node):
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            self.names[alias.asname or alias.name] = path
            self._add(path)

    def visit_Attribute(self, node):
        parts = self._parts(node)
        if parts:
            self._add(".".join(parts))
            return
        self.words.add(node.attr)
        if is_private(node.attr) and not is_own(node) and node.attr not in self.own:
            self.bare.add(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr", "hasattr"):
            place, name = node.args[:2]
            if isinstance(name, ast.Constant) and is_private(name.value):
                parts = self._parts(place)
                if parts:
                    self._add(".".join((*parts, name.value)))
                elif name.value not in self.own:
                    self.bare.add(name.value)
        self.generic_visit(node)

    def visit_ClassDef(self, node):
        self.words.add(node.name)
        for base in node.bases:
            parts = self._parts(base)
            if parts and parts[0] not in PACKAGES:
                kind = named(".".join(parts))
                self.bare.update(n for n in bound(node) if is_private(n) and hasattr(kind, n))
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self.words.add(node.name)
        self.generic_visit(node)

    def visit_Name(self, node):
        self.words.add(node.id)

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.words.update(re.findall(r"\w+", node.value))

    def _parts(self, node):
        """The dotted name that an expression stands for, if it begins with an imported one."""
        if isinstance(node, ast.Name):
            return self.names[node.id].split(".") if node.id in self.names else []
        if isinstance(node, ast.Attribute):
            parts = self._parts(node.value)
            return [*parts, node.attr] if parts else []
        return []

    def _add(self, path):
        self.words.update(path.split("."))
        if path.partition(".")[0] not in PACKAGES and any(map(is_private, path.split("."))):
            self.dotted.add(path)


def named(path):
    """What a dotted name stands for."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise LookupError(path)


def bound(tree):
    """The attributes, functions and classes that a module or a class defines."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.update({node.attr} if is_own(node) else ())
    return found


def missing(uses, table):
    """The private names that a module uses and that no entry of the table has."""
    for path in sorted(uses.dotted):
        if not any(path == api.name or path.startswith(f"{api.name}.") for api in table):
            yield path
    for name in sorted(uses.bare):
        if not any(name in api.name.split(".") for api in table):
            yield name


#: The packages, with their folders and their tables.
PACKAGES = {
    "headcount": (Path(headcount.__file__).parent, PRIVATE_APIS),
    "grader": (Path(grader.__file__).parent, GRADERS),
}


def uses_of(package):
    """By path in the package, what each module uses."""
    root = PACKAGES[package][0]
    # an answer may do what it likes
    paths = sorted(path for path in root.rglob("*.py") if FOLDER not in path.parent.parents)
    trees = {p.relative_to(root).as_posix(): ast.parse(p.read_text()) for p in paths}
    own = {path: bound(tree) for path, tree in trees.items()}
    # a name of headcount's that the grader reads is none of torch's
    others = bound_in_all(other for other in PACKAGES if other != package)
    for path, tree in trees.items():
        near = own[path] | others
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.startswith(f"{package}."):
                stem = "/".join(node.module.split(".")[1:])
                for file in (f"{stem}.py", f"{stem}/__init__.py"):
                    near |= own.get(file, set())
        yield path, Uses(tree, near)


def bound_in_all(packages):
    """The names that the modules of packages bind."""
    found = set()
    for package in packages:
        for path in PACKAGES[package][0].rglob("*.py"):
            if FOLDER not in path.parent.parents:
                found |= bound(ast.parse(path.read_text()))
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("package", PACKAGES)
def test_every_private_name_that_is_used_stands_in_the_table(package):
    found, entries = {}, PACKAGES[package][1]
    for path, uses in uses_of(package):
        if path.rpartition("/")[2] != "private_apis.py":
            table = [api for api in entries if path in api.modules]
            found |= {(path, name): "not in the table for it" for name in missing(uses, table)}
    assert found == {}, f"add these to {package}'s private_apis.py, or do without them"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_entry_of_the_table_is_used_where_it_says(package):
    words = {path: uses.words for path, uses in uses_of(package)}
    left = defaultdict(list)
    for api in PACKAGES[package][1]:
        wanted = {api.mentions or api.name.rpartition(".")[2], *api.variables}
        for module in api.modules:
            if not wanted <= words.get(module, set()):
                left[api.name].append(module)
    assert left == {}, f"these no longer use it: take them out of {package}'s private_apis.py"


def test_a_name_stands_in_the_table_once():
    for _, table in PACKAGES.values():
        names = [api.name for api in table]
        assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize(
    "source, found",
    [
        ("import threading\nthreading._active.get(1)", ["threading._active.get"]),
        ("from torch._C import Future", ["torch._C.Future"]),
        ("import torch\ngetattr(torch.Tensor, '_base')", ["torch.Tensor._base"]),
        ("def f(x):\n    return x._version", ["_version"]),
        ("import threading as t\nclass A(t.Thread):\n    def _stop(self): ...", ["_stop"]),
        ("class A:\n    def __init__(self):\n        self._a = 1\ndef f(a):\n    a._a", []),
        ("import os\nos._exit(0)", []),
    ],
)
def test_the_scan_sees_each_way_to_use_a_private_name(source, found):
    tree = ast.parse(source)
    expected = [name for name in found if name != "_stop" or hasattr(threading.Thread, "_stop")]
    assert list(missing(Uses(tree, bound(tree)), ())) == expected


# The comparison with what is installed. --------------------------------------------------


def test_this_environment_is_as_the_table_says():
    both = (*PRIVATE_APIS, *GRADERS)
    assert list(map(str, changes(both))) == []
    owners = {api.owner for api in checked(both)}
    assert owners == {"CPython", "IPython", "cloudpickle", "ipykernel", "numpy", "torch"}


def named_change(*table):
    return [str(change) for change in changes(table)]


@pytest.mark.parametrize(
    "changed, fault",
    [
        ({"name": "threading._no_such"}, "is gone"),
        ({"name": "threading._no_such.attribute"}, "is gone"),
        ({"name": "torch._dynamo.no_such"}, "is gone"),
        ({"name": "torch._no_such.disable"}, "is gone"),
        ({"name": "threading.Thread._no_such"}, "is gone"),
        ({"parameters": ("self", "duration")}, "takes (self, timeout) and not (self, duration)"),
        ({"variables": ("self", "gone")}, "has no variable gone"),
        ({"mentions": "_gone_"}, "no longer asks for _gone_"),
        ({"behaves": lambda value: False}, "behaves differently"),
        ({"behaves": lambda value: 1 / 0}, "raises ZeroDivisionError (division by zero)"),
    ],
)
def test_a_change_is_named_with_its_owner_its_version_and_what_it_breaks(changed, fault):
    api = PrivateApi(**{"name": "threading.Thread.join", "needed_to": "wait", "modules": ("a.py",)}
                     | changed)  # fmt: skip
    version = private_apis.installed_version(api.owner)
    (said,) = named_change(api)
    assert said.startswith(f"{api.name} {fault} in {api.owner} {version}; it is needed to wait")
    mend = f"tested with {api.owner} {private_apis.tested_versions(api.owner)}."
    assert said.endswith(f"(headcount/a.py). It is {mend}")


def test_a_name_is_expected_only_in_the_versions_that_have_it(monkeypatch):
    now = sys.version_info[:2]
    entry = {"needed_to": "wait", "modules": ()}
    later = PrivateApi("threading._no_such", since=(now[0], now[1] + 1), **entry)
    earlier = PrivateApi("threading._no_such", until=(now[0], now[1] - 1), **entry)
    elsewhere = PrivateApi("torch._no_such", where="torch.distributed.is_mpi_available", **entry)
    absent = PrivateApi("ipykernel.no_such", **entry)
    monkeypatch.setattr(private_apis, "version", lambda name: "" if name == "ipykernel" else "2.13")
    assert named_change(later, earlier, elsewhere, absent) == []
    still = PrivateApi("threading._no_such", since=now, until=now, **entry)
    assert len(named_change(still)) == 1


def test_what_is_looked_up_in_the_source_is_what_an_import_gives():
    """These modules are not imported, since that takes a second."""
    read = [api.name for api in PRIVATE_APIS if api.name.startswith(private_apis.READ_FROM_SOURCE)]
    assert read
    for name in read:
        module, _, attribute = name.rpartition(".")
        owner = named(module)
        assert hasattr(owner, attribute) or private_apis.sets_attribute(owner, attribute), name


def test_the_doctor_says_that_all_are_as_expected(monkeypatch):
    (finding,) = doctor.private_api_findings()
    number = len(checked((*PRIVATE_APIS, *GRADERS)))
    assert (finding.state, finding.detail) == ("ok", f"{number} of {number} as expected")


def test_the_doctor_names_what_has_changed(monkeypatch):
    api = PrivateApi("threading._no_such", "name a deadlock", ("rank/threads.py",))
    monkeypatch.setattr(doctor, "PRIVATE_APIS", (*PRIVATE_APIS, api))
    counted, gone = doctor.private_api_findings()
    number = len(checked((*PRIVATE_APIS, *GRADERS, api)))
    assert counted.detail == f"{number - 1} of {number} as expected"
    assert {counted.state, gone.state} == {"missing"}
    assert "threading._no_such is gone in CPython" in gone.detail


def test_the_tested_versions_are_those_of_the_metadata():
    text = (ROOT / "pyproject.toml").read_text()
    (first, after) = re.findall(r'"torch>=(\d+\.\d+),<(\d+\.\d+)"', text)[0]
    first, after = (tuple(map(int, one.split("."))) for one in (first, after))
    assert TESTED["torch"] == (first, (after[0], after[1] - 1))
    python = re.findall(r'requires-python = ">=(\d+)\.(\d+)"', text)[0]
    assert TESTED["CPython"][0] == tuple(map(int, python))


def test_an_entry_ends_the_sentence_that_it_stands_in():
    for api in PRIVATE_APIS:
        assert re.match(r"[a-z]+ .*[\w)]$", api.needed_to), api.name
        assert inspect.cleandoc(api.needed_to) == api.needed_to
