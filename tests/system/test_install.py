"""What gets installed: the lock, what follows it, and a wheel away from the checkout."""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grader.exercise.answers import IS_RIGHT
from headcount.core.private_apis import TESTED
from tools import install, release, versions

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings this one
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = list(itertools.product(("3.10.1", "3.11.1", "3.12.1", "3.13.1"), ("linux", "darwin")))


def required():
    """Every requirement that the project states, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        stated += extra
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    stated += [line for line in lines if line and not line.startswith("#")]
    found = [Requirement(one) for one in stated]
    return [one for one in found if one.name not in ("gather-round", "headcount")]


def place_of(python, platform):
    """What markers ask about a Python, such as 3.12.1, on a platform."""
    return {
        "python_version": python.rpartition(".")[0],
        "python_full_version": python,
        "sys_platform": platform,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[platform],
        "platform_machine": {"linux": "x86_64", "darwin": "arm64"}[platform],
    }


def locked_for(python, platform):
    """The version of each package that the lock has for a Python on a platform."""
    place = place_of(python, platform)
    found = {}
    for line in install.LOCK.read_text().splitlines():
        if line.startswith("#"):
            continue
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate(place):
            assert one.name not in found, f"{one.name} twice for {python} on {platform}"
            found[canonicalize_name(one.name)] = str(one.specifier).removeprefix("==")
    return found


@pytest.mark.parametrize(("python", "system"), PLATFORMS)
def test_the_lock_has_a_version_of_all_that_is_required(python, system):
    locked = locked_for(python, system)
    place = place_of(python, system)
    for one in required():
        if one.marker is not None and not one.marker.evaluate(place):
            continue  # such as what Python 3.11 has itself
        assert one.specifier.contains(locked[canonicalize_name(one.name)]), str(one)


def test_this_environment_is_the_locks():
    """What ``make`` has installed here, from ``requirements.lock`` and nothing else."""
    system = "darwin" if sys.platform == "darwin" else "linux"
    differ = {}
    for name, wanted in locked_for(platform.python_version(), system).items():
        try:
            found = version(name).partition("+")[0]
        except PackageNotFoundError:
            continue  # torch's CUDA libraries, and what its platform does not need
        if found != wanted:
            differ[name] = (found, wanted)
    assert differ == {}, "make clean, then make test"


@pytest.mark.parametrize("uv", [None, "/usr/bin/uv"])
@pytest.mark.parametrize("tools", [False, True])
def test_torch_alone_comes_from_the_index_of_cpu_builds(uv, tools):
    first, *others = install.commands(Path("env"), tools, uv, cpu=True)
    assert first[-3:] == [f"torch=={install.locked('torch')}", "--index-url", install.CPU_INDEX]
    assert others == install.commands(Path("env"), tools, uv, cpu=False)
    assert not any(install.CPU_INDEX in part for command in others for part in command)


@pytest.mark.parametrize("uv", [None, "/usr/bin/uv"])
@pytest.mark.parametrize("tools", [False, True])
def test_every_command_is_held_to_the_lock_and_installs_into_the_environment(uv, tools):
    for command in install.commands(Path("env"), tools, uv, cpu=True):
        assert command[command.index("--constraint") + 1] == str(install.LOCK)
        assert "env/bin/python" in command


# Another torch than the lock's. -----------------------------------------------------------


@pytest.mark.parametrize("uv", [None, "/usr/bin/uv"])
def test_another_torch_comes_with_the_rest_of_the_lock(uv):
    rest, torch, own = install.commands_for_torch(Path("env"), "2.11", uv, cpu=True)
    assert rest[-2:] == ["--requirement", "env/without-torch.txt"]
    assert torch[-3:] == ["torch==2.11.*", "--index-url", install.CPU_INDEX]
    engine = ["--editable", str(ROOT / "headcount")]
    assert own[-5:] == ["--no-deps", *engine, "--editable", str(ROOT)]
    assert install.commands_for_torch(Path("env"), "2.11", uv, cpu=False)[1][-1] == "torch==2.11.*"
    nightly = install.commands_for_torch(Path("env"), "nightly", uv, cpu=False)[1]
    assert nightly[-4:] == ["--pre", "torch", "--index-url", install.NIGHTLY_INDEX]


def test_the_rest_of_the_lock_is_all_but_torch():
    whole = install.LOCK.read_text().splitlines()
    left_out = set(whole) - set(install.without_torch(install.LOCK.read_text()).splitlines())
    names = {Requirement(line).name for line in left_out}
    assert {"torch", "triton", "nvidia-nccl-cu13", "cuda-toolkit"} <= names
    assert not names & {"sympy", "numpy", "jupyterlab", "pytest"}


def test_ci_runs_the_oldest_and_the_newest_torch_that_is_promised_and_a_nightly():
    job = yaml.safe_load((ROOT / ".github/workflows/torch.yml").read_text())["jobs"]["engine"]
    oldest, newest = ("{}.{}".format(*one) for one in TESTED["torch"])
    assert job["strategy"]["matrix"]["version"] == [oldest, newest, "nightly"]
    assert job["continue-on-error"] == "${{ matrix.version == 'nightly' }}"
    assert "make torch VERSION=${{ matrix.version }}" in job["steps"][-1]["run"]


def test_the_tests_of_the_engine_exist():
    for path in versions.ENGINE:
        assert (ROOT / path).exists(), path
    assert {
        f"tests/grader/{path.name}" for path in (ROOT / "tests/grader").glob("test_simulat*.py")
    } <= {*versions.ENGINE}


@pytest.mark.parametrize("arguments", [[], ["-k", "simulat"]])
def test_a_version_of_torch_has_to_be_named(arguments, capsys):
    assert versions.main(arguments) == 2
    assert "make torch VERSION=2.11" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "fault"), [((3, 9), True), ((3, 10), False), ((3, 13), False), ((3, 14), True)]
)
def test_a_python_that_does_not_do_is_named_with_one_that_does(version, fault):
    said = install.python_fault(version)
    assert bool(said) == fault
    assert not fault or "make lab PYTHON=python3.13" in said


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install into a linked environment that runs a checkout; the status, and what was run."""

    def install_for(checkout, editable=True):
        venv, link = tmp_path / "venv", tmp_path / "link"
        stated = venv / "lib/python3.11/site-packages/gather_round-1.0.0.dist-info/direct_url.json"
        for path in (venv / "bin" / "python", stated):
            path.parent.mkdir(parents=True)
            path.touch()
        source = {"url": checkout.as_uri(), "dir_info": {"editable": editable}}
        stated.write_text(json.dumps(source))
        link.symlink_to(venv)
        return install.main([str(link)]), ran

    ran = []

    def run(command, check):
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setattr(install, "reachable", lambda address: False)
    return install_for


