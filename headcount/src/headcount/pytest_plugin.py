"""Distributed functions in tests: they pass, or the test says which rank waits for what.

It is a plugin of pytest, too: a test with the mark ``ranks`` runs on so many ranks.  A project's
``conftest.py`` asks for it; an entry point of the package would have pytest rewrite the assertions
of all modules here, of which some travel to ranks.

    pytest_plugins = ["headcount.pytest_plugin"]  # in conftest.py

    @pytest.mark.ranks(4)
    def test_all_ranks_get_the_sum():
        total = torch.ones(1)
        dist.all_reduce(total)
        assert total == 4
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["assert_no_hang", "pytest_configure", "pytest_pyfunc_call"]


def assert_no_hang(
    function: Callable[..., Any],
    *arguments: Any,
    ranks: int = 2,
    seconds: float = 60.0,
    seed: int | None = None,
    semantics: str = "gloo",
    check: str = "",
) -> list[Any]:
    """Run a function on real ranks, and return what each has returned.

    A function that hangs is ended as soon as no rank can go on, and not after a time limit.

    Args:
        function: called as ``function(*arguments)`` on every rank.  The process group is set up,
            and calls that make it or destroy it do nothing.
        arguments: the same for every rank.
        ranks: how many.
        seconds: after which a function that only computes has failed.
        seed: repeats the random numbers of an earlier run; each rank draws its own.
        semantics: ``nccl`` fails a run that ends well if it could hang or fail on NCCL.
        check: ``replicas`` also fails a run in which replicas of a model drift apart.

    Raises:
        AssertionError: a rank raised, hung or broke a rule of communication; the text names ranks
            and lines.
    """
    __tracebackhide__ = True
    from headcount.runs import run

    code = getattr(inspect.unwrap(function), "__code__", None)
    places = (
        os.path.dirname(os.path.abspath(code.co_filename)) if code else os.getcwd(),
        os.getcwd(),
    )

    @functools.wraps(function)
    def on_rank(*arguments: Any) -> Any:
        from headcount.core.source_locations import follow_script
        from headcount.rank.guard import keep_default_group

        follow_script(*places)
        keep_default_group()
        return function(*arguments)

    done = run(
        on_rank,
        ranks,
        *arguments,
        seconds=seconds,
        may_fail=True,
        seed=seed,
        semantics=semantics,
        check=check,
    )
    if done.failure is not None:
        raised, pytest = done.failure.raised, sys.modules.get("pytest")
        if pytest is not None and raised.kind in ("Skipped", "XFailed"):
            (pytest.skip if raised.kind == "Skipped" else pytest.xfail)(raised.message)
        raise AssertionError(f"on {ranks} ranks: {done!r}")
    return list(done)


#: What a mark may say.
_OPTIONS = ("seconds", "seed", "semantics", "check")


def pytest_configure(config: Any) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers",
        "ranks(n, **options): run the test on n ranks of torch.distributed, as assert_no_hang does",
    )


def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Run a test on as many ranks as its mark says."""
    __tracebackhide__ = True
    mark = pyfuncitem.get_closest_marker("ranks")
    # of one that is async pytest says that it needs a plugin
    if mark is None or inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from headcount.core.errors import RequestError

    pytest: Any = sys.modules["pytest"]
    names = inspect.signature(pyfuncitem.obj).parameters
    given = [pyfuncitem.funcargs[name] for name in names]
    options = dict(mark.kwargs)
    ranks = [*mark.args, *(options.pop(one) for one in ("n",) if one in options)]
    if len(ranks) != 1 or options.keys() - _OPTIONS:
        text = f"the mark takes a number of ranks, and {', '.join(_OPTIONS)} by name, as in"
        pytest.fail(f"{text} @pytest.mark.ranks(4, seconds=60); this is {mark}", pytrace=False)
    try:
        assert_no_hang(pyfuncitem.obj, *given, ranks=ranks[0], **options)
    except RequestError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    return True
