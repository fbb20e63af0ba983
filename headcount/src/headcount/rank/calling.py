"""A call of the student's function in a rank, and its outcome as plain data."""

from __future__ import annotations

import contextlib
import difflib
import dis
import functools
import inspect
import os
import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from types import FrameType, ModuleType, TracebackType
from typing import Any, TextIO

import torch
import torch.distributed as dist

from headcount.core.codec import pack_known
from headcount.core.errors import out_of_memory
from headcount.core.program import LoadedProgram, NotDefined
from headcount.core.source_locations import (
    NAME,
    TEXT,
    is_students,
    line_here,
    lines_of,
    shorten_name,
)
from headcount.core.values import DEEP, tensors_in
from headcount.core.verdict import BESIDE, HEADCOUNT, Site
from headcount.core.wire import Raised
from headcount.rank.arguments import REFUSALS
from headcount.rank.recorder import ForbiddenCall
from headcount.rank.recording_group import OVERLOAD
from headcount.rank.requests import TransportError, WaitExpired

__all__ = ["BoundArguments", "aliases", "plain", "raised", "replaced", "run", "warnings_to"]


def run(
    loaded: LoadedProgram,
    entry: str,
    adapter: Callable[..., Any] | None,
    arguments: Any,
) -> Any:
    """Call a function of a program, through an adapter if there is one.

    An adapter gets lists, tuples and dicts themselves where the function returns subclasses, whose
    methods could tell it anything.
    """
    function = loaded.entry(entry)
    if adapter is None:
        return function(*arguments)
    if not isinstance(function, types.FunctionType):
        return adapter(function, *arguments)

    return adapter(_returning_plain(function, plain), *arguments)


def _returning_plain(
    function: types.FunctionType, plain: Callable[[Any], Any]
) -> Callable[..., Any]:
    def call(*positional: Any, **named: Any) -> Any:
        return plain(function(*positional, **named))

    # an adapter may replace what the function finds in its globals
    space, closure = function.__globals__, call.__closure__
    return functools.update_wrapper(
        types.FunctionType(call.__code__, space, closure=closure), function
    )


def plain(value: Any, deep: int = DEEP) -> Any:
    """Return a value with exact lists, tuples and dicts in the place of subclasses of these.

    What holds no subclass is returned as it is, and not copied.
    """
    # a class may say of its instances that they are of another
    kind = next((one for one in (list, tuple, dict) if issubclass(type(value), one)), None)
    if kind is None or deep == 0:
        return value
    if kind is dict:
        pairs = {key: plain(item, deep - 1) for key, item in dict.items(value)}
        same = all(pairs[key] is item for key, item in dict.items(value))
        return value if same and type(value) is dict else pairs
    items = [plain(item, deep - 1) for item in kind.__iter__(value)]
    same = all(one is item for one, item in zip(items, kind.__iter__(value), strict=True))
    return value if same and type(value) is kind else kind(items)


#: What torch adds to a warning of its C++ code: a line of its own sources.
_TRIGGERED = re.compile(r" \(Triggered internally at .*?\)$")


#: Categories of warnings that a library gives of its own names.
_DEPRECATIONS = (FutureWarning, DeprecationWarning, PendingDeprecationWarning)


def _by_student() -> bool:
    """Return whether the student's own code gives the warning that is being shown."""
    frame: FrameType | None = sys._getframe(2)  # of what has called the hook
    while frame is not None and frame.f_code.co_filename == warnings.__file__:
        frame = frame.f_back
    return frame is not None and is_students(frame.f_code.co_filename)


@contextlib.contextmanager
def warnings_to(remark: Callable[[str, str, int], None]) -> Iterator[None]:
    """Report the warnings of this context, Python's and torch's, with the student's line.

    A rank would print them on its own, and all ranks the same.  Those for which no line of the
    student's is to blame are of no use to anybody.

    Args:
        remark: takes a text, and the file and line that it is about.
    """

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        where, number, _ = line_here()
        # torch renames its functions from version to version, which is no matter of the program's
        if where and (_by_student() or not issubclass(category, _DEPRECATIONS)):
            text = _TRIGGERED.sub("", str(message)).replace(f".{OVERLOAD}: ", ": ")
            remark(f"{category.__name__}: {text}", where, number)

    with warnings.catch_warnings():
        # the recorder keeps count; once per place would be once for all ranks that are simulated
        for category in (UserWarning, RuntimeWarning, FutureWarning):
            warnings.filterwarnings("always", category=category)
        warnings.showwarning = show
        yield


