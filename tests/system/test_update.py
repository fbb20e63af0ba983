"""``make update``: a clone of the course gets a newer edition, and keeps the learner's answers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools.chapter import Chapter, to_text
from tools.update import UpdateError, update

FIRST = '''\
# %% [markdown]
# # 02 · Numbers
#
# An introduction.

# %%
import math

# %% [markdown]
# ## Exercise: double

# %%
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% [markdown]
# ## Exercise: half

# %%
def half(x):
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION

# %% [markdown]
# The end.
'''

#: Prose, the first cell, and what is asked for in `half` are others, and an exercise is new.
SECOND = (
    FIRST.replace("An introduction.", "A better introduction.")
    .replace("import math", "import math\nimport sys")
    .replace("def half(x):", "def half(x, rounded=False):")
    .replace(
        "# %% [markdown]\n# The end.",
        "# %%\ndef third(x):\n    ### BEGIN SOLUTION\n    return x / 3\n    ### END SOLUTION\n\n"
        "# %% [markdown]\n# The end.",
    )
)

PATH = "notebooks/02_numbers.ipynb"
DOUBLE, HALF = "def double(x):\n    return x + x", "def half(x):\n    return x * 0.5"


@pytest.fixture(autouse=True)
def _nobodys_git(monkeypatch):
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@localhost")


def git(folder, *words):
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def publish(course: Path, source: str, **files: str) -> None:
    """Commit an edition of the course: a chapter, and files by name."""
    for name, text in {"02_numbers.py": source, **files}.items():
        (course / name).write_text(text)
    chapter = Chapter(course / "02_numbers.py", {"double": 1.0, "half": 1.0, "third": 1.0})
    (course / "notebooks").mkdir(exist_ok=True)
    (course / PATH).write_text(to_text(chapter.student_edition()))
    git(course, "add", "-A")
    git(course, "commit", "-q", "-m", "An edition")


@pytest.fixture
def course(tmp_path):
    """The published course."""
    found = tmp_path / "published"
    found.mkdir()
    git(found, "init", "-q", "-b", "main")
    publish(found, FIRST, README="One.\n")
    return found


@pytest.fixture
def clone(course, tmp_path):
    """A learner's clone."""
    git(tmp_path, "clone", "-q", str(course), "mine")
    return tmp_path / "mine"


