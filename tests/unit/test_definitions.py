"""What is kept of a student's file."""

from __future__ import annotations

import pytest

from grader.submission.definitions import Chunk, select
from headcount.core.program import NotDefined, load, reached
from support.growth import LIMIT, growth


def names(source, wanted=()):
    return set(select([Chunk("a.py", source)], wanted).names)


def loaded(source, *wanted):
    return load(select([Chunk("a.py", source)], wanted).program)


@pytest.mark.parametrize(
    "source, kept",
    [
        ("import torch", {"torch"}),
        ("import torch.distributed as dist", {"dist"}),
        ("import torch.nn.functional", {"torch"}),
        ("from math import pi, tau as t", {"pi", "t"}),
        ("def f(): ...", {"f"}),
        ("async def f(): ...", {"f"}),
        ("class C:\n    x = 1", {"C"}),
        ("X = 3", {"X"}),
        ("X: int = 3", {"X"}),
        ("X = 1\nX += 2", {"X"}),
        ("a, (b, *c) = 1, (2, 3)", {"a", "b", "c"}),
        ("f = lambda x: print(x)", {"f"}),
        ("D = {'a': 1, **{'b': 2}}", {"D"}),
        ("try:\n    import a\nexcept ImportError:\n    a = None", {"a"}),
        ("if TYPE_CHECKING:\n    import a", {"a"}),
        ("if 1 < 2:\n    A = 1\nelse:\n    B = 2", {"A", "B"}),
        ("T = 1 if True else 2", {"T"}),
    ],
)
def test_definitions_are_kept(source, kept):
    assert names(source) == kept


@pytest.mark.parametrize(
    "source",
    [
        "print(1)",
        "check(f)",
        "r = check(f)",
        "r = grader.check(f)",
        "out = run(f, 4)",
        "if check(f):\n    x = 1",
        "for n in (2, 3):\n    out = run(f, n)",
        "files = get_ipython().getoutput('ls')",
        "if __name__ == '__main__':\n    x = 1",
        "while True:\n    pass",
        "assert False",
        "del x",
        "'a docstring'",
        "from grader import check, run",
        "import grader",
        "x = await f()",
        "torch.manual_seed(1)",
    ],
)
def test_experiments_are_dropped(source):
    assert names(source, {"f"}) == set()


def test_what_calls_is_kept_only_if_a_definition_uses_it():
    source = """
def make(): return 1
def train(): ...
table = make()
losses = train()
def f(x): return table
"""
    assert names(source) == {"make", "train", "f", "table"}


def test_uses_are_followed_through_assignments():
    source = "a = list()\nb = dict(a)\nc = b.copy()\ndef f(): return c"
    assert names(source) == {"a", "b", "c", "f"}
    assert names("a = list()\nb = dict(a)\nc = b.copy()") == set()


def test_a_parameter_is_no_use_of_a_global():
    assert names("x = compute()\ndef f(x): return x") == {"f"}


def test_a_wanted_name_is_kept_however_it_is_made():
    source = "import functools\ndef g(a, b): ...\nf = functools.partial(g, b=1)"
    assert "f" in names(source, {"f"})
    assert "f" not in names(source)


def test_a_table_may_be_filled_by_statements():
    source = "T = []\nT.append(1)\nfor i in range(3):\n    T.append(i)\ndef f(): return T"
    assert loaded(source).entry("f")() == [1, 0, 1, 2]


def test_calls_on_imported_modules_are_no_tables():
    assert loaded("import sys\nsys.exit(3)\ndef f(): return sys.path").entry("f")


def test_calls_on_imported_modules_in_a_block_are_no_definitions_of_them():
    """Or a loop that measures something would be run for every answer that uses torch."""
    source = "import math\nfor n in range(9):\n    math.{}\ndef f(): return math.pi"
    assert run_for("f", source.format("floor(n)")) == {"f", "math"}
    assert run_for("f", source.format("tau = n")) == {"f", "math", "n"}


def test_what_a_block_makes_may_be_filled_later():
    source = "if True:\n    T = []\nT.append(1)\nfor i in [2]:\n    T.append(i)\nT.append(3)\n"
    assert loaded(source + "def f(): return T").entry("f")() == [1, 2, 3]


def test_decorators_may_register():
    source = "R = {}\ndef reg(f):\n    R[f.__name__] = f\n    return f\n@reg\ndef g(): return 7\n"
    source += "def f(): return R['g']()"
    assert loaded(source).entry("f")() == 7


def test_a_students_own_function_named_run_is_his():
    assert names("def run(): return 3\nx = run()\ndef f(): return x") == {"run", "x", "f"}


def test_a_later_definition_wins():
    chunks = [Chunk("cell 1", "def f(): return 1"), Chunk("cell 2", "def f(): return 2")]
    assert load(select(chunks).program).entry("f")() == 2


def test_future_imports_hold_in_later_cells():
    chunks = [
        Chunk("cell 1", "from __future__ import annotations"),
        Chunk("cell 2", "def f(x: Unknown) -> 3: return 5"),
    ]
    assert load(select(chunks).program).entry("f")(0) == 5


