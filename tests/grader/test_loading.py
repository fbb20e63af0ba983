"""What a program keeps between calls is a rank's own, on simulated ranks as on real ones."""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass, field

import pytest
import torch
import torch.distributed as dist

import grader
from grader.submission.modules import ReceivedFiles
from grader.submission.submission import Submission, live_program
from headcount.core.program import loader
from headcount.core.source_locations import is_students
from headcount.core.verdict import Site
from headcount.rank.calling import raised


@pytest.fixture(autouse=True)
def no_module_stays():
    """Forget the modules beside the answers of a test, as the end of a rank does."""
    before, finders = set(sys.modules), list(sys.meta_path)
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if type(sys.modules[name].__loader__).__name__ == "_HandedIn":
            del sys.modules[name]


class Config:
    rank = None

    class Nested:
        rank = None


class Colour(enum.Enum):
    RED = 1


@dataclass
class Record:
    items: list = field(default_factory=list)
    made = 0


class Layer(torch.nn.Module):
    made = 0

    def __init__(self):
        super().__init__()
        Layer.made += 1


def counter():
    count = 0

    def up():
        nonlocal count
        count += 1
        return count

    return up


count_up = counter()


def remembered(value, memory=[]):  # noqa: B006 - that it is kept is the point
    memory.append(value)
    return memory


def own_attribute():
    own_attribute.calls = getattr(own_attribute, "calls", 0) + 1
    return own_attribute.calls


