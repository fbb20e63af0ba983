"""Packing of a live function, with all that it uses, for the processes that run it."""

from __future__ import annotations

import dis
import functools
import importlib
import io
import itertools
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from headcount.core.errors import RequestError
from headcount.core.program import Program
from headcount.core.set_orders import rewritten_code
from headcount.core.source_locations import is_students
from headcount.core.verdict import Site

__all__ = ["about_hash_seeds", "compiled_anew", "live_program"]


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A cloudpickle that also takes modules of a class of their own, such as ``torch.ops``."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.CodeType) and is_students(value.co_filename):
            return self.dispatch_table[types.CodeType](rewritten_code(value))
        special = isinstance(value, types.ModuleType) and type(value) is not types.ModuleType
        if special and value.__name__ in sys.modules:
            return importlib.import_module, (value.__name__,)
        original = _uncompiled(value)
        if original is not None:
            # the compiler's own wrapper cannot travel, and the rank may compile again
            return compiled_anew, (original,)
        return super().reducer_override(value)

    def _dynamic_function_reduce(self, function: types.FunctionType) -> Any:
        """Return a function's parts, without the submodules that its code does not refer to.

        cloudpickle lets a process import every submodule whose name is an attribute in the code.
        For ``torch.tensor`` in a function that also uses ``torch.distributed``, this would be
        ``torch.distributed.tensor``, and take a third of a second in every rank.
        """
        parts = super()._dynamic_function_reduce(function)
        slots = parts[2][1]
        found = slots["_cloudpickle_submodules"]
        slots["_cloudpickle_submodules"] = [m for m in found if _may_mean(function, m)]
        return parts


def _uncompiled(value: Any) -> Any:
    """Return what ``torch.compile`` was given, if a value is its result; else None."""
    if isinstance(value, types.FunctionType):
        return vars(value).get("_torchdynamo_orig_callable")
    if type(value).__name__ == "OptimizedModule" and "torch._dynamo" in type(value).__module__:
        return value._orig_mod
    return None


def compiled_anew(function: Any) -> Any:
    """Return what ``torch.compile`` makes of a function or a module in this process."""
    import torch  # here, so that a file can be read without it

    return torch.compile(function)


def _may_mean(function: types.FunctionType, submodule: types.ModuleType) -> bool:
    """Return whether code may read a submodule as an attribute, as in ``torch.distributed``.

    It cannot if each attribute of this name is read of a global variable, and is something else.
    """
    name = submodule.__name__.rpartition(".")[2]
    for owner, read in itertools.pairwise(dis.get_instructions(function.__code__)):
        if read.argval == name and read.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            known = owner.opname == "LOAD_GLOBAL" and not read.is_jump_target
            value = function.__globals__.get(owner.argval) if known else None
            if getattr(value, name, submodule) is submodule:
                return True
    return False


def live_program(function: Callable[..., Any] | str, *arguments: Any) -> Program:
    """Return a function as it is now, bound to arguments, with all that it uses; or a text.

    Args:
        function: the function, or the text.
        arguments: bound to it, before those of the call.

    Raises:
        RequestError: it cannot travel to another process.
    """
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    by_value = [module] if module is not None and _is_students(module) else []
    live: Any = function
    bound = functools.partial(live, *arguments) if arguments else live
    try:
        for one in by_value:
            cloudpickle.register_pickle_by_value(one)
        buffer = io.BytesIO()
        _Pickler(buffer).dump(bound)
        return Program(live=buffer.getvalue())
    except Exception as error:
        name = getattr(function, "__name__", "the function")
        raise RequestError(
            f"{name} cannot be sent to other processes: {error}; what it uses from outside must"
            " be plain data, functions or modules"
        ) from None
    finally:
        for one in by_value:
            cloudpickle.unregister_pickle_by_value(one)


def _is_students(module: types.ModuleType) -> bool:
    """Return whether a module is the student's own, so that its code must travel along."""
    file = getattr(module, "__file__", None)
    # cloudpickle takes __main__ by value as it is
    return module.__name__ != "__main__" and bool(file) and is_students(str(file))


def about_hash_seeds(sets_taken: Sequence[Site]) -> str:
    """Return why a program is right only where its ranks share a hash seed, and the mend.

    Args:
        sets_taken: where it depends on hashes; a line that takes a set is named if it is the only
            one.
    """
    line = sets_taken[0].line if len(sets_taken) == 1 else 0
    where = f" Line {line} takes the values of a set in the set's order." if line else ""
    return (
        "This is right where all ranks have the same hash seed and the same addresses, and wrong"
        " where each has its own, as under torchrun: the order of a set differs from process to"
        f" process.{where} Take the values in an order that all ranks share, such as sorted(…)."
    )
