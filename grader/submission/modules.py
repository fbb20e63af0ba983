"""Modules that were handed in beside an answer, found by following its imports.

Plain Python looks for a module in the folder of the script first, so an answer may be spread over
several files.  The ranks get those that it imports, directly or through others, as compiled code:
they need no file system, and see no file that was not handed in.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import marshal
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath
from typing import Protocol

from grader.submission.definitions import OURS, bound, reason, without_experiments
from headcount.core.errors import UnreadableFile
from headcount.core.files import LARGEST_FILE
from headcount.core.program import Module
from headcount.core.set_orders import rewrite
from headcount.core.verdict import BESIDE

__all__ = ["Beside", "FolderOnDisk", "Imported", "ReceivedFiles", "follow_imports"]

#: Limits on the modules of one answer, and on their bytes together.
MOST_MODULES, _BYTES = 500, LARGEST_FILE

#: Files and folders that are looked at where code computes the names of what it imports.
_LOOKED_AT = 2000

#: Folders that hold no code of the student's.
_FOREIGN = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


class Beside(Protocol):
    """The Python files that were handed in beside an answer, by their paths from its folder."""

    def read(self, path: str) -> bytes | None:
        """Return the contents of a file, or None if there is none that can be read."""
        ...

    def holds(self, folder: str) -> bool:
        """Return whether there is such a folder."""
        ...

    def paths(self) -> Iterable[str]:
        """Return the paths of all files."""
        ...

    def place(self, path: str) -> str:
        """Return the path of a file on this machine, or an empty string."""
        ...


@dataclass(frozen=True)
class ReceivedFiles:
    """Files of one submission, as data.

    Attributes:
        files: their contents, by the path from the answer's folder.
        others: what is beside these files, and gives way to them.
    """

    files: Mapping[str, bytes]
    others: Beside | None = None

    def read(self, path: str) -> bytes | None:
        """Return the contents of a file, or None."""
        others = self.others.read if self.others else self.files.get
        return self.files[path] if path in self.files else others(path)

    def holds(self, folder: str) -> bool:
        """Return whether a file is in this folder, or in one inside it."""
        own = any(path.startswith(f"{folder}/") for path in self.files)
        return own or bool(self.others and self.others.holds(folder))

    def paths(self) -> Iterable[str]:
        """Return the paths of all files."""
        return dict.fromkeys([*self.files, *(self.others.paths() if self.others else ())])

    def place(self, path: str) -> str:
        """Return the path of one of the others; these files are on no disk."""
        return self.others.place(path) if self.others and path not in self.files else ""


@dataclass(frozen=True)
class FolderOnDisk:
    """The folder of an answer on this machine, of which only what is imported is read."""

    folder: Path

    def read(self, path: str) -> bytes | None:
        """Return the contents of a file, or None."""
        file = self.folder / path
        with contextlib.suppress(OSError, ValueError):
            found = file.stat()
            if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_FILE:
                return file.read_bytes()
        return None

    def holds(self, folder: str) -> bool:
        """Return whether there is such a folder."""
        return (self.folder / folder).is_dir()

    def paths(self) -> Iterator[str]:
        """Yield the paths of the Python files, without those of virtual environments and caches."""
        left = _LOOKED_AT
        for top, folders, files in os.walk(self.folder):
            left -= len(folders) + len(files)
            if left < 0:
                return
            folders[:] = sorted(
                name
                for name in folders
                if name.isidentifier()
                and name not in _FOREIGN
                and not os.path.lexists(os.path.join(top, name, "pyvenv.cfg"))
            )
            for name in sorted(files):
                if name.endswith(".py"):
                    yield (Path(top) / name).relative_to(self.folder).as_posix()

    def place(self, path: str) -> str:
        """Return the path of a file on this machine."""
        return os.path.abspath(self.folder / path)


@dataclass
class Imported:
    """What an answer imports from beside it.

    Attributes:
        modules: the modules, for the ranks.
        hidden: names of files beside it that are not imported, since Python's own modules
            have these names.
        sources: the text of each module's file, by the file's name in reports.
        starred: names that ``from module import *`` at the answer's module level may bind.
    """

    modules: list[Module] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    starred: set[str] = field(default_factory=set)


def follow_imports(trees: Iterable[ast.AST], beside: Beside) -> Imported:
    """Return what code imports from beside it, directly or through what it imports.

    Args:
        trees: the parsed pieces of the answer.
        beside: the files beside it.

    Raises:
        UnreadableFile: they are too many, or too large.
    """
    follower = _Follower(beside)
    for tree in trees:
        follower.follow(tree, package="")
        follower.imported.starred |= follower.starred_by(tree, "", set())
    return follower.imported


class _Follower:
    """Follows imports from module to module."""

    def __init__(self, beside: Beside) -> None:
        self.imported = Imported()
        self._beside = beside
        self._known: dict[str, Module | None] = {}
        self._trees: dict[str, ast.Module] = {}
        self._bytes = 0

    def follow(self, tree: ast.AST, package: str) -> None:
        """Find what a piece of code imports.

        Args:
            tree: the code.
            package: the package that it is in, from which its relative imports start.
        """
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._find(alias.name)
            elif isinstance(node, ast.ImportFrom):
                self._follow_from(node, package)
            elif isinstance(node, ast.Call) and _imports_by_text(node):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    name = first.value
                    inner = package if name.startswith(".") else ""
                    self._find(f"{inner}.{name.lstrip('.')}".strip("."))
                else:
                    self._find_all("")

    def starred_by(self, tree: ast.AST, package: str, seen: set[str]) -> set[str]:
        """Return the names that star imports at a module's own level may bind."""
        names: set[str] = set()
        for node in getattr(tree, "body", []):
            if not isinstance(node, ast.ImportFrom) or node.names[0].name != "*":
                continue
            base = _base(node, package)
            if base in self._trees and base not in seen:
                module = self._known[base]
                inner = base if module and module.package else base.rpartition(".")[0]
                names |= bound(self._trees[base])
                names |= self.starred_by(self._trees[base], inner, seen | {base})
        return names

    def _follow_from(self, node: ast.ImportFrom, package: str) -> None:
        base = _base(node, package)
        found = self._find(base)
        if found is None or not found.package:
            return
        for alias in node.names:
            if alias.name == "*":
                self._find_all(f"{base.replace('.', '/')}/")
            else:
                self._find(f"{base}.{alias.name}")

    def _find_all(self, folder: str) -> None:
        """Find every module in a folder, which code may import by a name that it computes."""
        for path in self._beside.paths():
            if path.startswith(folder) and path.endswith(".py"):
                parts = PurePosixPath(path.removesuffix(".py").removesuffix("/__init__")).parts
                if all(part.isidentifier() for part in parts):
                    self._find(".".join(parts))

    def _find(self, name: str) -> Module | None:
        """Return a module beside the answer, found together with the packages that it is in."""
        parts = name.split(".")
        found = None
        for count in range(1, len(parts) + 1):
            whole = ".".join(parts[:count])
            if whole not in self._known:
                self._known[whole] = None  # a module may import itself
                self._known[whole] = self._look_for(whole)
            found = self._known[whole]
            if found is None:
                return None
        return found

    def _look_for(self, name: str) -> Module | None:
        path = name.replace(".", "/")
        top = name.partition(".")[0]
        if not all(part.isidentifier() for part in name.split(".")) or top in OURS:
            return None
        for file, package in ((f"{path}/__init__.py", True), (f"{path}.py", False)):
            data = self._beside.read(file)
            if data is None:
                continue
            if top in sys.stdlib_module_names:
                self.imported.hidden.append(name)
                return None
            return self._add(name, file, package, data)
        # a folder without __init__.py is a package, too, unless one of its name is installed
        is_installed = top in sys.stdlib_module_names or PathFinder.find_spec(top) is not None
        if self._beside.holds(path) and ("." in name or not is_installed):
            module = Module(name, f"{BESIDE}{path}", package=True)
            self.imported.modules.append(module)
            return module
        return None

    def _add(self, name: str, file: str, package: bool, data: bytes) -> Module:
        self._bytes += len(data)
        if len(self.imported.modules) >= MOST_MODULES or self._bytes > _BYTES:
            raise UnreadableFile(
                f"more than {MOST_MODULES} modules or {_BYTES >> 20} MB beside it are imported"
            )
        label, place = f"{BESIDE}{file}", self._beside.place(file)
        tree: ast.Module | None = None
        try:
            text = importlib.util.decode_source(data)
            self.imported.sources[label] = text
            tree = without_experiments(ast.parse(text, label))
            code = marshal.dumps(compile(rewrite(tree), label, "exec", dont_inherit=True))
            module = Module(name, label, place, package, code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 1
            module = Module(name, label, place, package, line=line, error=reason(error))
        self._known[name] = module
        self.imported.modules.append(module)
        if tree is not None:
            self._trees[name] = tree
            self.follow(tree, name if package else name.rpartition(".")[0])
        return module


def _base(node: ast.ImportFrom, package: str) -> str:
    """Return the module that a statement imports from; empty where Python refuses the statement."""
    parts = package.split(".") if package else []
    if node.level > len(parts):
        return ""
    kept = parts[: len(parts) - node.level + 1] if node.level else []
    return ".".join([*kept, *([node.module] if node.module else [])])


def _imports_by_text(call: ast.Call) -> bool:
    """Return whether a call imports a module by a name that is a value: ``import_module(name)``."""
    called = call.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in ("import_module", "__import__")
