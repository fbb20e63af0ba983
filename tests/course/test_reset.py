"""Beginning an exercise again: the stub comes back, and what the learner had is kept."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from grader import reset as reset_here
from grader.api import catalogue
from grader.cli.main import main
from grader.course.index import ENTRIES, course_index, title_of
from grader.errors import UnknownExercise
from tests.kernels import start_kernel
from tools.chapter import Chapter
from tools.notebooks import index_text

ROOT = Path(__file__).resolve().parents[2]
NAME = "02_broadcast.ipynb"
MINE = 'def broadcast(x, src):\n    print("mine: ✓")\n\n\ncheck(broadcast)'


@pytest.fixture
def notebook(tmp_path):
    return Path(shutil.copy(ROOT / "notebooks" / NAME, tmp_path))


def cells(notebook):
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def write(notebook, text, exercise="broadcast", **more):
    """Put a text into the cell of an exercise, as its learner and JupyterLab do."""
    book = json.loads(notebook.read_text(encoding="utf-8"))
    entry = course_index()[exercise]
    (cell,) = (cell for cell in book["cells"] if cell["id"] == entry.cell)
    cell.update({"source": text, "execution_count": 7, "outputs": [{}], **more})
    notebook.write_text(json.dumps(book), encoding="utf-8")


def test_every_exercise_has_its_stub():
    for name, entry in course_index().items():
        assert name in entry.stub
        assert "raise NotImplementedError" in entry.stub, name


@pytest.mark.parametrize("name", catalogue().chapters())
def test_the_index_is_what_the_declarations_and_the_students_edition_say(name):
    worth = {one.name: one.points for one in catalogue().values()}
    chapter = Chapter(ROOT / "solutions" / f"{name}.py", worth)
    stored = (ENTRIES / f"{name}.json").read_text(encoding="utf-8")
    assert stored == index_text(chapter, catalogue()), f"make notebooks ARGS='--no-run {name[:2]}'"
    assert title_of(name) == chapter.title


def test_the_index_has_the_order_of_the_course():
    assert list(course_index()) == list(catalogue())
    assert {path.stem for path in ENTRIES.iterdir()} == set(catalogue().chapters())


@pytest.mark.parametrize("text", [MINE, MINE.splitlines(keepends=True)], ids=["text", "lines"])
def test_the_stub_comes_back_and_the_old_text_is_kept(notebook, capsys, text):
    fresh = cells(notebook)
    write(notebook, text)
    notebook.chmod(0o640)
    assert main(["reset", str(notebook), "broadcast"]) == 0
    kept = notebook.with_name("broadcast.old.py")
    assert f"What you had is in {kept}" in capsys.readouterr().out
    assert kept.read_text(encoding="utf-8") == f"{MINE}\n"
    again = cells(notebook)
    for cell in [*again, *fresh]:
        cell["source"] = "".join(cell["source"])
    assert again == fresh  # everything else is as it was, and the output of the old text is gone
    assert stat.S_IMODE(notebook.stat().st_mode) == 0o640
    assert {path.name for path in notebook.parent.iterdir()} == {NAME, kept.name}


def test_a_second_time_overwrites_nothing(notebook):
    for text in ("def broadcast(x, src): first", "def broadcast(x, src): second"):
        write(notebook, text)
        assert main(["reset", str(notebook), "broadcast"]) == 0
    kept = sorted(notebook.parent.glob("*.py"))
    assert [path.name for path in kept] == ["broadcast.old.py", "broadcast.old2.py"]
    assert [path.read_text().split()[-1] for path in kept] == ["first", "second"]


def test_a_cell_that_is_the_stub_already_is_left_alone(notebook, capsys):
    before = notebook.read_bytes()
    assert main(["reset", str(notebook), "broadcast"]) == 0
    assert "is the stub already; nothing is changed" in capsys.readouterr().out
    assert notebook.read_bytes() == before
    assert [path.name for path in notebook.parent.iterdir()] == [NAME]


@pytest.mark.parametrize("text", ["def broadcast(x, src:\n    pass", "", "# gone"])
def test_a_cell_that_no_longer_defines_it_is_found_by_its_id(notebook, text):
    write(notebook, text)
    assert main(["reset", str(notebook), "broadcast"]) == 0
    entry = course_index()["broadcast"]
    (cell,) = (cell for cell in cells(notebook) if cell["id"] == entry.cell)
    assert "".join(cell["source"]) == entry.stub


def test_the_last_of_several_definitions_is_the_one_that_counts(notebook):
    write(notebook, MINE)
    book = json.loads(notebook.read_text())
    later = {"cell_type": "code", "id": "later", "metadata": {}, "outputs": []}
    book["cells"].append({**later, "source": "class broadcast: pass", "execution_count": None})
    notebook.write_text(json.dumps(book))
    assert main(["reset", str(notebook), "broadcast"]) == 0
    found = cells(notebook)
    entry = course_index()["broadcast"]
    assert "".join(found[-1]["source"]) == entry.stub
    assert [c["source"] for c in found if c["id"] == entry.cell] == [MINE]


def test_an_answer_that_is_a_text(tmp_path):
    notebook = Path(shutil.copy(ROOT / "notebooks" / "18_profiling.ipynb", tmp_path))
    write(notebook, 'VECTOR_ADD_CPP = "int x;"', "VECTOR_ADD_CPP")
    assert main(["reset", str(notebook), "VECTOR_ADD_CPP"]) == 0
    assert (tmp_path / "VECTOR_ADD_CPP.old.py").read_text() == 'VECTOR_ADD_CPP = "int x;"\n'


@pytest.mark.parametrize(
    "contents, said",
    [
        (None, "does not exist"),
        (b"def broadcast(x, src): pass", "is no notebook; reset takes the .ipynb file"),
        (b'{"cells": [{"cell_type": "code"}]}', "is no notebook"),
        (b'{"cells": []}', "no cell of"),
    ],
)
def test_what_cannot_be_reset_is_said_and_left(tmp_path, capsys, contents, said):
    path = tmp_path / "mine.ipynb"
    if contents is not None:
        path.write_bytes(contents)
    assert main(["reset", str(path), "broadcast"]) == 2
    assert said in capsys.readouterr().err
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [contents] * (contents is not None)


def test_an_unknown_exercise(notebook, capsys):
    assert main(["reset", str(notebook), "brodcast"]) == 2
    assert "did you mean broadcast?" in capsys.readouterr().err
    with pytest.raises(UnknownExercise):
        reset_here("brodcast")


def test_outside_of_a_notebook_the_stub_is_printed(capsys):
    begun = reset_here("broadcast")
    stub = course_index()["broadcast"].stub
    assert repr(begun) == stub
    assert capsys.readouterr().out == f"{stub}\n"


#: One worker has the kernel.
in_notebook = pytest.mark.xdist_group("in_notebook")


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_kernel(cwd=str(ROOT / "notebooks"))
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def said(client, code):
    """What a cell shows as plain text, and what it asks the front end for."""
    shown, kinds = [], [""]

    def listen(message):
        content = message["content"]
        text = content.get("text") or content.get("data", {}).get("text/plain", "")
        if kinds[-1] == message["msg_type"] == "stream":
            shown[-1] += text  # a kernel may send what is printed in pieces
        else:
            shown.append(text)
        kinds.append(message["msg_type"])

    reply = client.execute_interactive(code, output_hook=listen, timeout=100)
    assert reply["content"]["status"] == "ok", reply["content"]
    return [text for text in shown if text], reply["content"]["payload"]


@pytest.mark.slow
@in_notebook
@pytest.mark.exhaustive
def test_in_a_notebook_the_stub_goes_into_a_new_cell(kernel):
    shown, payload = said(kernel, 'from grader import reset\nreset("broadcast")')
    stub = course_index()["broadcast"].stub
    assert payload == [{"source": "set_next_input", "text": stub, "replace": False}]
    assert "in a new cell below. Your own cell is as it was" in " ".join(shown)


@pytest.mark.slow
@in_notebook
def test_a_prediction_stands_above_the_next_run_once(kernel):
    shown, _ = said(kernel, 'from grader import predict, run\npredict("all have `7`")')
    assert shown == ["Your prediction is kept. Now run the next cell and compare."]
    ask = "print(list(run(lambda: 7, 2)))"
    assert said(kernel, ask)[0] == ["You predicted: all have `7`", "[7, 7]\n"]
    assert said(kernel, ask)[0] == ["[7, 7]\n"]


@pytest.mark.slow
@in_notebook
def test_an_empty_prediction_is_no_prediction(kernel):
    shown, _ = said(kernel, 'from grader import predict, run\npredict("one")\npredict("  ")')
    assert shown == [
        "No prediction yet. Write what you expect between the quotes, and run this cell."
    ]
    assert said(kernel, "print(list(run(lambda: 7, 2)))")[0] == ["[7, 7]\n"]
