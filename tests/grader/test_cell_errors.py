"""What a notebook says the day after, when its kernel knows nothing of the cells above."""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat
import pytest

from tests.grader.test_kernel import Kernel
from tests.kernels import start_kernel

ROOT = Path(__file__).resolve().parents[2]

#: One worker has the kernel.
pytestmark = pytest.mark.xdist_group("cell_errors")

STUB = "def broadcast(x: torch.Tensor, src: int) -> None:\n    raise NotImplementedError"
USE = "print(works)"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """A kernel that JupyterLab has started for a notebook, with the grader and no cell run."""
    cells = [
        nbformat.v4.new_markdown_cell("# 02 · Broadcast"),
        nbformat.v4.new_code_cell("%matplotlib inline\nimport torch\n\nfrom grader import check"),
        nbformat.v4.new_markdown_cell("## Does it work?"),
        nbformat.v4.new_code_cell("works, why = bool(check(broadcast)), ''\nlater = 1"),
        nbformat.v4.new_code_cell(STUB),
        nbformat.v4.new_code_cell(USE),
        nbformat.v4.new_code_cell("def later_on():\n    inner = 1\n    return inner"),
    ]
    path = tmp_path_factory.mktemp("notebooks") / "02_broadcast.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    environment = {**os.environ, "JPY_SESSION_NAME": str(path), "PYTHONPATH": str(ROOT)}
    manager, client = start_kernel(env=environment)
    found = Kernel(manager, client)
    assert found.execute("import grader.api")["error"] is None
    yield found
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            STUB,
            "NameError: name 'torch' is not defined. Run the first code cell, which has"
            " `import torch`; then run this one again.",
        ),
        (
            USE,
            "NameError: name 'works' is not defined. Run the cell under \"Does it work?\", which"
            " has `works, why = bool(check(broadcast)), ''`; then run this one again.",
        ),
    ],
)
def test_the_cell_that_defines_a_missing_name_is_named_in_one_line(kernel, code, said):
    found = kernel.execute(code)
    assert found["error"]["traceback"] == [said]
    assert found["stream"] == ""


DEFINED = """
import torch
import torch.distributed as dist
def who_am_i():
    return dist.get_rank(), dist.get_world_size()
def swap(x, peer):
    dist.send(x, peer)
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("who_am_i()", "The notebook is not a rank: try `run(who_am_i, 4)`."),
        ("swap(torch.ones(1), 0)", "The notebook is not a rank: try `run(swap, 4, x, peer)`."),
        (
            "dist.get_rank()",
            "The notebook is not a rank: put this into a function, and try `run(function, 4)`.",
        ),
        ("run(4, who_am_i)", "RequestError: the function comes first: write run(who_am_i, 4)"),
        (
            "run(who_am_i)",
            "RequestError: run: missing a required argument: 'world_size'; write run(who_am_i, 4)",
        ),
        (
            "check('who_am_i')",
            "RequestError: check takes the function itself, not its name: write check(who_am_i)",
        ),
        ("progress(0)", "RequestError: progress: too many positional arguments; write progress()"),
    ],
)
def test_a_first_call_that_cannot_be_is_answered_with_one_that_can(kernel, code, said):
    names = "check, progress, run"
    found = kernel.execute(f"from grader import {names}\n{DEFINED}\n{code}")
    assert found["error"]["traceback"] == [said]


def test_names_of_ours_are_there_once_the_extension_is_loaded(kernel):
    kernel.execute("del check, progress, run")
    (said,) = kernel.execute("replay")["error"]["traceback"]
    assert said.endswith("Run `from grader import replay`; then run this cell again.")
    line = "reset = 3\n%load_ext grader\n"
    names = "check, hint, predict, progress, replay, run, simulate, timeline"
    found = kernel.execute(f"{line}print(reset, *(one.__name__ for one in ({names})), sep=', ')")
    assert found["stream"].strip() == f"3, {names}"
    kernel.execute("%reset -f")


@pytest.mark.parametrize(
    "code",
    [
        "never_defined",
        "inner",  # a function's own
        "def f():\n    x\n    x = 1\n\nf()",  # of a kind of its own
        "import json.decoder as d\nd.__dict__['f'] = eval('lambda: later', d.__dict__)\nd.f()",
    ],
)
def test_any_other_name_stays_pythons_own_error(kernel, code):
    error = kernel.execute(code)["error"]
    assert error["ename"] in ("NameError", "UnboundLocalError")
    assert len(error["traceback"]) > 1
    assert "then run this one again" not in json.dumps(error)
