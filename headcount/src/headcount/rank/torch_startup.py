"""What keeps torch's compiler out of the processes that ranks are forked from.

Modules that only the compiler needs, or that take long to import, are imported once or not at
all, and what a program asks torch to compile runs as it is written.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import torch

# torch 2.15 imports it in every backward, and older ones with torch: here it is imported once, by
# the process that ranks are forked from
import torch.nested._internal.nested_tensor

from headcount.core.source_locations import line_here

__all__ = ["LEFT_OUT", "defer_compiler", "run_as_written", "uncompiled", "without_compiler"]


class _Deferred(ModuleType):
    """A module of torch that answers a few questions; for any other it is imported."""

    def __init__(self, name: str, answers: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        self.__path__ = []  # it may be a package: the import system then asks _Submodules
        self.__dict__.update(answers)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system and others look whether it has these
            raise AttributeError(name)
        return getattr(self.imported(), name)

    def imported(self) -> ModuleType:
        """Return the module itself, from now on in the place of this one."""
        for value in list(vars(self).values()):
            if isinstance(value, _Deferred):
                value.taken_back()
        self.taken_back()
        return importlib.import_module(self.__name__)

    def taken_back(self) -> None:
        """Leave the module as it was, not imported yet."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        package, _, name = self.__name__.rpartition(".")
        if vars(sys.modules.get(package, self)).get(name) is self:
            delattr(sys.modules[package], name)


class _Submodules(MetaPathFinder, Loader):
    """Finds submodules of a deferred package, which is imported before them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = sys.modules.get(name.rpartition(".")[0])
        if not isinstance(package, _Deferred):
            return None
        path = package.imported().__path__
        # most are imported by their package, and must not be a second time
        return ModuleSpec(name, self) if name in sys.modules else PathFinder.find_spec(name, path)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = sys.modules[spec.name]
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def _left_alone(function: Any = None, *_: Any, **__: Any) -> Any:
    """Stand for ``torch._dynamo.disable``, with and without arguments."""
    return function if callable(function) else _left_alone


# What the program asks torch to compile runs as it is written. -----------------------
#
# The results are the same.  Compiling a function that communicates would trace the recording group,
# which torch's compiler does not know, and take each rank seconds; a sandbox has no compiler.

#: What is remarked of a program that asks for the compiler.
LEFT_OUT = "torch.compile is left out here: what it is given runs as it is written"

#: The file and line at which the program has first asked for the compiler.
_uncompiled: list[tuple[str, int]] = []


def uncompiled() -> tuple[str, int] | None:
    """Return the file and line at which the program first asks torch to compile, if it does."""
    return _uncompiled[0] if _uncompiled else None


class _AsWritten(torch.nn.Module):
    """Stands for a compiled module: the same attributes, parameters and names of parameters."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self._modules["_orig_mod"] = module

    def forward(self, *arguments: Any, **named: Any) -> Any:
        return self._modules["_orig_mod"](*arguments, **named)  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_modules"]["_orig_mod"]
        return module if name == "_orig_mod" else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # until the module is there, and what torch itself sets for each module
        if "_orig_mod" not in self.__dict__.get("_modules", ()) or hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def train(self, mode: bool = True) -> _AsWritten:
        self._modules["_orig_mod"].train(mode)  # type: ignore[union-attr]
        self.__dict__["training"] = mode
        return self

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])  # type: ignore[arg-type]

    def __reduce__(self) -> Any:
        return type(self), (self._modules["_orig_mod"],)


def _as_written(model: Any = None, **options: Any) -> Any:
    """Stand for ``torch.compile``, with and without arguments."""
    if model is None:
        return partial(_as_written, **options)
    if not _uncompiled:
        file, line, _ = line_here()
        _uncompiled.append((file, line))
    if isinstance(model, torch.nn.Module) and not isinstance(model, _AsWritten):
        return _AsWritten(model)
    return model


def run_as_written() -> None:
    """Let this process run as it is written what a program asks torch to compile."""
    torch.compile = _as_written


#: What torch asks in eager training, of modules that take long to import.  Its optimizers ask the
#: compiler to leave them alone, whenever they are made or make a step: 0.9 s of a processor.
#: ``y.backward(gradient)`` compares two shapes by a function that knows symbols, and so imports
#: SymPy: 0.25 s.  Shapes here are numbers.  A process group that is made clears the compiler's
#: caches, and DDP asks how it would be compiled.
_ANSWERS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "torch._dynamo": {
        "disable": _left_alone,
        "graph_break": lambda: None,
        "optimize": lambda *_, **__: _as_written,
        "reset": lambda: None,
    },
    "torch._dynamo.trace_rules": {"clear_lru_cache": lambda: None},
    "torch._dynamo.utils": {"get_optimize_ddp_mode": lambda: "ddp_optimizer"},
    "torch.fx.experimental.symbolic_shapes": {"expect_true": bool, "sym_eq": operator.eq},
}


def defer_compiler() -> list[_Deferred]:
    """Let torch train in this process without importing its compiler, where it is not yet.

    Every rank would import it.  If anything is asked of it that eager training does not ask, it
    is imported after all.

    Returns:
        what stands for it.
    """
    if not any(isinstance(finder, _Submodules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Submodules())
    deferred = []
    for name, answers in _ANSWERS.items():
        if name not in sys.modules:
            module = sys.modules[name] = _Deferred(name, answers)
            package, _, last = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], last, module)
            deferred.append(module)
    return deferred


@contextlib.contextmanager
def without_compiler() -> Iterator[None]:
    """Defer torch's compiler in this context, see :func:`defer_compiler`."""
    deferred = defer_compiler()
    try:
        yield
    finally:
        for module in deferred:
            module.taken_back()
