"""Answers that are C++ source: what is compiled where, what is said of it, and who can see it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from grader.api import check, points
from grader.cli.main import main
from grader.errors import DeclarationError
from grader.exercise.cases import Kind
from grader.exercise.verdict import Status
from grader.judge.judge import Judge, Settings
from grader.sandbox import cpp_build
from grader.sandbox.sandboxes import compiling_command, cpp_builder, missing, new_sandbox
from grader.submission.submission import Submission
from headcount.core.errors import RequestError
from headcount.core.program import is_stub
from headcount.core.resource_limits import DEFAULTS
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from tests import declarations

KIND = Kind(torch.float32, (3,))

needs_compiler = pytest.mark.skipif(bool(cpp_build.missing()), reason=cpp_build.missing())
needs_sandbox = pytest.mark.skipif(bool(missing()), reason=missing())

TWICE = "\ntorch::Tensor twice(const torch::Tensor& x) { return x * 2; }\n"


def declare(**changes):
    fields = {
        "signature": "TWICE_CPP: str",
        "compiled": "twice(x: Tensor) -> Tensor",
        "summary": "x doubled",
        "inputs": lambda draw: [draw.case("a", x=draw.per_rank(KIND))],
        "expected": lambda c: [2 * x for x in c.x],
        "world_sizes": (1, 2),
        "hints": ("first",),
    }
    return declarations.declare(**{**fields, **changes})


def judge(text, exercise=None, launcher=None):
    exercise = exercise or declare()
    submission = Submission.from_function(text, exercise.name)
    launcher = launcher or default_launcher()
    return Judge(launcher, Settings(1)).judge(exercise, submission)


# Declarations. --------------------------------------------------------------------


def test_a_text_is_named_by_its_signature_and_called_by_its_function():
    exercise = declare()
    assert (exercise.name, exercise.function) == ("TWICE_CPP", "twice")
    assert exercise.parameters == ("x",)


@pytest.mark.parametrize("changes", [{"compiled": ""}, {"signature": "twice(x: Tensor)"}])
def test_a_text_needs_its_function_and_nothing_else_has_one(changes):
    with pytest.raises(DeclarationError, match="a text needs the function"):
        declare(**changes)


def test_parameters_by_name_only_are_read_and_need_an_adapter():
    signature = "f(fn, *args, warmup: int, iterations: int) -> float"
    exercise = declare(signature=signature, compiled="")
    assert exercise.parameters == ("fn", "args", "warmup", "iterations")
    with pytest.raises(DeclarationError, match="an adapter must make a call"):
        exercise.cases(1, 1)


# Answers that need no compiler. ---------------------------------------------------

STUBS = (
    "",
    "\n \n",
    "// later",
    "/* int\n main() */",
    "#include <torch/extension.h>\n\n// Your code here.\nraise NotImplementedError\n",
)


@pytest.mark.parametrize("text", STUBS)
def test_a_text_without_code_is_not_attempted(text):
    assert is_stub(text)
    verdict = judge(text)
    assert verdict.diagnosis is Diagnosis.NOT_ATTEMPTED
    assert (verdict.score, verdict.hint) == (0.0, "first")


@pytest.mark.parametrize("value", [3, None, b"int x;", torch.add])
def test_what_is_no_text_is_of_the_wrong_type(value):
    verdict = judge(value)
    assert verdict.diagnosis is Diagnosis.WRONG_TYPE
    assert "a str that holds C++ source is needed" in verdict.message


def test_without_a_compiler_it_is_skipped_and_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    verdict = judge(TWICE)
    assert verdict.status is Status.SKIPPED
    assert "no C++ compiler; to install one" in verdict.message
    assert judge("// later").diagnosis is Diagnosis.NOT_ATTEMPTED


def test_a_text_is_checked_by_its_name(capsys):
    checked = check(VECTOR_ADD_CPP="// later")
    assert checked.verdict.name == "VECTOR_ADD_CPP"
    assert checked.verdict.diagnosis is Diagnosis.NOT_ATTEMPTED
    assert float(points(VECTOR_ADD_CPP="")) == 0.0
    with pytest.raises(RequestError, match=r"check\(VECTOR_ADD_CPP=VECTOR_ADD_CPP\)"):
        check("torch::Tensor vector_add()")
    with pytest.raises(RequestError, match="one answer at a time"):
        check(print, VECTOR_ADD_CPP="")


FILES = {
    "answers.py": 'VECTOR_ADD_CPP: str = """\n// later\n"""\n',
    "answers.ipynb": json.dumps(
        {
            "nbformat": 4, "nbformat_minor": 5, "metadata": {},
            "cells": [{
                "cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
                "source": 'VECTOR_ADD_CPP = """ """\n\ncheck(VECTOR_ADD_CPP=VECTOR_ADD_CPP)',
            }],
        }
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_defines_a_text(tmp_path, capsys, name):
    (tmp_path / name).write_text(FILES[name])
    main(["check", str(tmp_path / name), "--json"])
    (exercise,) = json.loads(capsys.readouterr().out)["exercises"]
    assert (exercise["name"], exercise["diagnosis"]) == ("VECTOR_ADD_CPP", "not_attempted")


# Answers that are compiled. -------------------------------------------------------


@pytest.mark.slow
@needs_compiler
@pytest.mark.timeout(400)
def test_a_source_is_compiled_once_and_called_on_every_rank():
    verdict = judge(TWICE)
    assert verdict.passed, verdict.message
    assert {case.world_size for case in verdict.cases} == {1, 2}
    maker = cpp_builder(default_launcher())
    source = cpp_build.CppSource("TWICE_CPP", TWICE, "twice", 1)
    assert maker.build(source) is maker.build(source)
    # what is made of the same text for somebody else is another file, in another folder
    with contextlib.closing(cpp_build.CppBuilder()) as other:
        assert other.build(source).library != maker.build(source).library


@pytest.mark.slow
@needs_compiler
@pytest.mark.timeout(400)
@needs_compiler
def test_the_headers_of_an_environment_behind_a_link_are_found_at_the_link(tmp_path):
    """A sandbox shows the environment there, and not where the link leads."""
    (tmp_path / "linked").symlink_to(sys.prefix)
    python = tmp_path / "linked" / "bin" / "python"
    code = "from grader.sandbox import cpp_build; print(*cpp_build._flags())"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    headers = [word for word in done.stdout.split() if word.endswith("/torch/include")]
    assert headers
    assert all(str(tmp_path) in word for word in headers)


def test_the_first_error_is_told_with_its_line_of_the_text():
    verdict = judge("\n\ntorch::Tensor twice(torch::Tensor x) { return x * 2 }\n")
    assert verdict.diagnosis is Diagnosis.SYNTAX_ERROR
    assert "line 3 of the text (torch::Tensor twice" in verdict.message
    assert "expected ';'" in verdict.message
    assert "\n" not in verdict.message


@needs_compiler
def test_a_compiler_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(cpp_build, "DEFAULTS", replace(DEFAULTS, compiling=0.05))
    verdict = judge(TWICE + "// another text")
    assert verdict.diagnosis is Diagnosis.TIMEOUT
    assert "the compiler is not done" in verdict.message


# Headers that are compiled beforehand. --------------------------------------------

IS_GCC = "Free Software Foundation" in (
    subprocess.run(
        [cpp_build.compiler() or "true", "--version"], capture_output=True, text=True, check=False
    ).stdout
)
needs_gcc = pytest.mark.skipif(not IS_GCC, reason="another compiler than GCC")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A cache of its own, and headers that are quickly compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cpp_build, "HEADERS", "inline int beforehand() { return 1; }\n")
    return tmp_path / "cache"