def keep():
    rank = dist.get_rank()
    Config.rank = Config.Nested.rank = Colour.RED.rank = rank
    Record.made += 1
    Layer()
    mine = [count_up(), list(remembered(rank)), own_attribute()]
    dist.barrier()
    classes = isinstance(Layer(), Layer) and Colour(1) is Colour.RED and Record() == Record([])
    held = [Config.rank, Config.Nested.rank, Colour.RED.rank, Record.made, Layer.made]
    return [*held, *mine, classes]


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
def test_what_a_program_keeps_is_a_ranks_own(start):
    kept = [[rank, rank, rank, 1, 2, 1, [rank], 1, True] for rank in range(4)]
    assert list(start(keep, 4)) == kept


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
def test_a_module_beside_the_program_is_a_ranks_own_too(start, tmp_path, monkeypatch):
    (tmp_path / "kept_beside.py").write_text("class Kept:\n    rank = None\n")
    answer = tmp_path / "answer_beside.py"
    answer.write_text(
        "import torch.distributed as dist\n"
        "import kept_beside\n"
        "def keep():\n"
        "    kept_beside.Kept.rank = dist.get_rank()\n"
        "    dist.barrier()\n"
        "    return kept_beside.Kept.rank\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import answer_beside

    assert list(start(answer_beside.keep, 3)) == [0, 1, 2]


def test_a_files_program_is_loaded_anew_each_time():
    source = (
        "class Kept:\n    rank = None\ndef keep(rank):\n    Kept.rank = rank\n    return Kept\n"
    )
    load = loader(Submission.from_bytes(source.encode(), "answer.py").program)
    first, second = load().entry("keep"), load().entry("keep")
    assert [first(1).rank, second(2).rank, first(1).rank] == [1, 2, 1]
    assert first(1) is not second(2)
    assert first.__code__ is second.__code__


def test_the_code_of_methods_is_shared_and_their_classes_are_not():
    class Local:
        def answer(self):
            return 42

    load = loader(live_program(lambda: Local))
    first, second = load().entry("")(), load().entry("")()
    assert first is not second
    assert first.answer.__code__ is second.answer.__code__
    assert first().answer() == 42


# Modules that were handed in beside the answer. -------------------------------------


def files(answer, **others):
    received = ReceivedFiles({f"{name}.py": text.encode() for name, text in others.items()})
    return Submission.from_bytes(answer.encode(), "hw.py", ["f"], received).program


def failure(program, call=()):
    """How a call of the program's function is reported."""
    loaded = loader(program, own=is_students)()
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - each test says which
        loaded.entry("f")(*call)
    return raised("call", loaded.explained(caught.value))


def test_a_module_beside_is_made_anew_each_time():
    program = files(
        "import kept\ndef f():\n    kept.calls += 1\n    return kept.calls", kept="calls = 0"
    )
    load = loader(program, own=is_students)
    assert [load().entry("f")() for _ in range(3)] == [1, 1, 1]


def test_no_module_of_an_earlier_program_is_left():
    loader(files("import earlier\nf = len", earlier=""), own=is_students)()
    report = failure(files("def f():\n    import earlier"))
    assert report.kind == "ModuleNotFoundError"


def test_a_module_that_was_not_handed_in_is_named_where_its_names_are_missing():
    report = failure(files("\nfrom helpers_mod import put\n\ndef f():\n    put()"))
    assert report.kind == "ModuleNotFoundError"
    assert report.message == (
        "No module named 'helpers_mod': it is not installed here, and no helpers_mod.py was handed"
        " in beside hw.py"
    )
    assert report.frames == [("hw.py", 2, "<module>")]
    assert report.earlier == "so there is no put, which line 5 uses"


@pytest.mark.parametrize("imported", ["from helpers_mod import *", "import helpers_mod as put"])
def test_other_forms_of_an_import_that_fails(imported):
    report = failure(files(f"{imported}\ndef f():\n    put()"))
    assert (report.kind, report.frames[-1][1]) == ("ModuleNotFoundError", 1)


def test_a_submodule_that_was_not_handed_in():
    report = failure(files("import lib.other\ndef f(): return lib", **{"lib/one": ""}))
    assert (
        report.message == "No module named 'lib.other': no lib/other.py was handed in beside hw.py"
    )


def test_any_statement_that_fails_explains_the_names_that_it_should_define():
    report = failure(files("table = {}['key']\ndef f(): return table"))
    assert (report.kind, report.message, report.frames[-1][1]) == ("KeyError", "'key'", 1)
    assert report.earlier == "so there is no table, which line 2 uses"


def test_a_name_that_no_statement_defines_stays_a_name_error():
    report = failure(files("from missing import other\ndef f(): return undefined"))
    assert (report.kind, report.frames[-1][1]) == ("NameError", 2)


def test_a_module_that_fails_or_does_not_parse_is_named_with_its_line():
    program = files("import helpers\ndef f(): helpers.g()", helpers="x = 1\ny = x / 0")
    report = failure(program)
    assert report.kind == "ZeroDivisionError"
    assert [frame[:2] for frame in report.frames] == [("hw.py", 1), ("./helpers.py", 2)]
    report = failure(files("import helpers\ndef f(): helpers.g()", helpers="x = 1\ndef g(:"))
    assert report.kind == "SyntaxError"
    assert report.frames[-1][:2] == ("./helpers.py", 2)
    assert str(Site(*report.frames[-1][:2])) == "helpers.py, line 2"


@pytest.mark.parametrize("use", ["from random import mine", "import random\nmine = random.mine"])
def test_a_module_that_pythons_own_one_hides_is_named(use):
    report = failure(files(f"{use}\ndef f(): return mine", random="mine = 1"))
    assert "this is Python's own random, which comes before the random.py that" in report.message


def test_what_code_catches_itself_is_its_own_affair():
    program = files(
        "try:\n    import helpers\nexcept ImportError:\n    helpers = 3\ndef f(): return helpers"
    )
    assert loader(program)().entry("f")() == 3


def test_an_exception_that_lies_about_itself_is_reported_all_the_same():
    source = (
        "class Name(str):\n    def __hash__(self): raise SystemExit\n"
        "def f(): raise NameError('x', name=Name('put'))\n"
        "def g(): raise ImportError('x', name=Name('put'))\n"
    )
    assert failure(files(source)).kind == "NameError"
