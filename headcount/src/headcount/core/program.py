"""Programs: the code of an answer as it travels to the ranks, and how a rank loads it."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import io
import marshal
import pickle
import re
import sys
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from itertools import takewhile
from typing import Any

import msgspec

__all__ = [
    "MODULE",
    "LoadedProgram",
    "Module",
    "NotDefined",
    "Program",
    "Unit",
    "import_ahead",
    "is_stub",
    "load",
    "loader",
    "offer_modules",
    "packed_by_value",
    "reached",
]

#: The name of the module that a submission's definitions are loaded into.
MODULE = "submission"


class NotDefined(Exception):
    """The program lacks a name; if the statement that defines it failed, that is the cause.

    Args:
        name: the name.
        error: the exception of the code that read it, if other code than ours did.
    """

    def __init__(self, name: str, error: NameError | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.error = error


class Unit(msgspec.Struct, frozen=True):
    """One statement of a submission, compiled.

    Attributes:
        file, line: its place in the source.
        names: the names that it defines, which are missing if it fails.
        code: the marshalled code object.
        uses: the global names that it reads, also in functions inside it.
        always: whether it may matter to functions that do not mention its names, as a
            decorator that registers a function may.
        dynamic: whether it may find names that it does not mention, as ``globals()`` does.
    """

    file: str
    line: int
    names: list[str]
    code: bytes
    uses: list[str] = []
    always: bool = False
    dynamic: bool = False


class Module(msgspec.Struct, frozen=True):
    """A module that travels as data: one that was handed in beside the answer, or one of ours.

    Attributes:
        name: its name, such as ``package.part``.
        file: its path from the answer's folder, as ``./package/part.py``; of a folder without
            ``__init__.py``, the folder's; of ours, its path in the judge's process.
        path: its path on this machine, where it has one; what code reads as ``__file__``.
        package: whether it is a package.
        code: the marshalled code object; empty if it does not parse, or has no file.
        line, error: where and why it does not parse.
    """

    name: str
    file: str
    path: str = ""
    package: bool = False
    code: bytes = b""
    line: int = 0
    error: str = ""


def reached(units: Sequence[Unit], names: Collection[str]) -> list[Unit]:
    """Return the units that matter to the values of some names, in their order.

    A file of several exercises imports and computes for all of them; what one does not use
    costs it seconds.  A unit matters if it defines a name that is used, directly or through
    others, or may matter without being mentioned.  If one of these may find any name, all do.
    """
    needed = set(names)
    kept: dict[int, Unit] = {}
    while True:
        more = {
            place: unit
            for place, unit in enumerate(units)
            if place not in kept and (unit.always or not needed.isdisjoint(unit.names))
        }
        if any(unit.dynamic for unit in more.values()):
            return list(units)
        if not more:
            return [unit for place, unit in enumerate(units) if place in kept]
        kept |= more
        needed.update(name for unit in more.values() for name in unit.uses)


class Program(msgspec.Struct, frozen=True):
    """An answer's code: either one live function, pickled by value, or statements.

    The statements of a file come with the modules beside it that they import.  Only a rank unpacks
    it, since unpickling runs code; what comes back from a rank is data.  Where files are parsed in
    a process of their own, that process makes the program, and the judge has only its ``packed``
    bytes.

    Attributes:
        live: the function, pickled.
        units: the statements.
        packed: the whole program as :meth:`to_bytes` returns it.
        label: the name of the file that the statements are from.
        modules: the modules that were handed in beside that file, as far as it imports them.
        hidden: names of those that are never imported, since Python's own have these names.
    """

    live: bytes = b""
    units: list[Unit] = []
    packed: bytes = b""
    label: str = ""
    modules: list[Module] = []
    hidden: list[str] = []

    @staticmethod
    def from_source(source: str, *names: str) -> Program:
        """Return a program of our own, whose source defines some names."""
        code = marshal.dumps(compile(source, "<headcount>", "exec"))
        return Program(units=[Unit("", 1, list(names), code)])

    def to_bytes(self) -> bytes:
        """Return the program as bytes for the wire."""
        return self.packed or msgspec.msgpack.encode(self)

    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """Return the program that :meth:`to_bytes` packed."""
        return msgspec.msgpack.decode(data, type=Program)


#: Names that a stub may use: its exception, and those in a module's ``super().__init__()``.
_NAMES = frozenset({"NotImplementedError", "super", "__init__", "__class__"})

#: Prefixes of the instructions in a stub's body, in all supported versions of Python.  None of
#: them stores, computes, decides or returns anything.
_STEPS = (
    "CACHE", "CALL", "COPY_FREE_VARS", "EXTENDED_ARG", "LOAD_", "MAKE_CELL", "NOP", "NOT_TAKEN",
    "POP_TOP", "PRECALL", "PUSH_NULL", "RAISE_VARARGS", "RESUME",
)  # fmt: skip


#: What is no code in a text that holds C++: comments, includes, and the line of a stub.
# Blanks and no line breaks: with those, many empty lines take quadratic time.
_NO_CPP = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|^[^\S\n]*#[^\S\n]*include[^\n]*"
    r"|^[^\S\n]*raise NotImplementedError[^\S\n]*$",
    re.S | re.M,
)


def is_stub(defined: Any) -> bool:
    """Return whether a function does nothing but raise ``NotImplementedError``.

    A class is a stub if all its methods are, and a text, in which C++ is to be written, if it has
    no code but this line.  Code after the ``raise`` never runs, but the student has written it, so
    that the function is no stub any more.
    """
    if isinstance(defined, str):
        return not _NO_CPP.sub("", defined).strip()
    if isinstance(defined, (staticmethod, classmethod)):
        defined = defined.__func__
    if isinstance(defined, type):
        methods = [
            value
            for value in vars(defined).values()
            if isinstance(value, (types.FunctionType, staticmethod, classmethod, property))
        ]
        return bool(methods) and all(map(is_stub, methods))
    if isinstance(defined, property):
        return defined.fget is not None and is_stub(defined.fget)
    # a decorator that uses functools.wraps keeps the function itself
    code = getattr(getattr(defined, "__wrapped__", defined), "__code__", None)
    if not isinstance(code, types.CodeType):
        return False
    # names that only dead code uses are among these as well
    named = {*code.co_names, *code.co_freevars, *code.co_cellvars}
    if not {"NotImplementedError"} <= named <= _NAMES:
        return False
    flags = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
    collected = sum(bool(code.co_flags & flag) for flag in flags)
    if code.co_nlocals > code.co_argcount + code.co_kwonlyargcount + collected:
        return False
    steps = [instruction.opname for instruction in dis.get_instructions(code)]
    return steps[-1] == "RAISE_VARARGS" and all(step.startswith(_STEPS) for step in steps)


class LoadedProgram:
    """A program loaded in this process.

    Attributes:
        failed: by name, the statement that should define it, and the exception it raised.
    """

    def __init__(
        self, namespace: dict[str, Any], *live: Any, program: Program | None = None
    ) -> None:
        self._namespace = namespace
        self._program = program or Program()
        self._live = live  # one value of any type, or none
        self.failed: dict[str, tuple[Unit, BaseException]] = {}

    def entry(self, name: str) -> Any:
        """Return the value of a name, or the live function.

        Raises:
            NotDefined: no statement defines the name, or that statement failed;
                then its exception is the cause.
        """
        if self._live:
            return self._live[0]
        if name in self._namespace:
            return self._namespace[name]
        if name in self.failed:
            _, error = self.failed[name]
            raise NotDefined(name) from error
        raise NotDefined(name)

    def explained(self, error: BaseException) -> BaseException:
        """Return what an exception of the program's is reported as.

        Where the program reads a name that a failed statement should have defined, the failure
        of that statement is the cause.  Where a module is missing, the text says where it was
        looked for.
        """
        # classes and texts of the program's own may do anything when they are looked at
        read = error.name if type(error) is NameError else None
        if type(read) is str and read not in self._namespace:
            innermost = error.__traceback__
            while innermost is not None and innermost.tb_next is not None:
                innermost = innermost.tb_next
            found = self.failed.get(read) or self.failed.get("*")
            if found and innermost and innermost.tb_frame.f_globals is self._namespace:
                assert isinstance(error, NameError)
                missing = NotDefined(read, error)
                missing.__cause__ = found[1]
                error = missing
        cause = error.__cause__ if isinstance(error, NotDefined) else error
        if type(cause) in (ImportError, ModuleNotFoundError):
            assert isinstance(cause, ImportError)
            if type(cause.msg) is str and type(cause.name) is str:
                cause.msg = self._without_module(cause, cause.msg, cause.name)
        elif type(cause) is AttributeError and type(cause.obj) is types.ModuleType:
            name = vars(cause.obj).get("__name__")
            if cause.args and type(cause.args[0]) is str and type(name) is str:
                cause.args = (f"{cause.args[0]}{self._note_of_hidden(name)}",)
        return error

    def _without_module(self, error: ImportError, text: str, name: str) -> str:
        """Return the text of an exception of an import, with what was looked for where."""
        label = self._program.label
        if type(error) is not ModuleNotFoundError or not label:
            return f"{text}{self._note_of_hidden(name)}"
        path, top = name.replace(".", "/"), name.partition(".")[0]
        if any(module.name == top for module in self._program.modules):
            return f"No module named {name!r}: no {path}.py was handed in beside {label}"
        if top in sys.modules or PathFinder.find_spec(top) is not None:
            return text
        return (
            f"No module named {name!r}: it is not installed here, and no {path}.py was handed in"
            f" beside {label}"
        )

    def _note_of_hidden(self, name: str) -> str:
        if name not in self._program.hidden:
            return ""
        return f"; this is Python's own {name}, which comes before the {name}.py that was handed in"

    def unwritten(self, name: str) -> bool:
        """Return whether the value of a name is still the stub."""
        try:
            return is_stub(self.entry(name))
        except NotDefined:
            return False


def load(program: Program, wanted: Collection[str] = ()) -> LoadedProgram:
    """Run a program's definitions, one by one, and return the loaded program.

    A statement that raises costs only the names that it defines, as a cell of a notebook would;
    its exception is reported when one of these names is called.

    Args:
        program: the program.
        wanted: the names that will be called, so that only what matters to them is run;
            all is run if there are none.
    """
    return loader(program, wanted)()


def loader(
    program: Program,
    wanted: Collection[str] = (),
    own: Callable[[str], bool] = lambda file: False,
) -> Callable[[], LoadedProgram]:
    """Return a function that loads a program anew, each time as a process of its own would.

    Global variables, classes with their attributes, and imported modules whose file is
    ``own`` are made anew.  The code objects are shared: a thousand copies would be fetched from
    memory in turn, and Python would have to specialize each of them.
    """
    units = reached(program.units, wanted) if wanted else program.units
    make = _live_loader(program.live) if program.live else _unit_loader(units, program)
    _HandedIn.offer(program.modules)

    def load_afresh() -> LoadedProgram:
        last = last_module()
        try:
            return make()
        finally:
            forget_modules(last, own)

    return load_afresh


def import_ahead(program: Program, wanted: Collection[str]) -> None:
    """Import the installed modules that loading a program and calling its functions import.

    It runs no line of the program.  Of functions and classes only those that are wanted are
    searched, since others need not be called.  What an import raises, it raises again where the
    program makes it.
    """
    beside = {module.name.partition(".")[0] for module in program.modules}
    units = reached(program.units, wanted) if wanted else program.units
    for unit in units:
        deep = not set(wanted).isdisjoint(unit.names)
        for name, names in _imports(marshal.loads(unit.code), deep):
            if name.partition(".")[0] not in beside:
                with suppress(Exception):
                    __import__(name, fromlist=[one for one in names if one != "*"])


def _imports(code: types.CodeType, deep: bool) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the module of each absolute import in some code, and the names taken from it.

    Args:
        code: the code.
        deep: whether the functions and classes in it are searched, too.
    """
    before: list[Any] = [None, None]
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME" and before[-2] == 0:
            yield instruction.argval, before[-1] or ()
        before = [before[-1], instruction.argval]
    for constant in code.co_consts:
        if deep and isinstance(constant, types.CodeType):
            yield from _imports(constant, deep)