def sources(notebook: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"]]


def write(clone: Path, texts: dict[str, str], *own: tuple[str, str]) -> bytes:
    """Write as JupyterLab does: cells by what they hold, and own ones below others."""
    notebook = json.loads((clone / PATH).read_text())
    notebook["metadata"]["language_info"]["version"] = "3.11.2"
    cells = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        for part, text in texts.items():
            if part in source:
                cell["source"], cell["execution_count"] = text.splitlines(keepends=True), 7
        cells.append(cell)
        for below, text in own:
            if below in source:
                mine = {"cell_type": "code", "id": "mine", "metadata": {}, "outputs": []}
                cells.append({**mine, "execution_count": None, "source": text})
    notebook["cells"] = cells
    (clone / PATH).write_text(json.dumps(notebook, indent=1))
    return (clone / PATH).read_bytes()


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_answers_and_own_cells_are_carried_into_the_new_edition(course, clone):
    mine = write(
        clone,
        {"def double": DOUBLE, "def half": HALF, "import math": "import math\nimport time"},
        ("def double", "double(4)"),
    )
    publish(course, SECOND, README="Two.\n")
    said = update(clone)
    assert git(clone, "rev-parse", "HEAD") == git(course, "rev-parse", "HEAD")
    assert (clone / "README").read_text() == "Two.\n"
    fresh = sources(course / PATH)
    expected = []
    for text in fresh:
        name = next((name for name in ("double", "half") if f"def {name}(" in text), "")
        expected.append({"double": DOUBLE, "half": HALF}.get(name, text))
        if name == "double":
            expected.append("double(4)")
    assert sources(clone / PATH) == expected
    assert "A better introduction." in expected[0]
    ids = [cell["id"] for cell in json.loads((clone / PATH).read_text())["cells"]]
    assert len(set(ids)) == len(ids)
    old = clone / "notebooks/02_numbers.old.ipynb"
    assert old.read_bytes() == mine
    lines = said.splitlines()
    assert "  02 · Numbers: double, half" in lines
    assert "  02 · Numbers: half" in lines  # whose stub has changed
    assert "  notebooks/02_numbers.old.ipynb: the cell with `import math`" in lines
    assert len(lines) < 24
    # once more, there is nothing to do
    before = contents(clone)
    assert "is the newest edition" in update(clone)
    assert contents(clone) == before


def test_what_the_new_edition_leaves_alone_is_left_alone(course, clone):
    mine = write(clone, {"def double": DOUBLE})
    publish(course, FIRST, README="Two.\n")
    update(clone)
    assert (clone / PATH).read_bytes() == mine
    assert (clone / "README").read_text() == "Two.\n"
    assert not list(clone.rglob("*.old*"))


def test_a_chapter_that_was_only_opened_leaves_no_old_file(course, clone):
    write(clone, {})
    publish(course, SECOND)
    update(clone)
    assert (clone / PATH).read_bytes() == (course / PATH).read_bytes()
    assert not list(clone.rglob("*.old*"))


def test_other_files_and_what_is_no_notebook_are_kept_beside(course, clone):
    (clone / PATH).write_text("{ cut off")
    (clone / "README").write_text("My notes.\n")
    (clone / "NEWS").write_text("In the way.\n")
    (clone / "notebooks/02_numbers.old.ipynb").write_text("of an earlier update")
    publish(course, SECOND, README="Two.\n", NEWS="News.\n")
    said = update(clone)
    assert (clone / PATH).read_bytes() == (course / PATH).read_bytes()
    found = contents(clone)
    assert found["README.old"] == b"My notes.\n"
    assert found["NEWS.old"] == b"In the way.\n"
    assert found["notebooks/02_numbers.old.ipynb"] == b"of an earlier update"
    assert found["notebooks/02_numbers.old2.ipynb"] == b"{ cut off"
    assert "02_numbers.old2.ipynb: it is no notebook" in said
    assert "README.old: what you changed" in said


def test_a_cell_that_was_deleted_stays_away_and_lost_ids_are_no_loss(course, clone):
    write(clone, {"def double": DOUBLE}, ("def double", "double(4)"))
    notebook = json.loads((clone / PATH).read_text())
    notebook["cells"] = [c for c in notebook["cells"] if "The end." not in "".join(c["source"])]
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"other-{number}"  # as a front end that knows no ids saves them
    (clone / PATH).write_text(json.dumps(notebook))
    publish(course, SECOND)
    update(clone)
    found = sources(clone / PATH)
    assert found.count(DOUBLE) == found.count("double(4)") == 1
    assert found.index("double(4)") == found.index(DOUBLE) + 1
    assert not [text for text in found if "The end." in text or '"""Twice x."""' in text]
    assert any("def third" in text for text in found)


def test_where_git_refuses_everything_is_as_it_was(course, clone):
    write(clone, {"def double": DOUBLE})
    (clone / "NEWS").mkdir()
    (clone / "NEWS" / "mine").write_text("A folder where a file is to be.\n")
    publish(course, SECOND, NEWS="News.\n")
    before = contents(clone)
    with pytest.raises(UpdateError, match="Nothing is changed"):
        update(clone)
    assert contents(clone) == before


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (
            ["commit", "-q", "-a", "--allow-empty", "-m", "Mine"],
            r"commits that origin/main has not \(1\)",
        ),
        (["branch", "--unset-upstream"], "git branch --set-upstream-to=origin/main"),
        (["remote", "set-url", "origin", "/nowhere"], "cannot be fetched: "),
    ],
)
def test_what_cannot_be_done_is_said_with_the_mend(course, clone, prepare, said):
    write(clone, {"def double": DOUBLE})
    git(clone, *prepare)
    publish(course, SECOND)
    before = contents(clone)
    with pytest.raises(UpdateError, match=said):
        update(clone)
    assert contents(clone) == before


def test_a_folder_that_is_no_clone(tmp_path):
    with pytest.raises(UpdateError, match="is no clone"):
        update(tmp_path)
