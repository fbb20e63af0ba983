"""``make gpu``, as far as a machine without a GPU can show it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tools import gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, and it would be used")
def test_without_a_gpu_it_says_so_in_one_line_and_writes_nothing(tmp_path, capsys):
    assert gpu.main([], folder=tmp_path / "recorded") == 0
    assert capsys.readouterr().out == "no GPU here: nothing was run, and nothing recorded\n"
    assert not (tmp_path / "recorded").exists()


def test_what_came_of_every_step_is_written_down(tmp_path, capsys):
    """Steps that pass and fail; the name of the device becomes that of the page."""
    says = "import sys; print('\\n'.join(map(str, range(100)))); sys.exit({})"
    steps = [
        gpu.Step("Good", (sys.executable, "-c", says.format(0))),
        gpu.Step("Bad", (sys.executable, "-c", says.format(3))),
    ]
    status = gpu.main([], lambda: ("NVIDIA H100 80GB HBM3", 2), lambda gpus: steps, tmp_path)
    assert status == 1
    text = (tmp_path / "nvidia-h100-80gb-hbm3.md").read_text()
    assert text.startswith("# NVIDIA H100 80GB HBM3\n\nRecorded by `make gpu` on 20")
    assert f"- torch: {torch.__version__}\n" in text
    assert "| Good | passed | 0 |\n| Bad | failed, with status 3 | 0 |\n" in text
    assert text.count("… 40 lines\n40\n") == 2  # the last sixty of a hundred
    assert "Bad ... failed, with status 3, 0 s\n" in capsys.readouterr().out


def test_a_step_that_takes_too_long_is_stopped_and_said_to_be(monkeypatch):
    monkeypatch.setattr(gpu, "PATIENCE", 0.5)
    code = "import threading; print('begun', flush=True); threading.Event().wait()"
    result = gpu.run(gpu.Step("Slow", (sys.executable, "-c", code)))
    assert (result.status, result.ended) == (None, "stopped after 0.5 s")


@pytest.mark.exhaustive
def test_every_step_is_a_command_that_exists():
    """Each is asked for its help or its tests, which needs no GPU."""
    for step in gpu.steps(2):
        command = [*step.command]
        if "pytest" in command:
            for name in (word for word in command if word.endswith((".py", ".ipynb"))):
                assert (ROOT / name).is_file(), name
            continue
        if "torch.distributed.run" in command:
            command = [sys.executable, *command[command.index("-m", 2) :]]
        done = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), step.title
