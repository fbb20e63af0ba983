"""The code of an answer, as it travels to the ranks, and how a rank loads it."""

from __future__ import annotations

import builtins
import marshal
import sys
import types
from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["MODULE", "LoadedProgram", "NotDefined", "Program", "Unit", "load", "loader"]

#: The name of the module that a submission's definitions are loaded into.
MODULE = "submission"


class NotDefined(Exception):
    """The program has no such name; its cause says why, if a statement failed."""


class Unit(msgspec.Struct, frozen=True):
    """One statement of a submission, compiled.

    Attributes:
        file, line: where it stands.
        names: the names it defines; if it fails, they are what it costs.
        code: the marshalled code object.
    """

    file: str
    line: int
    names: list[str]
    code: bytes


class Program(msgspec.Struct, frozen=True):
    """An answer's code: either one live function, pickled by value, or statements.

    It is read by a rank and by nobody else: what comes back from a rank is
    data.  Where strangers' files are parsed in a process of their own, that
    process makes the program, and the judge has it ``packed`` only.
    """

    live: bytes = b""
    units: list[Unit] = []
    packed: bytes = b""

    def to_bytes(self) -> bytes:
        """The program for the wire."""
        return self.packed or msgspec.msgpack.encode(self)

    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """The program from the wire."""
        return msgspec.msgpack.decode(data, type=Program)


class LoadedProgram:
    """A program loaded in this process.

    Attributes:
        failed: by name, why the statement that defines it could not be run.
    """

    def __init__(self, namespace: dict[str, Any], *live: Any) -> None:
        self._namespace = namespace
        self._live = live  # one value, whatever it is, or none
        self.failed: dict[str, tuple[Unit, BaseException]] = {}

    def entry(self, name: str) -> Any:
        """What to call.

        Raises:
            NotDefined: no statement defines it, or the one that should failed;
                then that exception is the cause.
        """
        if self._live:
            return self._live[0]
        if name in self._namespace:
            return self._namespace[name]
        if name in self.failed:
            _, error = self.failed[name]
            raise NotDefined(name) from error
        raise NotDefined(name)


def load(program: Program) -> LoadedProgram:
    """Run a program's definitions, one by one.

    A statement that raises costs only the names it defines, as a notebook's
    cell would; what becomes of that shows when the answer is called.
    """
    return loader(program)()


def loader(program: Program) -> Callable[[], LoadedProgram]:
    """Loads a program again and again, each time with global variables of its own.

    The code is shared: a thousand copies of it would have to be fetched from
    memory by turns, and Python would have to learn to run each of them fast.
    """
    if program.live:
        return _live_loader(program.live)
    codes = [(unit, marshal.loads(unit.code)) for unit in program.units]

    def load_units() -> LoadedProgram:
        module = types.ModuleType(MODULE)
        module.__dict__["__builtins__"] = builtins
        sys.modules[MODULE] = module
        loaded = LoadedProgram(module.__dict__)
        for unit, code in codes:
            try:
                exec(code, module.__dict__)
            except Exception as error:
                for name in unit.names:
                    loaded.failed[name] = (unit, error)
        return loaded

    return load_units


def _live_loader(live: bytes) -> Callable[[], LoadedProgram]:
    import cloudpickle

    shared: dict[types.CodeType, types.CodeType] = {}

    def load_live() -> LoadedProgram:
        function = cloudpickle.loads(live)
        for one in (function, *getattr(function, "__globals__", {}).values()):
            if isinstance(one, types.FunctionType):
                one.__code__ = shared.setdefault(one.__code__, one.__code__)
        return LoadedProgram({}, function)

    return load_live
