"""The notebook tools, on the toy course; and our own course's files against its sources."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

from grader.api import catalogue
from grader.course.chapters import discover
from tools import notebooks, pictures, tests
from tools.chapter import Chapter, ChapterError, to_text
from tools.pictures.common import GROUND

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "tests" / "toy" / "solutions"


#: A cell that a student writes and no exercise judges.
PRACTICE = """
# %%
def half(x):
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION
"""


@pytest.fixture
def toy(tmp_path):
    """A copy of the toy course's sources."""
    shutil.copytree(TOY, tmp_path / "solutions")
    return tmp_path / "solutions" / "00_toy.py"


def code(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def worth(exercises):
    return {name: exercise.points for name, exercise in exercises.items()}


def test_the_student_edition_has_stubs_and_nothing_else_of_the_solution():
    cells = code(Chapter(TOY / "00_toy.py").student_edition())
    assert cells[1] == (
        "def twice(x: torch.Tensor) -> torch.Tensor:\n"
        '    """x doubled."""\n'
        "    # Your code here: 1 line.\n"
        "    raise NotImplementedError"
    )
    assert "# Your code here: about 5 lines." in cells[2]
    assert "rank = dist.get_rank()" in cells[2]  # outside of the markers
    assert "given to students" in cells[2]
    assert not any("SOLUTION" in cell or "dist.send" in cell for cell in cells)


def test_the_solved_edition_has_the_solution_without_markers():
    cells = code(Chapter(TOY / "00_toy.py").solved_edition())
    assert cells[1].endswith("    # a comment is no line of code\n    return 2 * x")
    assert not any("SOLUTION" in cell for cell in cells)


def test_a_solution_that_is_not_graded_is_a_stub_that_nbgrader_knows(toy):
    # its release takes solutions out of cells that are marked, and refuses any other
    toy.write_text(toy.read_text() + PRACTICE)
    chapter = Chapter(toy, worth(discover("tests.toy.exercises")))
    (cell,) = (c for c in chapter.student_edition().cells if "half" in c.source)
    assert cell.source.endswith("# Your code here: 1 line.\n    raise NotImplementedError")
    marks = cell.metadata["nbgrader"]
    assert (marks["solution"], marks["grade"]) == (True, False)
    assert "half" not in chapter.stubs()


def test_editions_are_the_same_bytes_every_time():
    texts = {to_text(Chapter(TOY / "00_toy.py").student_edition()) for _ in range(3)}
    assert len(texts) == 1
    notebook = nbformat.reads(texts.pop(), as_version=4)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)


def test_a_change_in_one_cell_leaves_the_ids_of_the_others(toy):
    before = [cell.id for cell in Chapter(toy).student_edition().cells]
    toy.write_text(toy.read_text().replace("## Two exercises", "## Three exercises"))
    after = [cell.id for cell in Chapter(toy).student_edition().cells]
    assert [a == b for a, b in zip(before, after, strict=True)].count(False) == 1


def test_tags_reach_the_notebook():
    cells = Chapter(TOY / "00_toy.py").student_edition().cells
    assert [cell.metadata.get("tags") for cell in cells].count(["nbval-ignore-output"]) == 1


#: A measurement, what the text says of it, and a cell below.
MEASURED = """
# %% tags=["nbval-ignore-output"]
seconds = {"loop": 7, "tree": 3}
print(seconds)
"""
CLAIM = """
# %% tags=["claim"]
assert seconds["tree"] < seconds["loop"], "the tree is faster"
"""
BELOW = """
# %%
1
"""


def test_a_claim_stands_in_no_edition(toy):
    toy.write_text(toy.read_text() + MEASURED)
    plain = Chapter(toy)
    toy.write_text(toy.read_text() + CLAIM)
    chapter = Chapter(toy)
    for edition in ("student_edition", "solved_edition", "source_edition"):
        texts = [to_text(getattr(one, edition)()) for one in (plain, chapter)]
        assert texts[0] == texts[1]
    ((measured, (claim,)),) = chapter.claims().items()
    assert measured == chapter.solved_edition().cells[-1].id
    assert toy.read_text().splitlines()[claim.line - 1] == claim.source