@needs_gcc
def test_headers_are_compiled_when_they_are_asked_for_the_second_time(small):
    assert cpp_build.precompiled() is None
    folder = cpp_build.precompiled()
    assert folder.is_relative_to(small)
    made = folder / "answer.h.gch"
    before = made.stat()
    assert cpp_build.precompiled() == folder
    assert made.stat().st_mtime_ns == before.st_mtime_ns


@needs_gcc
def test_nobody_else_writes_what_answers_are_compiled_with(small):
    before = os.umask(0)
    try:
        folder = [cpp_build.precompiled() for _ in range(2)][1]
    finally:
        os.umask(before)
    paths = (folder.parent, folder, folder / "answer.h", folder / "answer.h.gch")
    assert [path.name for path in paths if path.stat().st_mode & 0o022] == []


@needs_gcc
def test_headers_that_cannot_be_compiled_are_tried_once(small, monkeypatch):
    monkeypatch.setattr(cpp_build, "HEADERS", "#error no\n")
    assert [cpp_build.precompiled() for _ in range(3)] == [None] * 3
    (folder,) = (small / "gather-round").iterdir()
    assert (folder / "failed").exists()


@needs_gcc
def test_a_full_disk_and_a_cache_that_cannot_be_written_cost_nothing(small, monkeypatch):
    monkeypatch.setattr(cpp_build, "ROOM", 1 << 62)
    assert [cpp_build.precompiled() for _ in range(2)] == [None] * 2
    small.with_name("file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(small.with_name("file")))
    assert [cpp_build.precompiled() for _ in range(2)] == [None] * 2


@needs_gcc
@pytest.mark.parametrize("sandboxed", [False, pytest.param(True, marks=needs_sandbox)])
def test_a_source_begins_with_the_precompiled_headers(small, sandboxed):
    """The folder's text is emptied, so that the function can only come from what was compiled."""
    cpp_build.precompiled()
    folder = cpp_build.precompiled()
    header = folder / "answer.h"
    stamp = header.stat()
    header.write_text("\n")
    os.utime(header, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    maker = cpp_build.CppBuilder(sandbox=compiling_command if sandboxed else None)
    with contextlib.closing(maker):
        status, library, said = maker.compile("int answer() { return beforehand(); }\n", folder)
    assert (status, said) == (0, "")
    assert library.startswith(b"\x7fELF")


#: Counts what it can do that it should not: see others' libraries, files and processes.
CURIOUS = r"""
#include <torch/types.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#if __has_include("OUTSIDE")
#error seen by the compiler
#endif

static int64_t libraries() {
  int64_t count = 0;
  DIR* folder = opendir("/built");
  if (!folder) return 0;  // it may only be told the name of its own
  while (dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

torch::Tensor twice(torch::Tensor x) {
  if (fork() >= 0) TORCH_CHECK(false, "BREACH: fork");
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) TORCH_CHECK(false, "BREACH: socket");
  if (open("OUTSIDE", O_RDONLY) >= 0) TORCH_CHECK(false, "BREACH: file");
  if (open("/built/mine", O_CREAT | O_WRONLY, 0600) >= 0) TORCH_CHECK(false, "BREACH: write");
  TORCH_CHECK(libraries() <= 1, "BREACH: there are ", libraries(), " libraries");
  return x * 2;
}
"""


@pytest.mark.slow
@needs_compiler
@needs_sandbox
@pytest.mark.timeout(400)
def test_in_a_sandbox_compiler_and_library_see_nothing_of_others(tmp_path):
    secret = tmp_path / "secret.h"
    secret.write_text("int answer;\n")
    secret.chmod(0o644)
    text = CURIOUS.replace("OUTSIDE", str(secret))
    exercise = declare(world_sizes=(1,))
    with contextlib.closing(new_sandbox()) as first:
        verdict = judge(TWICE, exercise, first)
        assert verdict.passed, verdict.message
    # the first student's library is gone before the second one's sandbox is made
    with contextlib.closing(new_sandbox()) as second:
        verdict = judge(text, exercise, second)
        assert verdict.passed, verdict.message
