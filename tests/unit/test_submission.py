"""Files as submissions."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tracemalloc
import types
from dataclasses import replace
from pathlib import Path

import pytest

from grader.course.index import course_index
from grader.submission.source_files import OutputFilter
from grader.submission.submission import Submission, live_program
from headcount.core.errors import RequestError, UnreadableFile
from headcount.core.files import LARGEST_FILE
from headcount.core.program import load
from headcount.core.verdict import Site
from support.growth import LIMIT, growth

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_module_stays():
    """Forget the modules beside the answers of a test, as the end of a rank does."""
    before, finders = set(sys.modules), list(sys.meta_path)
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if type(sys.modules[name].__loader__).__name__ == "_HandedIn":
            del sys.modules[name]


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


def test_a_definition_is_run_here_and_a_statement_that_fails_costs_only_its_own():
    cells = "import absent_package", "TWO = 2", "def f(): return TWO", "print('an experiment')"
    submission = read(notebook(*cells))
    found = submission.defined("f")
    assert (found(), found.__module__) == (2, "__main__")
    assert submission.defined("g") is None


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


# What browsers and notebooks do to files. -----------------------------------------


@pytest.mark.parametrize(
    "name", ["a.ipynb.json", "a.ipynb.txt", "a.IPYNB.TXT", "a.ipynb (1).json", "a.ipynb-2.txt"]
)
def test_a_notebook_that_a_browser_has_saved_under_another_ending(name):
    assert value(read(notebook("def f(): return 1"), name)) == 1


def _with_outputs():
    """A notebook that holds whatever could be taken for the end of an output."""
    noise = {"x": ["}", '"', "\\", '\\"outputs": ['], "y": [[{"}": "{"}], None, 1.5, True]}
    cells = [
        {"cell_type": "markdown", "metadata": noise, "source": ['# "outputs": {[\n'],
         "attachments": {"a.png": noise}},
        {"cell_type": "code", "id": "a", "outputs": [noise, noise], "metadata": {},
         "source": ['def f(): return "outputs\\\\", {"outputs": []}\n']},
        {"outputs": [], "cell_type": "code", "metadata": None, "source": "def g(): return 2"},
    ]  # fmt: skip
    return {"cells": cells, "metadata": {"widgets": noise}, "nbformat": 4, "nbformat_minor": 5}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_notebook_is_read_without_its_outputs_wherever_it_is_cut(indent):
    notebook = _with_outputs()
    data = json.dumps(notebook, indent=indent).encode()
    notebook["metadata"] = None
    for cell in notebook["cells"]:
        cell |= dict.fromkeys({"outputs", "metadata", "attachments"} & set(cell))
    for size in (*range(1, 40), len(data)):
        outputs = OutputFilter()
        pieces = [outputs.feed(data[i : i + size]) for i in range(0, len(data), size)]
        assert json.loads(b"".join(pieces) + outputs.close()) == notebook, size


@pytest.mark.parametrize("text", ["", "def f(): pass", '{"cells": [{', '"outputs": {', '["a\\'])
def test_what_is_no_notebook_stays_as_it_is(text):
    outputs = OutputFilter()
    assert outputs.feed(text.encode()) + outputs.close() == text.encode()


def with_sources(sources):
    return replace(read("def f(): pass", "a.py"), sources=sources)


def test_quoting_takes_time_in_proportion_to_the_lines_that_are_quoted():
    def work(n):
        submission = with_sources({"a.py": "#\n" * n})
        return lambda: [submission.quote(Site("a.py", line)) for line in range(1, n)]

    assert growth(work, 2000) < LIMIT


def test_what_is_quoted_takes_little_memory_and_is_the_answers_own_before_what_it_imports():
    submission = with_sources({"b.py": "x\n" * 100, "a.py": "xy\n" * (8 << 20)})
    tracemalloc.start()
    try:
        assert submission.quote(Site("a.py", 1000)) == "xy"
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()
    assert submission.quote(Site("a.py", 8 << 20)) == submission.quote(Site("b.py", 1)) == ""


def without_outputs(data):
    """What is kept of a notebook, byte by byte."""
    kept, opened, string, inside, left_out = b"", [], b"", False, 0
    for byte in re.findall(rb'\\["\\]|.', data):
        if inside or byte == b'"':
            string = string + byte if inside else b""
            inside = not inside or byte != b'"'
        elif byte in b"[{":
            opened.append(byte)
        elif byte in b"]},":
            if 0 < left_out == len(opened):
                left_out, string = 0, b""
            del opened[len(opened) - (byte != b",") :]
        elif byte == b":" and not left_out and string.strip(b'"') in KEYS and opened in PATHS:
            left_out = len(opened)
            kept += b":null"
            continue
        kept += byte if not left_out else b""
    return kept


KEYS = (b"outputs", b"attachments", b"metadata")
PATHS = ([b"{"], [b"{", b"[", b"{"])


@pytest.mark.parametrize("seed", range(60))
def test_leaving_out_in_bulk_keeps_what_leaving_out_byte_by_byte_does(seed):
    draw = random.Random(seed)
    words = draw.sample(
        [b'"outputs"', b'"metadata"', b'"cells"', b":", b",", b"[", b"]", b"{", b"}", b'"', b"\\",
         b'\\"', b'""', b'"\\\\"', b'"[\\""', b"1", b' "x', b'{"cells":[{"outputs":['],
        draw.randint(3, 18),
    )  # fmt: skip
    for length in (50, 4000):
        begin = draw.choice([b"", b'{"metadata":', b'{"cells":[{"outputs":['])
        data = begin + b"".join(draw.choices(words, k=length))
        outputs, kept, at = OutputFilter(), [], 0
        while at < len(data):
            size = draw.randint(1, draw.choice([2, 100, 10_000]))
            kept.append(outputs.feed(data[at : at + size]))
            at += size
        assert b"".join(kept) + outputs.close() == without_outputs(data)


@pytest.mark.parametrize("unit", [b"[]", b"[", b",", b'"",', b'["",["]"],', b'"\\"",'])
def test_brackets_in_outputs_are_not_gone_through_one_by_one(unit):
    outputs = OutputFilter()
    for piece in (b'{"metadata": [', *[unit * 50_000] * 8):
        outputs.feed(piece)
    assert outputs.tokens < 100


def test_a_notebook_of_brackets_is_refused(tmp_path):
    (tmp_path / "a.ipynb").write_bytes(b'{"cells": [' + b"[]," * 300_000)
    with pytest.raises(UnreadableFile, match="more than 524,288 strings and brackets"):
        Submission.from_file(tmp_path / "a.ipynb")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("name", ["a.py", "a.ipynb"])
def test_a_file_that_says_how_it_is_encoded(tmp_path, name, encoding):
    source = "def f(): return 'Łukasz 李'"
    text = source
    if name == "a.ipynb":
        text = json.dumps(json.loads(notebook(source)), ensure_ascii=False)
    (tmp_path / name).write_text(text, encoding=encoding)
    assert value(Submission.from_file(tmp_path / name)) == "Łukasz 李"


def test_the_outputs_of_a_notebook_take_no_memory(tmp_path):
    plots = [{"data": {"image/png": "iVBORw0KGgo" * (4 << 20)}}]
    cell = {"cell_type": "code", "source": "def f(): return 1", "metadata": {}, "outputs": plots}
    (tmp_path / "a.ipynb").write_text(notebook(cell))
    assert (tmp_path / "a.ipynb").stat().st_size > LARGEST_FILE
    tracemalloc.start()
    try:
        read_there = Submission.from_file(tmp_path / "a.ipynb")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert value(read_there) == 1


@pytest.mark.parametrize("name", ["a.json", "a.txt", "a.ipynbx", "notes.md"])
def test_other_endings_are_no_submission(name):
    with pytest.raises(UnreadableFile, match=r"neither a \.py file nor an .ipynb notebook"):
        read(notebook("def f(): return 1"), name)


def test_a_python_file_that_a_mail_program_has_saved_as_text():
    assert value(read("def f(): return 1", "a.py.txt")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "!pip install -q rich",
        "%matplotlib inline",
        "%%writefile a.py",
        "x = !ls",
        "torch?",
        "%%time",
    ],
)
@pytest.mark.parametrize("before", ["", "import math\n\n"])
def test_lines_for_ipython_in_a_python_file_are_left_out(before, line):
    submission = read(f"{before}{line}\ndef f(): return 1", "a.py")
    assert submission.unparsed == ()
    assert value(submission) == 1
    defined = next(unit for unit in submission.program.units if "f" in unit.names)
    assert defined.line == before.count("\n") + 2


def test_other_faults_of_a_python_file_with_magics_are_still_named():
    submission = read("!ls\ndef f(:\n    pass", "a.py")
    assert submission.broken["f"].line == 2


# Where a name is that is not at module level. --------------------------------------


@pytest.mark.parametrize(
    ("source", "where"),
    [
        (
            "\nclass Solution:\n    def f(self): pass",
            "inside class Solution, line 3,",
        ),
        ("class A:\n  class B:\n    f = len", "it is defined inside class B, line 3,"),
        ("def main():\n    def f(): pass", "it is defined inside function main, line 2,"),
        (
            "if __name__ == '__main__':\n    def f(): pass",
            'it is defined inside the block `if __name__ == "__main__"`, line 2,',
        ),
        ("while True:\n    def f(): pass", "it is defined inside a `while` loop, line 2,"),
        (
            "try:\n    pass\nexcept OSError:\n    class A:\n        def f(self): pass",
            "class A, line 5",
        ),
    ],
)
def test_a_name_that_is_defined_elsewhere_is_named_with_its_place(source, where):
    submission = read(source, "a.py")
    assert "f" not in submission.names
    assert where in submission.elsewhere["f"]


@pytest.mark.parametrize(
    "near", ["Ring_All_Reduce", "ring_allreduce", "ringAllReduce", "ring_al_reduce"]
)
def test_a_name_that_is_nearly_the_same(near):
    submission = read(f"\ndef {near}(x): pass", "a.py", ["ring_all_reduce"])
    assert submission.elsewhere == {
        "ring_all_reduce": f"did you mean it by {near}, line 2? Call it ring_all_reduce"
    }


def test_a_name_with_a_letter_of_another_alphabet_is_told_by_that_letter():
    near = "bro\N{CYRILLIC SMALL LETTER A}dcast"
    assert read(f"def {near}(x, src): pass", "a.py", ["broadcast"]).elsewhere == {
        "broadcast": f"did you mean it by {near} (in which one letter is CYRILLIC SMALL LETTER A),"
        " line 1? Call it broadcast"
    }


def test_another_exercise_is_no_misspelling_and_words_in_texts_are_no_names():
    source = "def all_gather(x): pass\ns = 'def gather(x): class gathers'  # gather"
    assert read(source, "a.py", ["gather", "all_gather"]).elsewhere == {}


def test_a_cell_is_part_of_the_place():
    submission = read(notebook("x = 1", "class A:\n    def f(self): pass"))
    assert "cell 2, line 2" in submission.elsewhere["f"]


# Where an answer stands that nothing defines, and stubs beside an answer. ------------


RIGHT = "def f():\n    return 1\n"
STUB = 'def f():\n    """Write it."""\n    raise NotImplementedError\n'
CLASS_STUB = "class f:\n    def __init__(self):\n        raise NotImplementedError\n"
TEXT_STUB = "f = r'''\n// write it\nraise NotImplementedError\n'''\n"


def cell(kind, source):
    return {"cell_type": kind, "source": source, "metadata": {}}


def in_comments(source):
    return "".join(f"# {line}" for line in source.splitlines(keepends=True))


@pytest.mark.parametrize("stub", [None, STUB])
@pytest.mark.parametrize(
    ("aside", "where"),
    [
        (
            cell("markdown", RIGHT),
            "in a markdown cell after cell 1, line 1; make that a code cell",
        ),
        (
            cell("markdown", f"Mine:\n```python\n{RIGHT}```"),
            "a markdown cell after cell 1, line 3",
        ),
        (cell("raw", RIGHT), "in a raw cell after cell 1, line 1; make that a code cell"),
        (cell("raw", "class f:\n    x = 1"), "in a raw cell after cell 1, line 1"),
        (cell("raw", "f = r'''\nint f() { return 1; }\n'''"), "in a raw cell after cell 1"),
        (cell("raw", "def f(x,\n      y\n):\n    return"), "in a raw cell after cell 1, line 1"),
        (f"%%bash\n{RIGHT}", "in cell 2, line 2; it needs a cell without the magic"),
        (f"%%writefile g.py\n{RIGHT}", "in cell 2, line 2; it needs `from g import *`"),
        (f"x = 1\n{in_comments(RIGHT)}", "in a comment of cell 2, line 2; take the # signs away"),
        (f"if __name__ == '__main__':\n    {RIGHT.replace(chr(10), chr(10) + '    ')}", "cell 2"),
    ],
)
def test_an_answer_that_nothing_defines_is_named_with_its_place(stub, aside, where):
    assert where in read(notebook(stub or "x = 1", aside)).elsewhere["f"]


@pytest.mark.parametrize("stub", [STUB, CLASS_STUB, TEXT_STUB])
@pytest.mark.parametrize("aside", ["Write `def f():` here", "def f():", "f = 1", "```\ndef f(): x"])
def test_words_and_stubs_in_a_text_are_no_answer(stub, aside):
    assert read(notebook(stub, cell("markdown", aside.partition("x")[0]))).elsewhere == {}
    assert read(notebook(stub, cell("markdown", stub), in_comments(stub))).elsewhere == {}


def test_an_answer_by_nearly_the_same_name_beside_the_stub():
    stub = STUB.replace("f()", "ring_all_reduce()")
    near = notebook(stub, "def ring_all_reduc(): return 1")
    assert (
        "by ring_all_reduc, cell 2"
        in read(near, wanted=["ring_all_reduce"]).elsewhere["ring_all_reduce"]
    )
    helper = notebook(stub, "def ring_then_all_reduce(): return 1")
    assert read(helper, wanted=["ring_all_reduce"]).elsewhere == {}


@pytest.mark.parametrize(
    ("answer", "stub"),
    [
        (RIGHT, STUB),
        ("f = lambda: 1", STUB),
        (f"if True:\n    {RIGHT.replace(chr(10), chr(10) + '    ')}", STUB),
        ("class f:\n    def __new__(cls):\n        return 1", CLASS_STUB),
    ],
)
def test_a_stub_takes_the_place_of_no_answer_and_is_named_if_it_comes_later(answer, stub):
    below = read(notebook(answer, stub))
    assert value(below) == 1
    assert "the untouched stub, cell 2, line 1, does not count" in below.elsewhere["f"]
    above = read(notebook(stub, answer))
    assert value(above) == 1
    assert above.elsewhere == {}


def test_a_text_takes_the_place_of_its_stub():
    found = read(notebook("f = '''int f() { return 1; }'''", TEXT_STUB))
    assert load(found.program).entry("f") == "int f() { return 1; }"


@pytest.mark.parametrize("start", ["", "    print()\n    raise NotImplementedError\n"])
def test_what_is_no_stub_takes_the_place_of_an_earlier_answer(start):
    assert read(notebook(RIGHT, f"def f():\n{start}    return 2")).elsewhere == {}
    assert value(read(notebook(RIGHT, "def f():\n    return 2"))) == 2


@pytest.mark.parametrize("how", ["from g import *", "from g import f", "import g\nf = g.f"])
@pytest.mark.parametrize("magic", ["%%writefile g.py", "%%file ./g.py", '%%writefile "g.py"'])
def test_a_cell_writes_a_module(how, magic):
    found = read(notebook(f"{magic}\n{RIGHT}", how))
    assert "f" in found.names
    assert value(found) == 1
    assert found.elsewhere == {}


def test_cells_write_a_module_in_two_parts_and_a_stub_comes_after_its_import():
    cells = (
        f"%%writefile g.py\n{RIGHT}",
        "%%writefile -a g.py\ndef h(): return 2",
        "from g import *",
    )
    assert value(read(notebook(*cells), wanted=["h"]), "h") == 2
    stubbed = read(notebook(*cells, STUB))
    assert value(stubbed) == 1
    assert "cell 4, line 1" in stubbed.elsewhere["f"]
    assert read(notebook(STUB, *cells)).elsewhere == {}


def test_a_written_module_stands_before_one_that_was_handed_in_beside(tmp_path):
    (tmp_path / "g.py").write_text("def f(): return 2\n")
    (tmp_path / "h.py").write_text("def h(): return 3\n")
    text = notebook(f"%%writefile g.py\n{RIGHT}", "from g import *\nfrom h import *")
    (tmp_path / "a.ipynb").write_text(text)
    found = Submission.from_file(tmp_path / "a.ipynb", ["f", "h"])
    assert (value(found), value(found, "h")) == (1, 3)


def test_code_that_reads_its_own_text_finds_it():
    source = (
        "import inspect\n\n\ndef g():\n    return 1\n\nS = inspect.getsource(g)\ndef f(): return S"
    )
    assert value(read(source, "a.py")) == "def g():\n    return 1\n"
    assert value(read(notebook("x = 1", source))) == "def g():\n    return 1\n"


def test_no_chapter_has_an_answer_or_a_name_like_one_beside_its_stubs():
    """What is given with an exercise is never taken for its answer."""
    names = course_index()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        own = [name for name in names if names[name].chapter == path.stem]
        found = Submission.from_file(path, own)
        assert found.elsewhere == {}, path.name


# Modules that were handed in beside the file. ---------------------------------------


def beside(tmp_path, source, **files):
    """The submission of ``answer.py``, beside which other files lie; ``__`` stands for a folder."""
    for name, text in files.items():
        path = tmp_path / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "answer.py").write_text(source)
    return Submission.from_file(tmp_path / "answer.py", ["f"])


def modules(submission):
    return sorted(module.name for module in submission.program.modules)


def test_only_what_is_imported_beside_comes_along(tmp_path):
    source = "import helpers\ndef f():\n    from late import g\n    return g() + helpers.h()"
    late = "from other import g"
    files = {"helpers": "def h(): return 1", "late": late, "other": "def g(): return 2"}
    submission = beside(tmp_path, source, **files, unused="1 / 0")
    assert modules(submission) == ["helpers", "late", "other"]
    assert submission.quote(Site("./late.py", 1)) == late
    assert value(submission) == 3


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from pkg.part import g as f", ["pkg", "pkg.part", "pkg.rest"]),
        ("from pkg import part\ndef f(): return part.g()", ["pkg", "pkg.part", "pkg.rest"]),
        ("from pkg import *\nf = part.g", ["pkg", "pkg.part", "pkg.rest"]),
        ("import lib.deep\ndef f(): return lib.deep.g()", ["lib", "lib.deep"]),
        (
            "import importlib\nf = importlib.import_module('pkg.part').g",
            ["pkg", "pkg.part", "pkg.rest"],
        ),
        (
            "import importlib\nf = [importlib.import_module(f'lib.{n}') for n in ['deep']][0].g",
            ["answer", "lib", "lib.deep", "pkg", "pkg.part", "pkg.rest"],
        ),
    ],
)
def test_packages_folders_and_imports_by_text(tmp_path, source, found):
    files = {
        "pkg__part": "from .rest import g\n",
        "pkg__rest": "from . import part\ndef g(): return 7\n",
        "lib__deep": "def g(): return 7\n",
    }
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("__all__ = ['part']\n")
    submission = beside(tmp_path, source, **files)
    assert modules(submission) == found
    assert value(submission) == 7


def test_a_module_beside_comes_before_an_installed_one_and_after_pythons_own(tmp_path):
    source = (
        "import random, networkx, numpy\ndef f(): return random.choice, networkx.mine, numpy.ones"
    )
    mine = "mine = choice = ones = 'of the student'"
    submission = beside(tmp_path, source, random=mine, networkx=mine, numpy=mine)
    choice, installed, imported = value(submission)
    assert installed == "of the student"
    assert callable(choice)
    assert callable(imported), "what a rank has imported already stays"
    assert submission.program.hidden == ["random"]


def test_the_grader_is_never_taken_from_beside_a_file(tmp_path):
    submission = beside(
        tmp_path, "from headcount.core import wire\nf = len", grader__core__wire="1 / 0"
    )
    assert modules(submission) == []


def test_a_check_at_the_end_of_a_module_is_no_part_of_it(tmp_path):
    helpers = "from grader import check\ndef g(): return 5\ncheck(g)\n"
    assert value(beside(tmp_path, "from helpers import g as f", helpers=helpers)) == 5


def test_an_answer_that_a_star_brings_is_not_missing(tmp_path):
    files = {"all_of_it": "from parts import *\nx = 1", "parts": "def f(): return 4\ndef g(): pass"}
    submission = beside(tmp_path, "from all_of_it import *\n", **files)
    assert submission.names == {"*", "f"}
    assert value(submission) == 4
    assert "f" not in beside(tmp_path, "import parts\n", **files).names


def test_too_much_beside_a_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("grader.submission.modules.MOST_MODULES", 1)
    with pytest.raises(UnreadableFile, match="more than 1 modules or 32 MB beside it are imported"):
        beside(tmp_path, "import a, b\nf = len", a="", b="")