def last_module() -> str:
    """Return the name of the module that was imported last."""
    return next(reversed(sys.modules))


def forget_modules(last: str, own: Callable[[str], bool]) -> None:
    """Let modules whose file is ``own`` and that came after the module ``last`` be imported anew.

    Only the names after it are touched: touching an object changes its reference count, and a
    forked rank would have to copy the pages that hold a thousand names.
    """
    for name in list(takewhile(lambda name: name != last, reversed(sys.modules))):
        if own(getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


class _HandedIn(MetaPathFinder, Loader):
    """Finds the modules that have come as data, and loads them.

    As in plain Python they come before installed packages, and after what is built in or has been
    imported before, such as torch and what it uses.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self._modules = {module.name: module for module in modules}
        self._codes: dict[str, types.CodeType] = {}

    @classmethod
    def offer(cls, modules: Sequence[Module]) -> None:
        """Let this process import these modules, and none that were offered before."""
        others = [finder for finder in sys.meta_path if not isinstance(finder, cls)]
        place = others.index(PathFinder) if PathFinder in others else len(others)
        sys.meta_path[:] = [*others[:place], *([cls(modules)] if modules else []), *others[place:]]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        module = self._modules.get(name)
        if module is None:
            return None
        spec = ModuleSpec(name, self, is_package=module.package)
        if module.code or module.error:
            spec.origin = module.path or module.file
            spec.has_location = True
            spec.cached = None
        return spec

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__spec__.name if module.__spec__ else module.__name__
        found = self._modules[name]
        if found.error:
            raise SyntaxError(found.error, (found.file, found.line, None, None))
        if name not in self._codes:
            self._codes[name] = marshal.loads(found.code) if found.code else compile("", "", "exec")
        exec(self._codes[name], module.__dict__)


def _unit_loader(units: Sequence[Unit], program: Program) -> Callable[[], LoadedProgram]:
    codes = [(unit, marshal.loads(unit.code)) for unit in units]

    def load_units() -> LoadedProgram:
        module = types.ModuleType(MODULE)
        module.__dict__["__builtins__"] = builtins
        sys.modules[MODULE] = module
        loaded = LoadedProgram(module.__dict__, program=program)
        for unit, code in codes:
            try:
                exec(code, module.__dict__)
            except Exception as error:
                for name in unit.names:
                    loaded.failed[name] = (unit, error)
        return loaded

    return load_units


def _live_loader(live: bytes) -> Callable[[], LoadedProgram]:
    from cloudpickle import cloudpickle

    shared: dict[types.CodeType, types.CodeType] = {}

    def function(code: types.CodeType, *rest: Any) -> Any:
        return cloudpickle._make_function(shared.setdefault(code, code), *rest)

    # cloudpickle returns the same class again when the same bytes are loaded twice; without the
    # id that it tracks classes by, the class is made anew
    def plain_class(kind: Any, name: Any, bases: Any, options: Any, _: Any, extra: Any) -> Any:
        return cloudpickle._make_skeleton_class(kind, name, bases, options, None, extra)

    def enum(
        bases: Any, name: Any, qualname: Any, members: Any, module: Any, _: Any, extra: Any
    ) -> Any:
        return cloudpickle._make_skeleton_enum(bases, name, qualname, members, module, None, extra)

    instead = {
        "_make_function": function,
        "_make_skeleton_class": plain_class,
        "_make_skeleton_enum": enum,
    }

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module == cloudpickle.__name__ and name in instead:
                return instead[name]
            return super().find_class(module, name)

    return lambda: LoadedProgram({}, Unpickler(io.BytesIO(live)).load())


# Code of ours that travels to ranks. -------------------------------------


def offer_modules(modules: Sequence[Module]) -> None:
    """Let this process import modules of ours that it sees no file of."""
    _HandedIn.offer(modules)


@functools.lru_cache(maxsize=64)
def packed_by_value(function: Callable[..., Any]) -> bytes:
    """Pickle a function by value, with what it uses of its module, which ranks never import."""
    import cloudpickle  # here, so that a program can be read without it

    module = sys.modules[function.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(function))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