def aliases(value: Any, arguments: Any) -> list[str]:
    """Return the positions of the arguments that share memory with the result.

    Where there is none, they are those that share memory with each other.
    """

    def storages(tree: Any) -> set[int]:
        return {
            t.untyped_storage().data_ptr()
            for t in tensors_in(tree)
            if t.layout is torch.strided and t.device.type in ("cpu", "cuda") and t.nbytes
        }

    theirs = [storages(argument) for argument in arguments]
    if value is None:
        return [
            str(i)
            for i, storage in enumerate(theirs)
            if any(storage & other for j, other in enumerate(theirs) if j != i)
        ]
    # a result may be a list of a million numbers: it is walked only if there is memory to share
    mine = storages(value) if any(theirs) else set()
    return [str(i) for i, storage in enumerate(theirs) if mine & storage]


def replaced(before: Any, after: Any) -> list[str]:
    """Return the positions of the arguments that hold other tensors than before.

    Args:
        before: the tensors that each argument held before the call.
        after: the arguments after the call.
    """
    return [
        str(i)
        for i, (old, argument) in enumerate(zip(before, after, strict=True))
        if len(old) != len(new := tensors_in(argument))
        or any(one is not other for one, other in zip(old, new, strict=True))
    ]


# What a call has made of the arguments that came with its function. ---------------
#
# `run(broadcast, 4, x, 0)` sends its arguments together with the function, as functools.partial
# binds them.  A function that works in place has its result in them, so they are compared before
# and after the call, and what is plain data travels back where it has changed.

#: Bytes of tensors, and other parts, of an argument that is followed; the report shows the first
#: change of each argument, and a larger one is not worth a copy.
_BYTES, _PARTS = 16 << 20, 1000


#: Types of plain data besides tensors.
_PLAIN = (
    *(bool, int, float, str, types.NoneType, set),
    *(torch.dtype, torch.device, dist.ReduceOp, dist.ReduceOp.RedOpType),
)


class BoundArguments:
    """The arguments that a function is bound to, as they are before the call.

    Attributes:
        unseen: names of those whose changes cannot be told: objects of classes that are no plain
            data, and what is very large.
    """

    def __init__(self, function: Any, home: torch.device) -> None:
        self._arguments = {shorten_name(name): value for name, value in _named(function).items()}
        self._home = home
        self._before = {name: self._packed(value) for name, value in self._arguments.items()}
        self.unseen = [name for name, packed in self._before.items() if packed is None]

    def changes(self) -> list[tuple[str, bytes, bytes]]:
        """Return the arguments that have changed: their names, and both values, packed."""
        found = []
        for name, before in self._before.items():
            after = None if before is None else self._packed(self._arguments[name])
            if before is None or before == after:
                continue
            if after is None:  # it has grown, or holds something new that is no plain data
                self.unseen.append(name)
            else:
                found.append((name, before, after))
        return found

    def _packed(self, value: Any) -> bytes | None:
        try:
            return pack_known(_Reader().plain(value), _BYTES, self._home)
        except _UnseenError:
            return None


class _UnseenError(Exception):
    """An argument holds something whose changes cannot be told."""


