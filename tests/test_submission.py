"""Files as submissions."""

from __future__ import annotations

import json
import os
import sys
import types

import pytest

from grader.core.errors import RequestError, UnreadableFile
from grader.core.program import load
from grader.core.verdict import Site
from grader.submission.submission import Submission, live_program


def notebook(*cells, **more):
    made = [
        {"cell_type": "code", "source": cell, "metadata": {}, "outputs": []}
        if isinstance(cell, (str, list))
        else cell
        for cell in cells
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made, **more})


def read(text, name="a.ipynb", wanted=("f",)):
    return Submission.from_bytes(text.encode(), name, wanted)


def value(submission, name="f"):
    return load(submission.program).entry(name)()


def test_a_python_file():
    assert value(read("def f(): return 1", "a.py")) == 1


def test_a_notebook():
    markdown = {"cell_type": "markdown", "source": "def f(:", "metadata": {}}
    text = notebook("import math", markdown, ["def f():\n", "    return math.floor(1.5)"])
    assert value(read(text)) == 1


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\ndef f(): return 1",
        "x = !ls\ndef f(): return 1",
        "!pip install torch\ndef f(): return 1",
        "?f\ndef f(): return 1",
        "r = %timeit -o 1 + 1\ndef f(): return 1",
        "%%time\ndef f(): return 1",
        "\n\n%%capture out\ndef f(): return 1",
        "r = check(f)\ndef f(): return 1",
        "def f(): return 1\nf?",
        "%load_ext autoreload\n%autoreload 2\ndef f():\n    return 1",
    ],
)
def test_magics_are_removed(cell):
    assert value(read(notebook(cell))) == 1


@pytest.mark.parametrize("magic", ["%%bash", "%%writefile x.py", "%%html", "%%"])
def test_cells_in_other_languages_are_dropped(magic):
    submission = read(notebook("def f(): return 1", f"{magic}\ndef f(: return 2"))
    assert value(submission) == 1
    assert not submission.broken


def test_magics_keep_the_line_numbers():
    submission = read(
        notebook("# one", "%matplotlib inline\n\n%%timing\n", "%time\n\ndef f(): 1/0")
    )
    with pytest.raises(ZeroDivisionError) as error:
        value(submission)
    last = error.traceback[-1]
    assert (str(last.path), last.lineno + 1) == ("cell 3", 3)
    assert submission.quote(Site("cell 3", 3)) == "def f(): 1/0"


def test_only_lines_of_the_submission_itself_are_quoted(tmp_path):
    """Where a failure stands is said by the student's process: it may name any file."""
    secret = tmp_path / "secret.py"
    secret.write_text("seed = 7\n")
    submission = read("def f(): 1/0", "a.py")
    assert submission.quote(Site("a.py", 1)) == "def f(): 1/0"
    assert submission.quote(Site(str(secret), 1)) == ""


def test_a_syntax_error_in_another_cell_costs_nothing_here():
    submission = read(notebook("def f(): return 1", "def g(:\n    pass", "print(("))
    assert value(submission) == 1
    assert set(submission.broken) == {"g"}


def test_a_percent_file_is_taken_cell_by_cell_if_it_does_not_parse():
    text = "# %%\ndef f(): return 1\n\n# %% [markdown]\n# text\n\n# %%\ndef g(:\n    pass\n"
    submission = read(text, "a.py")
    assert value(submission) == 1
    assert submission.broken["g"].line == 8


def test_another_python_file_is_taken_as_a_whole():
    assert set(read("def f(): return 1\ndef g(:\n    pass", "a.py").broken) == {"f", "g"}


@pytest.mark.parametrize(
    "name, data, text",
    [
        ("a.py", b"", "is empty"),
        ("a.py", b" \n\t\n", "is empty"),
        ("a.py", b"\x7fELF\x00\xff\xfe", "not text"),
        ("a.txt", b"def f(): ...", "neither a .py file nor an .ipynb notebook"),
        ("a.ipynb", b"def f(): ...", "does not hold JSON"),
        ("a.ipynb", b"[1, 2]", "no nbformat"),
        ("a.ipynb", b'{"cells": []}', "no nbformat"),
        ("a.ipynb", b'{"nbformat": 4}', "no list of cells"),
        ("a.ipynb", b'{"nbformat": 3, "worksheets": []}', "format 3; format 4 is needed"),
        ("a.ipynb", b"[" * 100_000, "does not hold JSON"),
    ],
)
def test_what_is_no_submission_is_named_in_one_line(tmp_path, name, data, text):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UnreadableFile, match=text) as error:
        Submission.from_file(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_paths_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "fifo.py")
    for path, text in (
        (tmp_path / "none.py", "does not exist"),
        (tmp_path, "is a folder"),
        (tmp_path / "fifo.py", "no regular file"),
        ("a\0b.py", "cannot be read"),
    ):
        with pytest.raises(UnreadableFile, match=text):
            Submission.from_file(path)


@pytest.mark.parametrize(
    "cells",
    [[{"cell_type": "code"}], [{"cell_type": "code", "source": 3}], [3, None], []],
)
def test_odd_cells_are_no_definitions(cells):
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    assert read(text).names == frozenset()


def test_a_live_function_travels_by_value_with_what_it_uses():
    offset = 40

    def helper(x):
        return x + offset

    def f(x):
        return helper(x)

    assert load(live_program(f, 2)).entry("anything")() == 42


def test_a_live_function_brings_only_submodules_that_it_may_mean(monkeypatch):
    package, submodule = types.ModuleType("package"), types.ModuleType("package.tensor")
    package.__package__, package.tensor = "package", submodule
    other = types.SimpleNamespace(tensor=float)
    for module in (package, submodule):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def means(text):
        function = eval(f"lambda local: ({text})", {"p": package, "o": other})
        return b"package.tensor" in live_program(function).live

    assert means("p.tensor")
    assert means("(p or o).tensor")
    assert means("p, local.tensor")
    assert not means("p, o.tensor(1)")
    assert means("o.tensor(1), p.tensor")


def test_a_live_function_that_cannot_travel():
    import threading

    lock = threading.Lock()

    def f():
        return lock

    with pytest.raises(RequestError, match="f cannot be sent to other processes") as error:
        live_program(f)
    assert error.value.__cause__ is None
