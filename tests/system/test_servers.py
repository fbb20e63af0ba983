"""The instructions for other people's machines, as far as they can be followed on this one."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from nbclient import NotebookClient
from packaging.requirements import Requirement

from grader.api import catalogue
from grader.course.answers import FOLDER

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings this one
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    path
    for pages in ("", "docs/", "headcount/", "headcount/docs/")
    for path in ROOT.glob(f"{pages}*.md")
]
SERVERS = (ROOT / "docs" / "servers.md").read_text(encoding="utf-8")

#: What a Colab notebook cannot lack; all else that the grader imports is in the cell.
COLABS_OWN = {"IPython", "numpy", "torch"}
IMPORTED_AS = {"markdown-it-py": "markdown_it", "pillow": "PIL"}

#: What only an instructor's machine needs, and only when it is used.
GRADING = {"pyseccomp"}

#: What chapter 19 can do without.
CHOSEN = {"mpi4py"}


def install_cell():
    """The first cell of a chapter on Colab, as the page has it."""
    (cell,) = re.findall(r"^```python\n(.*?)^```$", SERVERS, flags=re.DOTALL | re.MULTILINE)
    return cell


def requirements(path):
    """The packages that a file of requirements names itself."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    found = (Requirement(line) for line in lines if line and not line.startswith("-"))
    return {requirement.name: requirement.specifier for requirement in found}


def anchors(page):
    """Where a link can lead within a page, by GitHub's rule."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / unquote(path) if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}"


def test_one_address_and_it_leads_to_files():
    """Whoever publishes the course fills it in once, and every link is right."""
    text = (ROOT / "README.md").read_text(encoding="utf-8") + SERVERS
    text = text.replace("{owner}", "ada").replace("{name}", "rounds")
    addresses = re.findall(r"https://github\.com/([\w.-]+/[\w.-]+)", text)
    colab = re.findall(
        r"https://colab\.research\.google\.com/github/([\w.-]+/[\w.-]+)/blob/main/([^\s)]+)", text
    )
    binder = re.findall(
        r"https://mybinder\.org/v2/gh/([\w.-]+/[\w.-]+)/main\?labpath=([^\s)]+)", text
    )
    assert colab
    assert binder
    assert len({*addresses, *(name for name, _ in colab + binder)}) == 1
    for _, path in colab + binder:
        assert (ROOT / unquote(path)).is_file(), path


def test_binder_installs_what_a_learner_does():
    folder = ROOT / ".binder"
    lines = [line for line in (folder / "requirements.txt").read_text().splitlines() if line]
    asked = [line for line in lines if not line.startswith("#")]
    assert asked == [
        "--extra-index-url https://download.pytorch.org/whl/cpu",
        "-r ../requirements.txt",
        "-e ./headcount",
        "-e .",
    ]
    runtime = (folder / "runtime.txt").read_text()
    assert re.fullmatch(r"python-3\.1[0-3]\n", runtime)


def test_requirements_and_pyproject_agree():
    pinned = requirements(ROOT / "requirements.txt")
    projects = [
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        for folder in (ROOT / "headcount", ROOT)
    ]
    course = projects[1]["optional-dependencies"]["course"]
    listed = (*projects[0]["dependencies"], *projects[1]["dependencies"], *course)
    needed = {r.name: r.specifier for r in map(Requirement, listed)}
    # headcount is a folder here, and JupyterLab's kernel is made of ipython
    assert set(needed) - set(pinned) == {"headcount", "ipython"}
    assert set(pinned) <= set(needed)
    for name, specifier in pinned.items():
        lowest = next(iter(re.findall(r"[=>]=([\d.]+)", str(specifier))))
        assert needed[name].contains(lowest), f"{name}: {specifier} and {needed[name]}"


@pytest.mark.exhaustive
def test_the_install_cell_has_all_that_the_grader_imports():
    used = set()
    for path in (*(ROOT / "grader").rglob("*.py"), *(ROOT / "headcount" / "src").rglob("*.py")):
        if "classroom" in path.parts or FOLDER in path.parent.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                used.add(node.module.split(".")[0])
    (names,) = re.findall(r"^%pip install --quiet (\w.*)$", install_cell(), flags=re.MULTILINE)
    given = {IMPORTED_AS.get(name, name) for name in names.split()}
    assert (
        used - set(sys.stdlib_module_names) - {"grader", "headcount"}
        == given | COLABS_OWN | GRADING | CHOSEN
    )


@pytest.fixture
def published(tmp_path):
    """A repository with this course in it, as it stands here."""
    folder = tmp_path / "published" / "gather-round"
    for name in ("grader", "headcount", "notebooks", "imgs"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    names = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "-q"], ["add", "."], [*names, "commit", "-q", "-m", "The course"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


CHAPTER = """
import torch, torch.distributed as dist
import grader
from grader import check, progress, run

def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

def whose_grader():
    import grader
    return grader.__file__

assert check(who_am_i)
print({grader.__file__, *run(whose_grader, 2)})
progress()
"""


@pytest.mark.slow
def test_the_install_cell_in_an_empty_folder(published, tmp_path):
    """In a real kernel; that nothing is fetched from an index shows that it asks for no more."""
    folder = tmp_path / "content"
    folder.mkdir()
    address = re.search(r"https://github\.com/\S+", install_cell()).group()
    cells = [install_cell().replace(address, published.as_uri()), CHAPTER]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    gone = ("GRADER_PROGRESS", "PYTHONPATH")
    environment = {k: v for k, v in os.environ.items() if k not in gone}
    environment.update(PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    client = NotebookClient(
        notebook, timeout=100, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)
    told = "".join(o.get("text", "") for cell in notebook.cells for o in cell.outputs)
    course = folder / "gather-round"
    assert f"{{'{course / 'grader' / '__init__.py'}'}}" in told
    assert "fatal" not in told
    assert "ERROR" not in told
    shown = notebook.cells[1].outputs[-1]["data"]["text/plain"]
    assert shown.endswith(f"1 of {len(catalogue())} exercises passed")
    assert (course / ".grader" / "progress.json").is_file()
