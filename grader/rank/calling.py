"""A call of the student's function in a rank, and its outcome as plain data."""

from __future__ import annotations

import difflib
import os
import traceback
import warnings
from collections.abc import Callable
from itertools import groupby
from typing import Any

import torch

from grader.core.errors import out_of_memory
from grader.core.program import NAMESPACE, LoadedProgram, NotDefined
from grader.core.source_locations import is_students, lines_of
from grader.core.values import tensors_in
from grader.core.verdict import BESIDE, Site
from grader.core.wire import Raised
from grader.rank.recorder import ForbiddenCall
from grader.rank.requests import TransportError, WaitExpired

__all__ = ["aliases", "raised", "replaced", "run"]


def run(
    loaded: LoadedProgram,
    entry: str,
    adapter: Callable[..., Any] | None,
    arguments: Any,
    library: str = "",
) -> Any:
    """Call a function of a program or a library, through an adapter if there is one."""
    function = _compiled(library, entry) if library else loaded.entry(entry)
    with warnings.catch_warnings():
        # torch.distributed warns of its own internals once per process, which a student would
        # read once per rank and case
        warnings.filterwarnings("ignore", module=r"torch\..*")
        if adapter is not None:
            return adapter(function, *arguments)
        return function(*arguments)


def _compiled(library: str, entry: str) -> Any:
    """Return a function of a library that the launcher has built from C++."""
    torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    return getattr(getattr(torch.ops, NAMESPACE), entry)


def aliases(value: Any, arguments: Any) -> list[str]:
    """Return the positions of the arguments that share memory with the result."""

    def storages(tree: Any) -> set[int]:
        return {
            t.untyped_storage().data_ptr()
            for t in tensors_in(tree)
            if t.layout is torch.strided and t.device.type in ("cpu", "cuda") and t.nbytes
        }

    theirs = [storages(argument) for argument in arguments]
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


def raised(
    stage: str, error: BaseException, unwritten: bool = False, threads: bool = False
) -> Raised:
    """Return an exception as data, whatever the methods of its class do.

    Args:
        stage: see :class:`~grader.core.wire.Raised`.
        error: the exception.
        unwritten: whether the function that was called is still the stub.
        threads: whether threads of the student's still run.
    """
    cause = error.__cause__ if isinstance(error, NotDefined) and error.__cause__ else error
    used = error.error if isinstance(error, NotDefined) else None
    message = _text_of(cause)
    name = _name_of(cause)
    if function := _wants_gpu(cause):
        name = "RuntimeError"
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
        name,
        message,
        # a function that calls itself on one line would repeat that line many times
        [line for line, _ in groupby([*lines_of(cause.__traceback__), *_unparsed(cause)])][-20:],
        transport=transport,
        expired=expired,
        unwritten=unwritten and isinstance(error, NotImplementedError),
        memory=out_of_memory(error) or out_of_memory(cause),
        forbidden=isinstance(error, ForbiddenCall),
        code=code,
        earlier=_earlier(cause) if used is None else _missing(used),
        threads=threads,
    )


def _unparsed(error: BaseException) -> list[tuple[str, int, str]]:
    """Return the place in a module beside the answer that Python cannot parse, if it is that."""
    if type(error) is not SyntaxError or not str(error.filename).startswith(BESIDE):
        return []
    return [(str(error.filename), error.lineno or 1, "")]


def _missing(error: NameError) -> str:
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
    function = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        inside = frame.f_code.co_filename.startswith(_CUDA)
        if inside and not function:
            function = frame.f_code.co_name
            if function in ("__init__", "__new__", "__enter__"):
                owner = frame.f_locals.get("self", frame.f_locals.get("cls"))
                function = (owner if isinstance(owner, type) else type(owner)).__name__
        elif not inside and is_students(frame.f_code.co_filename):
            function = ""
    if not function or torch.cuda.is_available():
        return ""
    return "a tensor on cuda" if function == "_lazy_init" else f"torch.cuda.{function}"


def _name_of(error: BaseException) -> str:
    return "RuntimeError" if isinstance(error, TransportError) else type(error).__name__


def _earlier(error: BaseException) -> str:
    """Return one line on the exception that led to this one, or an empty string."""
    hidden = error.__suppress_context__
    earlier = error.__cause__ or (None if hidden else error.__context__)
    if earlier is None:
        return ""
    how = "caused by" if error.__cause__ else "raised while handling"
    what = f"{_name_of(earlier)}: {_text_of(earlier)[:200]}".rstrip(": ")
    lines = lines_of(earlier.__traceback__)
    return f"{how} {what}" + (f" (line {lines[-1][1]})" if lines else "")


def _misspelt(error: NotImplementedError) -> str:
    """Return a question on a misspelt ``forward`` of a module, or an empty string."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or traceback.tb_frame.f_code.co_name != "_forward_unimplemented":
        return ""
    own = [str(name) for name in vars(type(traceback.tb_frame.f_locals.get("self")))]
    near = difflib.get_close_matches("forward", own, n=1)
    return f"; should {near[0]} be called forward?" if near else ""


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as broken:
        return f"(its __str__ raised {type(broken).__name__})"
    return text[:2000].encode("utf-8", "replace").decode()
