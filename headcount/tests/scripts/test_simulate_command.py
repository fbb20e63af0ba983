"""``headcount simulate``: a file's function, its arguments, and the exit status."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headcount.cli import main

RING = """
import torch
import torch.distributed as dist

def ring(text, size):
    here, of = dist.get_rank(), dist.get_world_size()
    got = torch.empty(size)
    sent = dist.isend(torch.ones(size), (here + 1) % of)
    dist.recv(got, (here - 1) % of)
    sent.wait()
    if here == 0:
        print(text, int(got.sum()))

def all_receive():
    dist.recv(torch.empty(1), (dist.get_rank() + 1) % dist.get_world_size())
"""


def simulated(folder, *words):
    """Run the command on the file, whose name is that of a module of Python's own."""
    (folder / "json.py").write_text(RING)
    return subprocess.run(
        [sys.executable, "-m", "headcount", "simulate", "json.py", *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_arguments_are_values_of_python_or_else_texts(tmp_path):
    done = simulated(tmp_path, "ring", "hello", "25", "--ranks", "100", "--beta", "1e-9")
    assert (done.returncode, done.stderr) == (0, "")
    printed, said = done.stdout.splitlines()
    assert printed.endswith("hello 25")
    # α + 100 bytes · β, and all ranks send at once
    assert said == "100 simulated ranks: 1.1 µs, 100 messages, 10 kB"


@pytest.mark.parametrize("words", [["foo"], ["run", "--ranks", "0", "a.py"], ["simulate"]])
def test_a_wrong_request_is_refused_in_one_line_that_says_where_to_look(words, capsys):
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("headcount: ")
    assert line.endswith(" --help)")


def test_a_hang_is_said_on_standard_error_and_by_the_status(tmp_path):
    done = simulated(tmp_path, "all_receive", "--ranks", "3")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("✗ deadlock: ")
    assert "rank 0 waits to receive from rank 1" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.py", None, "none.py does not exist"),
        ("code.txt", "", "code.txt is no .py file"),
        ("bad.py", "def f(:", "bad.py cannot be imported: SyntaxError: invalid syntax"),
        ("ends.py", "import sys; sys.exit(0)", "ends.py cannot be imported: SystemExit: 0"),
        ("other.py", "f = 3", "other.py defines no function f"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(
    tmp_path, monkeypatch, capsys, name, text, said
):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["simulate", name, "f", "--ranks", "2"]) == 2
    sys.modules.pop(name.partition(".")[0], None)  # another test may have a module of this name
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"headcount: {said}")
    assert err.count("\n") == 1