def test_a_piece_that_does_not_parse_costs_only_its_names():
    chunks = [
        Chunk("cell 1", "def f(): return 1"),
        Chunk("cell 2", "def g(:\n    pass\nh = ("),
        Chunk("cell 3", "def k(): return 3"),
    ]
    found = select(chunks)
    assert found.names == {"f", "k"}
    assert set(found.broken) == {"g", "h"}
    assert (found.broken["g"].label, found.broken["g"].line) == ("cell 2", 1)


def test_a_later_definition_that_parses_mends_it():
    chunks = [Chunk("cell 1", "def f(:"), Chunk("cell 2", "def f(): return 1")]
    assert select(chunks).broken == {}


def test_a_statement_outside_of_its_place_breaks_its_piece():
    assert "f" in select([Chunk("cell 1", "def f(): pass\nX = [(yield)]")]).broken


@pytest.mark.parametrize("source", ["(" * 10_000, "x = " + "-" * 100_000 + "1", "a\0b"])
def test_source_that_breaks_parsers(source):
    assert len(select([Chunk("a.py", source)]).unparsed) == 1


def test_line_numbers_stay_those_of_the_file():
    program = loaded("\n\n\ndef f():\n    1 / 0")
    with pytest.raises(ZeroDivisionError) as error:
        program.entry("f")()
    assert error.traceback[-1].lineno + 1 == 5


def test_a_statement_that_fails_costs_only_its_names():
    program = loaded("a = 1 / 0\nb = 2\ndef f(): return b\ndef g(): return a")
    assert program.entry("f")() == 2
    with pytest.raises(NameError):
        program.entry("g")()
    with pytest.raises(NotDefined) as error:
        program.entry("a")
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_dataclasses_find_their_module():
    source = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    source += "@dataclass\nclass C:\n    x: int = 1\ndef f(): return C().x"
    assert loaded(source).entry("f")() == 1


def run_for(name, source):
    """The names of the units that are run where an exercise is called."""
    units = reached(select([Chunk("a.py", source)], {name}).program.units, {name})
    return {name for unit in units for name in unit.names}


_COURSE = """
import math
import torch
import matplotlib.pyplot as plt
SIZES = [1, 2]
def helper(x): return math.floor(x)
def plot(): plt.show()
"""


@pytest.mark.parametrize(
    "answer, run",
    [
        ("def f(): return 1", {"f"}),
        ("def f(): return helper(1.5)", {"f", "helper", "math"}),
        ("def f(x: torch.Tensor): return x", {"f", "torch"}),
        ("def f():\n    def g(): return SIZES\n    return g()", {"f", "SIZES"}),
        ("f = lambda: plot()", {"f", "plot", "plt"}),
        ("helper2 = helper\ndef f(): return helper2(1)", {"f", "helper2", "helper", "math"}),
        ("def f(): return 1\nSIZES.append(3)", {"f"}),
        ("def f(): return SIZES\nSIZES.append(3)", {"f", "SIZES"}),
    ],
)
def test_only_what_an_exercise_uses_is_run_for_it(answer, run):
    assert run_for("f", _COURSE + answer) == run


@pytest.mark.parametrize(
    "other",
    [
        "@SIZES.append\ndef g(): ...",  # a decorator may register
        "class G(Base): ...",  # and so may the class of a class
        "def g(x=SIZES.append(1)): ...",
        "from os.path import *",
        "import my_own_module",
        "from . import my_own_module",
    ],
)
def test_what_may_matter_without_being_mentioned_is_always_run(other):
    names = set(select([Chunk("a.py", other)]).names)
    assert names <= run_for("f", f"{_COURSE}{other}\ndef f(): return 1")


@pytest.mark.parametrize(
    "body",
    [
        "globals()['plot']()",
        "eval('plot()')",
        "getattr(f, '__globals__')",
        "f.__globals__['plot']()",
        "(lambda: exec('plot()'))()",
        "import sys; sys.modules[__name__].plot()",
        "import __main__",
    ],
)
def test_everything_is_run_where_names_are_looked_up_as_text(body):
    assert {"plot", "plt", "torch", "SIZES"} <= run_for("f", f"{_COURSE}def f(): {body}")


def test_a_name_that_is_not_reached_cannot_fail_the_answer():
    program = select([Chunk("a.py", "import no_such\ndef g(): no_such.x\ndef f(): return 1")])
    loaded = load(program.program, {"f"})
    assert loaded.entry("f")() == 1
    with pytest.raises(NotDefined):
        loaded.entry("g")


def test_answers_in_prose_are_looked_for_in_time_that_is_proportional_to_it():
    def work(n):
        text = "def other(x):\n    return x\n" * n + "def broadcast(x):\n" * n
        chunks = [Chunk("a markdown cell", text, "make that a code cell")]
        return lambda: select(chunks, {"broadcast"})

    assert growth(work, 1000) < LIMIT