@pytest.mark.slow
def test_a_run_that_contradicts_the_text_is_not_stored(toy, tmp_path, capsys):
    options = ["--solutions", str(toy.parent), "--notebooks", str(tmp_path / "notebooks")]
    toy.write_text(toy.read_text() + MEASURED + CLAIM + BELOW)
    assert notebooks.main(options) == 0
    stored = toy.with_suffix(".ipynb")
    built = stored.read_text()
    measured, below = json.loads(built)["cells"][-2:]
    # a claim leaves no gap in the numbers of cells
    assert below["execution_count"] == measured["execution_count"] + 1
    assert below["outputs"][0]["execution_count"] == below["execution_count"]
    line = toy.read_text().splitlines().index(CLAIM.splitlines()[2]) + 1
    toy.write_text(toy.read_text().replace('"tree": 3', '"tree": 9'))
    capsys.readouterr()
    assert notebooks.main(options) == 1
    said = capsys.readouterr().err
    assert f"{toy}:{line}: this run contradicts the chapter: the tree is faster\n" in said
    assert "{'loop': 7, 'tree': 9}" in said
    assert stored.read_text() == built


MISTAKES = {
    "no end": ("    ### END SOLUTION\n\n\n# %%", "\n\n# %%", "without an ### END SOLUTION"),
    "no begin": ("    ### BEGIN SOLUTION\n    # a", "    # a", "without a ### BEGIN SOLUTION"),
    "nested": (
        "    # a comment",
        "    ### BEGIN SOLUTION\n    # a comment",
        "inside the solution of line",
    ),
    "empty": ("    return 2 * x\n", "", "an empty solution"),
    "not alone": ("### BEGIN SOLUTION\n    # a", "x ### BEGIN SOLUTION\n    # a", "stand alone"),
    "in prose": ("## Two exercises", "### BEGIN SOLUTION", "marker in prose"),
    "tag": ("nbval-ignore-output", "nbval-skipp", "unknown tag 'nbval-skipp'"),
    "syntax": ("return 2 * x", "return 2 *", "no Python"),
    "claim of nothing": (
        'print(helper())\n\n# %% tags=["nbval-ignore-output"]\n',
        'x\n\n# %% tags=["claim"]\n',
        "made of assertions",
    ),
    "no alt text": ("![a red square]", "![]", "no alt text"),
    "no picture": ("square.png", "circle.png", "does not exist"),
    "leak": ("    ### BEGIN SOLUTION\n    # a", "    # a", "without a"),
    "text first": ("# %% [markdown]\n# # 00", "x = 1\n# %% [markdown]\n# # 00", "first cell"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_source_is_named_with_file_and_line(toy, name):
    old, new, text = MISTAKES[name]
    source = toy.read_text()
    assert old in source
    toy.write_text(source.replace(old, new, 1))
    with pytest.raises(ChapterError) as error:
        Chapter(toy)
    assert text in str(error.value)
    path, line, _ = str(error.value).split(":", 2)
    assert path == str(toy)
    changed = len(source[: source.index(old)].splitlines()) + 1
    assert abs(int(line) - changed) <= 4


def test_an_exercise_without_a_marked_solution_would_leak(toy):
    source = toy.read_text()
    for marker in ("    ### BEGIN SOLUTION\n", "    ### END SOLUTION\n"):
        source = source.replace(marker, "", 1)
    toy.write_text(source)
    Chapter(toy)
    with pytest.raises(ChapterError, match="twice is an exercise, but no ### BEGIN SOLUTION"):
        Chapter(toy, worth(discover("tests.toy.exercises")))


def build(*arguments, cwd=ROOT):
    return subprocess.run(
        [sys.executable, "-m", "tools.notebooks", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=100,
    )


@pytest.mark.exhaustive
def test_one_command_builds_both_editions(toy, tmp_path):
    out = tmp_path / "notebooks"
    # the toy's exercises are none of the course's, which the cells for points would ask for
    done = build("--solutions", toy.parent, "--notebooks", out)
    assert done.returncode == 0, done.stderr
    student = json.loads((out / "00_toy.ipynb").read_text())
    assert all(not cell.get("outputs") for cell in student["cells"])
    solved = json.loads(toy.with_suffix(".ipynb").read_text())
    outputs = [output for cell in solved["cells"] for output in cell.get("outputs", ())]
    assert [output["text"] for output in outputs] == [["given to students as it is\n"]] * 3
    assert solved["metadata"] == student["metadata"]


@pytest.mark.exhaustive
def test_a_failing_cell_stops_the_build(toy, tmp_path, capsys):
    toy.write_text(toy.read_text().replace("print(helper())", "print(helpers())", 1))
    options = ["--solutions", str(toy.parent), "--notebooks", str(tmp_path / "notebooks")]
    assert notebooks.main(options) == 1
    assert "name 'helpers' is not defined" in capsys.readouterr().err


def test_a_chapter_that_does_not_exist(capsys):
    assert notebooks.main(["77"]) == 2
    assert "no chapter 77" in capsys.readouterr().err


# Our own course. ------------------------------------------------------------------

CHAPTERS = sorted(path.stem for path in notebooks.sources(ROOT / "solutions"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_stored_editions_are_built_from_the_source(name):
    chapter = Chapter(ROOT / "solutions" / f"{name}.py", worth(catalogue()))
    student = (ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    assert student == to_text(chapter.student_edition()), "run make notebooks"
    stored = nbformat.read(ROOT / "solutions" / f"{name}.ipynb", as_version=4)
    for kept, made in zip(stored.cells, chapter.solved_edition().cells, strict=True):
        marks = [cell.metadata.get("nbgrader") for cell in (kept, made)]
        assert (kept.id, kept.source) == (made.id, made.source), "run make notebooks"
        assert marks[0] == marks[1], "run make notebooks"


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_has_what_every_chapter_has(name):
    text = (ROOT / "solutions" / f"{name}.py").read_text(encoding="utf-8")
    for part in ("**You will learn**", "**Time:**", "## Summary", "### Check yourself"):
        assert part in text
    assert text.count("<details>") >= 2


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_prediction_is_made_by_clicking_on_one_of_a_few_outcomes(name):
    chapter = Chapter(ROOT / "solutions" / f"{name}.py").student_edition()
    places = []  # of the right outcomes
    for cell in chapter.cells:
        assert 'predict("")' not in cell.source, "a text to fill in is judged by nobody"
        for asked in cell.source.split("**Predict")[1:]:
            paragraph, *outcomes = re.split(r"\n\n(?=<details>)", asked)
            assert "\n\n" not in paragraph, f"no outcomes right after {paragraph!r}"
            judged = [re.search(r"</summary>\n\n(Yes|No)\b", each) for each in outcomes]
            assert all(judged), f"an outcome of {paragraph!r} says neither Yes nor No"
            verdicts = [each[1] for each in judged]
            assert 2 <= len(verdicts) <= 4, paragraph
            assert verdicts.count("Yes") == 1, paragraph
            places.append(verdicts.index("Yes"))
    assert places, "no prediction"
    assert len(places) < 3 or len(set(places)) > 1, "the right outcome is always in one place"


def bound(node):
    """The names that a statement binds in the notebook, and not in a scope of its own."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    own = ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp
    if not isinstance(node, (*own, ast.GeneratorExp)):
        for child in ast.iter_child_nodes(node):
            yield from bound(child)


@pytest.mark.parametrize("name", CHAPTERS[:3])
def test_a_variable_that_a_beginner_forgets_is_not_found_in_the_notebook(name):
    """An answer that never asks for its rank fails, and does not run on with a loop's last one."""
    chapter = Chapter(ROOT / "solutions" / f"{name}.py", worth(catalogue()))
    usual = {"rank", "n", "world_size", "size", "x", "y", "left", "right", "step", "model"}
    for cell in chapter.solved_edition().cells:
        if cell.cell_type == "code":
            names = {name for node in ast.parse(cell.source).body for name in bound(node)}
            assert not names & usual, cell.source


def test_cells_for_nbgrader_are_folded():
    cells = (
        Chapter(ROOT / "solutions" / f"{CHAPTERS[0]}.py", worth(catalogue()))
        .student_edition()
        .cells
    )
    (heading,) = [
        at for at, cell in enumerate(cells) if cell.metadata.get("jp-MarkdownHeadingCollapsed")
    ]
    graded = [cell.metadata.get("nbgrader", {}).get("grade", False) for cell in cells]
    # JupyterLab hides what follows a heading up to the next one of its level
    assert graded == [False] * (heading + 1) + [True] * (len(cells) - heading - 1)
    assert any(graded)


def test_every_exercise_is_in_the_chapter_that_declares_it():
    for name, exercise in catalogue().items():
        tree = ast.parse((ROOT / "solutions" / f"{exercise.chapter}.py").read_text())
        texts = [node for node in tree.body if isinstance(node, ast.Assign)]
        assert name in {
            *(getattr(node, "name", None) for node in tree.body),
            *(ast.unparse(target) for node in texts for target in node.targets),
        }


def test_every_picture_is_drawn_by_code_and_used_with_alt_text():
    stored = {path.name for path in (ROOT / "imgs").iterdir()}
    drawn = {f"{name}.png" for name in pictures.PICTURES}
    assert stored == drawn | {f"{name}.svg" for name in pictures.MOVING}
    prose = "".join(path.read_text() for path in (ROOT / "solutions").glob("*.py"))
    assert {name for name in stored if f"imgs/{name}" in prose} == stored


#: The names of pictures by the module that draws them, one for each chapter.
DRAWN = {
    module.rpartition(".")[2]: list(names)
    for module, names in groupby(pictures.PICTURES, lambda name: pictures.PICTURES[name].__module__)
}


@pytest.mark.parametrize("chapter", DRAWN)
@pytest.mark.exhaustive
def test_a_picture_can_be_drawn_again_and_is_the_stored_one(chapter, tmp_path, subtests):
    import matplotlib.image
    import numpy as np

    for name in DRAWN[chapter]:
        with subtests.test(name):
            assert pictures.main([name, "--to", str(tmp_path)]) == 0
            drawn = matplotlib.image.imread(tmp_path / f"{name}.png")
            stored = matplotlib.image.imread(ROOT / "imgs" / f"{name}.png")
            assert drawn.shape == stored.shape, "run make imgs"
            # fonts are rendered a little differently from version to version
            assert np.abs(drawn - stored).mean() < 0.01, "run make imgs"
            # a card on any page: round corners that let the page through, and an opaque ground
            opaque = drawn[..., 3]
            assert [opaque[y, x] for y in (0, -1) for x in (0, -1)] == [0] * 4
            assert (opaque == 1).mean() > 0.99
            assert tuple(np.rint(255 * drawn[8, 40, :3])) == GROUND


def test_the_same_picture_is_drawn_with_the_same_bytes(tmp_path):
    for run in ("one", "two"):
        assert pictures.main(["broadcast", "--to", str(tmp_path / run)]) == 0
    one, two = ((tmp_path / run / "broadcast.png").read_bytes() for run in ("one", "two"))
    assert one == two


@pytest.mark.parametrize("name", pictures.MOVING)
def test_a_picture_that_moves_needs_nothing_from_the_page(name, tmp_path):
    """It is shown as an ``img``: no script, no font and no file of another place reach it."""
    assert pictures.main([name, "--to", str(tmp_path)]) == 0
    drawn = (tmp_path / f"{name}.svg").read_bytes()
    assert drawn == (ROOT / "imgs" / f"{name}.svg").read_bytes(), "run make imgs"
    assert len(drawn) < 60_000
    root = ElementTree.fromstring(drawn)
    names = {one.attrib["id"] for one in root.iter() if "id" in one.attrib}
    shown = {one.attrib["href"] for one in root.iter() if "href" in one.attrib}
    assert shown <= {f"#{name}" for name in names}
    assert not re.search(rb"<script|@import|@font-face|url\((?!#)", drawn)
    for feature in (b"(prefers-color-scheme:dark)", b"(prefers-reduced-motion:no-preference)"):
        assert feature in drawn


def test_every_packet_of_the_moving_ring_ends_as_the_sum_on_its_last_rank():
    svg = pictures.MOVING["ring_all_reduce"]()
    for chunk in "1234":
        texts = re.findall(rf">({chunk}[{chunk}0]*)</text>", svg)
        # four ranks begin with it, and three hops add up to the sum of all
        assert len(texts) == 4 + 3
        assert {chunk, chunk + "0", chunk + "00", chunk + "000", 4 * chunk} <= set(texts)


def test_links_between_chapters_lead_somewhere():
    for path in (ROOT / "solutions").glob("*.py"):
        for target in re.findall(r"\]\(([^):]+\.ipynb)\)", path.read_text()):
            assert (ROOT / "notebooks" / target).is_file(), f"{path.name} links to {target}"
            assert (ROOT / "solutions" / target).is_file(), f"{path.name} links to {target}"


@pytest.mark.parametrize("failing", ["code", "notebooks"])
@pytest.mark.exhaustive
def test_a_failure_of_the_code_or_of_a_notebook_fails_all(tmp_path, monkeypatch, capfd, failing):
    for name in ("code", "notebooks"):
        text = f"def test_{name}():\n    assert {name != failing}\n"
        (tmp_path / f"test_{name}.py").write_text(text)
    paths = [str(tmp_path / "test_notebooks.py")]
    quiet = ("-q", "-p", "no:cacheprovider")
    monkeypatch.setattr(tests, "CODE", (*quiet, str(tmp_path / "test_code.py")))
    monkeypatch.setattr(tests, "NOTEBOOKS", {"solutions": ()})
    monkeypatch.setattr(tests, "notebooks", lambda *_: paths)
    assert tests.main([]) == 1
    said = capfd.readouterr().out
    assert "1 failed" in said
    assert "1 passed" in said
    assert f"\n{paths[0]}\n" in said


@pytest.mark.exhaustive
def test_what_has_failed_is_printed_before_the_next_test_ends(tmp_path):
    """On two workers, the second of which waits until the failure can be read."""
    log = tmp_path / "log"
    (tmp_path / "test_two.py").write_text(
        "import time\nfrom pathlib import Path\n"
        "def test_first():\n    assert 'what came' == 'what should'\n"
        "def test_second():\n"
        f"    while 'test_first\\n' not in (said := Path({str(log)!r}).read_text()):\n"
        "        time.sleep(0.01)\n"
        "    assert 'what came' in said and 'FAILURES' not in said\n"
    )
    options = ["-n", "2", "--timeout", "60", "-p", "no:cacheprovider", "-p", "tools.tests"]
    # this test may run in a worker itself, which prints nothing
    variables = {name: it for name, it in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=ROOT, stdout=output, env=variables)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in log.read_text()


def test_notebooks_that_have_changed_run_and_a_few_others(tmp_path):
    folder = tmp_path / "solutions"
    folder.mkdir()
    for name in ("00_ranks", "05_all_gather", "06_reduce_scatter"):
        (folder / f"{name}.py").touch()
        (folder / f"{name}.ipynb").touch()
    (folder / "06_reduce_scatter.ipynb").write_text('{"cell_type": "code"}')
    assert tests.notebooks(tmp_path) == [
        "solutions/06_reduce_scatter.ipynb",  # the longest
        "solutions/00_ranks.ipynb",
        "solutions/05_all_gather.ipynb",
    ]
    for words in (["init", "-b", "main"], ["add", "."], ["commit", "-m", "first"]):
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)
    assert tests.notebooks(tmp_path) == ["solutions/00_ranks.ipynb"]
    (folder / "05_all_gather.py").write_text("x = 1\n")
    assert tests.notebooks(tmp_path) == [
        "solutions/00_ranks.ipynb",
        "solutions/05_all_gather.ipynb",
    ]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_all_gather.ipynb").touch()
    own = tests.notebooks(tmp_path, "notebooks", tests.BASES_OF_CI)
    assert own == ["notebooks/05_all_gather.ipynb"]
    for number in range(20, 32):  # a part of those that have changed, if they are many
        (tmp_path / "notebooks" / f"{number}_new.ipynb").touch()
    own = tests.notebooks(tmp_path, "notebooks", tests.BASES_OF_CI)
    assert 4 <= len(own) <= 7