def test_the_environment_of_another_checkout_is_left_alone(tmp_path, installed, capsys):
    other = tmp_path / "an other"
    other.mkdir()
    assert installed(other) == (2, [])
    said = capsys.readouterr().err
    assert f"link is the environment of {other}, which would run the code of {ROOT}" in said
    assert "make lab VENV=build/venv" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "checkout, editable", [(ROOT, True), (ROOT / "no such", True), (ROOT / "docs", False)]
)
def test_an_environment_that_no_other_checkout_would_miss_is_installed_into(
    installed, checkout, editable
):
    status, ran = installed(checkout, editable)
    assert status == 0
    assert str(ROOT) in ran[-1]


def test_a_server_that_is_not_there_is_not_reachable():
    assert not install.reachable("http://127.0.0.1:9/")  # the discard port, closed everywhere


#: One worker builds the wheel.
of_the_wheel = pytest.mark.xdist_group("of_the_wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Both packages as they are published, installed alone into a folder."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # without a build environment of its own, which would be downloaded
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for root, package in ((ROOT, "grader"), (ROOT / "headcount", "src")):
        source = folder / package  # a copy: what an earlier build has left would get into the wheel
        source.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(root / name, source)
        shutil.copytree(root / package, source / package, ignore=ignored)
        subprocess.run([*built, str(source)], check=True, capture_output=True)
    made = [str(path) for path in folder.glob("*.whl")]
    target = folder / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), *made], check=True)
    return target


def away(wheel, tmp_path, *arguments):
    """Run the command line of the wheel, where no checkout is."""
    environment = {**os.environ, "PYTHONPATH": str(wheel), "GRADER_PROGRESS": ""}
    return subprocess.run(
        [sys.executable, "-m", "grader", *arguments],
        capture_output=True, text=True, cwd=tmp_path, env=environment,
    )  # fmt: skip


@of_the_wheel
def test_a_wheel_runs_without_the_checkout(wheel, tmp_path):
    listed = away(wheel, tmp_path, "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    here = subprocess.run(
        [sys.executable, "-m", "grader", "list"], capture_output=True, text=True, cwd=ROOT
    )
    assert listed.stdout == here.stdout


@of_the_wheel
@pytest.mark.exhaustive
def test_a_wheel_judges_an_answer(wheel, tmp_path):
    answer = next((ROOT / "grader/course/answers/02_broadcast/right").glob("broadcast_*.py"))
    (tmp_path / "answer.py").write_bytes(answer.read_bytes())
    done = away(wheel, tmp_path, "check", "answer.py", "broadcast")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@of_the_wheel
def test_a_wheel_has_every_file_that_is_not_code_and_nothing_else(wheel):
    def kept(root):
        found = (path.relative_to(root) for path in (root / "grader").rglob("*") if path.is_file())
        return [path.as_posix() for path in found if "__pycache__" not in path.parts]

    package = release.published(kept(ROOT))
    assert len(kept(ROOT)) - len(package) > 300  # right answers
    assert sorted(kept(wheel)) == sorted(package)
    assert any(re.search(r"\.(css|js|j2)$", name) for name in package)
    assert not any(IS_RIGHT.search((wheel / name).read_text()) for name in package)
    (archive,) = wheel.parent.glob("gather_round*.whl")
    with zipfile.ZipFile(archive) as held:
        assert release.spare_and_missing(held.namelist(), release.WHEELS_OWN, package) == []
