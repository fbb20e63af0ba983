"""Packing of a live function, with all that it uses, for the processes that run it."""

from __future__ import annotations

import dis
import functools
import importlib
import io
import itertools
import pickletools
import sys
import types
from collections.abc import Callable
from typing import Any

import cloudpickle

from headcount.core.errors import RequestError
from headcount.core.program import Program
from headcount.core.source_locations import is_students

__all__ = ["about_hash_seeds", "compiled_anew", "live_program"]

#: Instructions of a pickle that make a set.
_PICKLED_SETS = frozenset({"EMPTY_SET", "FROZENSET"})


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A cloudpickle that also takes modules of a class of their own, such as ``torch.ops``."""

    def reducer_override(self, value: Any) -> Any:
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


def live_program(
    function: Callable[..., Any] | str, *arguments: Any, hashes: bool = False
) -> Program:
    """Return a function as it is now, bound to arguments, with all that it uses; or a text.

    Args:
        function: the function, or the text.
        arguments: bound to it, before those of the call.
        hashes: whether its source shows that it may depend on hashes; what it uses is looked
            through for sets in any case.

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
        live_bytes = buffer.getvalue()
        hashes = hashes or _uses_hashes(function) or _holds_sets(live_bytes)
        return Program(live=live_bytes, hashes=hashes)
    except Exception as error:
        name = getattr(function, "__name__", "the function")
        raise RequestError(
            f"{name} cannot be sent to other processes: {error}; what it uses from outside must"
            " be plain data, functions or modules"
        ) from None
    finally:
        for one in by_value:
            cloudpickle.unregister_pickle_by_value(one)


#: Functions whose results depend on the hash seed or on addresses, and instructions that make sets.
_HASHING = frozenset({"set", "frozenset", "hash", "id"})
_MAKING_SETS = frozenset({"BUILD_SET", "SET_ADD", "SET_UPDATE"})


def _uses_hashes(function: Any) -> bool:
    """Return whether a function, or one of the program's that it calls, may depend on hashes.

    Every Python process has a hash seed and addresses of its own, unless told otherwise.  So the
    order of a set of texts differs from process to process, and with it the order of collectives
    in a loop over such a set.
    """
    coming = [function] if isinstance(function, types.FunctionType) else []
    seen = set(coming)
    while coming:
        one = coming.pop()
        codes = [one.__code__]
        for code in codes:
            if not _HASHING.isdisjoint(code.co_names):
                return True
            if any(step.opname in _MAKING_SETS for step in dis.get_instructions(code)):
                return True
            codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
            for name in code.co_names:
                used = one.__globals__.get(name)
                if isinstance(used, types.FunctionType) and used not in seen:
                    seen.add(used)
                    coming += [used] if is_students(used.__code__.co_filename) else []
    return False


def _holds_sets(pickled: bytes) -> bool:
    """Return whether what travels along with a function holds a set, whose order hashes decide."""
    return any(step.name in _PICKLED_SETS for step, _, _ in pickletools.genops(pickled))


def _is_students(module: types.ModuleType) -> bool:
    """Return whether a module is the student's own, so that its code must travel along."""
    file = getattr(module, "__file__", None)
    # cloudpickle takes __main__ by value as it is
    return module.__name__ != "__main__" and bool(file) and is_students(str(file))


def about_hash_seeds(line: int | None = None) -> str:
    """Return why a program is right only where its ranks share a hash seed, and the mend.

    Args:
        line: the line that takes the values of a set, if it is the only one.
    """
    where = f" Line {line} takes the values of a set in the set's order." if line else ""
    return (
        "This is right where all ranks have the same hash seed, and wrong where each has its own,"
        f" as under torchrun: the order of a set differs from process to process.{where} Take"
        " the values in an order that all ranks share, such as sorted(…)."
    )