class _Reader:
    """Reads one argument."""

    def __init__(self) -> None:
        self._parts = 0

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return a value with names in the place of functions, and the tensors of modules.

        Raises:
            _UnseenError: it is no plain data, or too large.
        """
        self._parts += 1
        if depth > DEEP or self._parts > _PARTS:
            raise _UnseenError
        if isinstance(value, torch.nn.Module):
            # not state_dict: a class may define its own, which communicates
            tensors = (
                *torch.nn.Module.named_parameters(value),
                *torch.nn.Module.named_buffers(value),
            )
            return self.plain(
                {name: t for name, t in tensors if not torch.nn.parameter.is_lazy(t)}, depth
            )
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
            return value.__qualname__
        if type(value) in (list, tuple):
            return type(value)(self.plain(item, depth + 1) for item in value)
        if isinstance(value, Mapping):
            return {key: self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, torch.nn.Parameter):
            return value.detach()
        # anything else may do as it likes when it is read, a subclass of a tensor as well
        if type(value) is not torch.Tensor and not isinstance(value, _PLAIN):
            raise _UnseenError
        return value


def _named(function: Any) -> dict[str, Any]:
    """Return the arguments that a partial function is bound to, by the names of its parameters."""
    if not isinstance(function, functools.partial):
        return {}
    try:
        signature = inspect.signature(function.func)
        return dict(signature.bind_partial(*function.args, **function.keywords).arguments)
    except (TypeError, ValueError):
        # it does not tell its parameters, as one that is written in C, or has others
        numbered = {f"argument {i}": one for i, one in enumerate(function.args, 1)}
        return numbered | function.keywords


# Exceptions. -------------------------------------------------------------------------


def raised(
    stage: str, error: BaseException, unwritten: bool = False, threads: bool = False
) -> Raised:
    """Return an exception as data, whatever the methods of its class do.

    Args:
        stage: see :class:`~headcount.core.wire.Raised`.
        error: the exception.
        unwritten: whether the function that was called is still the stub.
        threads: whether threads of the student's still run.
    """
    cause = error.__cause__ if isinstance(error, NotDefined) and error.__cause__ else error
    used = error.error if isinstance(error, NotDefined) else None
    message, elsewhere = _without_traceback(_text_of(cause))
    here, kind = lines_of(cause.__traceback__), _name_of(cause)
    name, owner = _lacking(cause)
    if function := _wants_gpu(cause):
        kind, name, owner = "RuntimeError", "", ""
        message = (
            f"there is no GPU here, and {function} needs one; leave the device out, and tensors are"
            " on the CPU"
        )
    if isinstance(cause, NotImplementedError):
        message += _misspelt(cause)
    code = None
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    chain: BaseException | None = error
    transport = expired = False
    while chain is not None and not transport:
        transport, expired = isinstance(chain, TransportError), isinstance(chain, WaitExpired)
        chain = chain.__cause__ or chain.__context__
    return Raised(
        stage,
        kind,
        message if len(message) <= TEXT else f"{message[: TEXT // 2]} … {message[3 - TEXT // 2 :]}",
        # a function that calls itself on one line would repeat that line many times
        [line for line, _ in groupby([*here, *elsewhere, *_unparsed(cause)])][-20:],
        transport=transport,
        expired=expired,
        unwritten=unwritten and isinstance(error, NotImplementedError),
        memory=out_of_memory(error) or out_of_memory(cause),
        forbidden=isinstance(error, ForbiddenCall),
        code=code,
        earlier=_cause_line(cause) if used is None else _undefined_name(used),
        threads=threads,
        name=name,
        owner=owner,
    )


#: Python names a function whose arguments do not fit in its message, and nowhere else.
_CALLED = re.compile(r"(?:[\w.<>]+\.)?(\w+)\(\) (?:takes|got|missing) ")

#: So does it with a variable that has no value yet; one instruction may read two of them.
_UNSET = re.compile(r"\blocal variable '(\w+)' ")

#: And with the type of what cannot be assigned into.
_UNCHANGEABLE = re.compile(r"'(tuple)' object does not support item assignment$")


def _lacking(error: BaseException) -> tuple[str, str]:
    """Return what Python could not use, and its owner, as of a ``RaisedException``."""
    name: object = ""
    owner: object = ""
    innermost = _innermost(error)
    # a class of the program's own may do anything when it is looked at
    if any(type(error) is one for one in REFUSALS):
        owner = HEADCOUNT
    elif innermost is not None and _is_raised_by_program(innermost):
        pass  # what it says of itself proves nothing
    elif type(error) is NameError:
        name = error.name if type(error.name) is str else ""
        if innermost is not None and name in innermost.tb_frame.f_code.co_freevars:
            name = ""  # a function around this one defines it, but has not given it a value yet
    elif type(error) is UnboundLocalError and (unset := _UNSET.search(_text_of(error)[:TEXT])):
        name = unset[1]
    elif type(error) is AttributeError:
        name = error.name
        kind = type(error.obj)
        if kind is ModuleType:
            owner = vars(error.obj).get("__name__")
        else:  # with its module, since a class of the program's own may have any name
            owner = f"{type.__dict__['__module__'].__get__(kind)}.{_class_name(kind)}"
    elif type(error) is TypeError and (called := _CALLED.match(_text_of(error)[:TEXT])):
        name = called[1]
    elif type(error) is TypeError and (kept := _UNCHANGEABLE.match(_text_of(error)[:TEXT])):
        owner = f"builtins.{kept[1]}"
    words = [shorten_name(one) if type(one) is str else "" for one in (name, owner)]
    return words[0], words[1]


def _innermost(error: BaseException) -> TracebackType | None:
    """Return the entry of a traceback that is nearest to where the exception was raised."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry


def _is_raised_by_program(entry: TracebackType) -> bool:
    """Return whether a program's own ``raise`` has raised an exception, and not what it did."""
    code = entry.tb_frame.f_code
    raises = code.co_code[entry.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raises and is_students(code.co_filename)


def _unparsed(error: BaseException) -> list[tuple[str, int, str]]:
    """Return the place in a module beside the answer that Python cannot parse, if it is that."""
    if type(error) is not SyntaxError or not str(error.filename).startswith(BESIDE):
        return []
    return [(str(error.filename), error.lineno or 1, "")]


def _undefined_name(error: NameError) -> str:
    """Return where a name was read that a failed statement should have defined."""
    lines = lines_of(error.__traceback__)
    where = f", which {Site(*lines[-1][:2])} uses" if lines else ""
    return f"so there is no {error.name}{where}"


#: The folder of torch's functions for CUDA.
_CUDA = os.path.dirname(torch.cuda.__file__) + os.sep


def _wants_gpu(error: BaseException) -> str:
    """Return the function of torch's for GPUs that has raised an exception, if there is none.

    What torch says depends on how it was built; an attribute that its C part lacks, for example.
    """
    function = module = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        inside = frame.f_code.co_filename.startswith(_CUDA)
        if inside and not function:
            function, module = frame.f_code.co_name, frame.f_globals["__name__"]
            if function in ("__init__", "__new__", "__enter__"):
                owner = frame.f_locals.get("self", frame.f_locals.get("cls"))
                function = (owner if isinstance(owner, type) else type(owner)).__name__
        elif not inside and is_students(frame.f_code.co_filename):
            function = ""
    if not function or torch.cuda.is_available():
        return ""
    if function == "_lazy_init":
        return "a tensor on cuda"
    # most are known by torch.cuda, and not by the module that defines them
    return f"torch.cuda.{function}" if hasattr(torch.cuda, function) else f"{module}.{function}"


def _name_of(error: BaseException) -> str:
    return shorten_name(_class_name(type(error)))


def _class_name(kind: type) -> str:
    """Return the name of a class as Python keeps it, whatever its metaclass says of it."""
    found: str = type.__dict__["__name__"].__get__(kind)
    return found


def _cause_line(error: BaseException) -> str:
    """Return one line on the exception that led to this one, or an empty string."""
    hidden = error.__suppress_context__
    earlier = error.__cause__ or (None if hidden else error.__context__)
    if earlier is None:
        return ""
    how = "caused by" if error.__cause__ else "raised while handling"
    what = f"{_name_of(earlier)}: {_without_traceback(_text_of(earlier))[0][:200]}".rstrip(": ")
    lines = lines_of(earlier.__traceback__)
    return f"{how} {what}"[: NAME - 20] + (f" (line {lines[-1][1]})" if lines else "")


def _misspelt(error: NotImplementedError) -> str:
    """Return a question on a misspelt ``forward`` of a module, or an empty string."""
    innermost = _innermost(error)
    if innermost is None or innermost.tb_frame.f_code.co_name != "_forward_unimplemented":
        return ""
    own = [str(name) for name in vars(type(innermost.tb_frame.f_locals.get("self")))]
    near = difflib.get_close_matches("forward", own, n=1)
    return f"; should {near[0]} be called forward?" if near else ""


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as broken:
        return f"(its __str__ raised {type(broken).__name__})"
    return text.encode("utf-8", "replace").decode()


#: A line of a traceback that names a place, and the line before its first.
_FRAME = re.compile(r'^\s*File "(.+)", line (\d{1,9}), in (.+)$')
_TRACEBACK = "Traceback (most recent call last):"


def _without_traceback(text: str) -> tuple[str, list[tuple[str, int, str]]]:
    """Return a message without the traceback of another process, and its frames of the student's.

    Workers of a ``DataLoader`` and children of ``mp.spawn`` write theirs into the message.
    """
    first, found, rest = text.partition(_TRACEBACK)
    if not found:
        return text, []
    lines = rest.splitlines()
    end = max((i + 1 for i, line in enumerate(lines) if line.startswith(" ")), default=0)
    frames = [match.groups() for line in lines[:end] if (match := _FRAME.match(line))]
    said = " ".join(line for line in (*first.splitlines()[:1], *lines[end:]) if line.strip())
    return said, [
        (shorten_name(file), int(line), shorten_name(name))
        for file, line, name in frames
        if is_students(file)
    ]
