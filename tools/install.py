"""Makes the environment that ``make`` works in: the versions of ``requirements.lock``.

    python tools/install.py .venv            # what a learner needs
    python tools/install.py .venv --tools    # and what tests, styles and builds the course
    python tools/install.py build/torch-2.11 --torch 2.11    # all of it, with another torch

``uv`` installs where it is there, ``pip`` where it is not.  On Linux without an NVIDIA
driver, torch comes as its CPU build, which spares several gigabytes of CUDA libraries.
Nothing but Python's standard library is there when this runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

ROOT = Path(__file__).resolve().parent.parent

#: The project that the course's own is built on.
HEADCOUNT = ROOT / "headcount"

#: pip's options for both, as they are here.
_OURS = ("--editable", str(HEADCOUNT), "--editable", str(ROOT))

#: What every install is held to, so that two of them are alike.
LOCK = ROOT / "requirements.lock"

#: torch's own index of CPU builds.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"

#: Where torch's nightly builds are.
NIGHTLY_INDEX = "https://download.pytorch.org/whl/nightly/cpu"

#: Packages whose versions follow from torch's.
_TORCHS = re.compile(r"(torch|triton|(nvidia|cuda)-[\w-]+)==")

#: Versions of Python that the course runs on, the first and the last.
PYTHONS = (3, 10), (3, 13)

#: The file in an environment that holds the lock without torch.
REST = "without-torch.txt"

#: Seconds after which the index of CPU builds counts as unreachable.
_PATIENCE = 10.0


def python_fault(version: tuple[int, int]) -> str:
    """Return why the course does not run on a version of Python; empty if it does."""
    first, last = PYTHONS
    if first <= version <= last:
        return ""
    say = "{}.{}".format
    return (
        f"Gather Round runs on Python {say(*first)} to {say(*last)}, and this is {say(*version)}."
        f" Name another one: make lab PYTHON=python{say(*last)}"
    )


def checkout_of(venv: Path) -> Path | None:
    """Return the checkout whose code an environment runs; None if it runs no checkout's."""
    for path in venv.glob("lib/python*/site-packages/gather_round-*.dist-info/direct_url.json"):
        source = json.loads(path.read_text())
        if source.get("dir_info", {}).get("editable"):
            return Path(url2pathname(urlsplit(source["url"]).path))
    return None


def owner_fault(venv: Path) -> str:
    """Return why an environment is not ours to install into; empty if it is.

    One of a checkout that has been moved or deleted is: nobody loses it.
    """
    other = checkout_of(venv)
    if other is None or not other.is_dir() or other.samefile(ROOT):
        return ""
    return (
        f"{venv} is the environment of {other}, which would run the code of {ROOT} from now on."
        " Name another one: make lab VENV=build/venv"
    )


def has_nvidia_driver() -> bool:
    """Whether a driver for NVIDIA's GPUs is there, under WSL too."""
    places = ("/proc/driver/nvidia/version", "/usr/lib/wsl/lib/nvidia-smi")
    return shutil.which("nvidia-smi") is not None or any(map(os.path.exists, places))


def locked(package: str) -> str:
    """Return the version of a package that the lock names for every platform.

    Raises:
        LookupError: the lock names none, or several.
    """
    found = re.findall(rf"^{re.escape(package)}==([^\s;]+)$", LOCK.read_text(), re.M)
    if len(found) != 1:
        raise LookupError(f"{LOCK.name} names {len(found)} versions of {package}, not one")
    return str(found[0])


def reachable(address: str) -> bool:
    """Whether a web server answers."""
    try:
        with urllib.request.urlopen(address, timeout=_PATIENCE):
            return True
    except (urllib.error.URLError, OSError):
        return False


def commands(venv: Path, tools: bool, uv: str | None, cpu: bool) -> list[list[str]]:
    """Return what has to be run, in this order.

    Args:
        venv: the folder of the environment, which exists.
        tools: whether to install what changes the course as well.
        uv: the program, if it is there.
        cpu: whether torch is to come from the index of CPU builds.
    """
    python = str(venv / "bin" / "python")
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    install += ["--quiet", "--constraint", str(LOCK)]
    found = []
    if cpu:
        # alone, so that nothing else is looked for there
        found.append([*install, f"torch=={locked('torch')}", "--index-url", CPU_INDEX])
    if tools:
        found.append([*install, "--requirement", str(ROOT / "requirements.txt"),
                      "--editable", str(HEADCOUNT), "--editable", f"{ROOT}[dev]"])  # fmt: skip
    else:
        found.append([*install, "--requirement", str(ROOT / "requirements.txt")])
        found.append([*install, "--no-deps", *_OURS])
    return found


def without_torch(lock: str) -> str:
    """Return the packages of a lock but torch, and what is locked for it alone."""
    return "".join(line for line in lock.splitlines(True) if not _TORCHS.match(line))


def commands_for_torch(venv: Path, torch: str, uv: str | None, cpu: bool) -> list[list[str]]:
    """Return what has to be run for another torch than the lock's, in this order.

    Args:
        venv: the folder of the environment, which holds the rest of the lock as a file.
        torch: the version, such as ``2.11``, or ``nightly``.
        uv: the program, if it is there.
        cpu: whether torch is to come from the index of CPU builds.
    """
    python = str(venv / "bin" / "python")
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    install += ["--quiet"]
    if torch == "nightly":
        wanted = ["--upgrade", "--pre", "torch", "--index-url", NIGHTLY_INDEX]
    else:
        wanted = [f"torch=={torch}.*", *(["--index-url", CPU_INDEX] if cpu else [])]
    return [
        [*install, "--requirement", str(venv / REST)],
        [*install, *wanted],
        [*install, "--no-deps", *_OURS],
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the environment, or bring it up to date; 0 if that worked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("venv", type=Path, help="the folder of the environment")
    parser.add_argument("--tools", action="store_true", help="also what changes the course")
    parser.add_argument("--torch", help="another torch than the lock's, with all tools: 2.11")
    request = parser.parse_args(arguments)
    fault = python_fault(sys.version_info[:2]) or owner_fault(request.venv)
    if fault:
        print(fault, file=sys.stderr)
        return 2
    uv = shutil.which("uv")
    if not (request.venv / "bin" / "python").exists():
        make = [uv, "venv", "--seed", "--quiet", "--python", sys.executable] if uv else None
        subprocess.run([*(make or [sys.executable, "-m", "venv"]), str(request.venv)], check=True)
    cpu = platform.system() == "Linux" and not has_nvidia_driver()
    if cpu and not reachable(f"{CPU_INDEX}/torch/"):
        print(f"{CPU_INDEX} cannot be reached: torch comes from the usual index", file=sys.stderr)
        cpu = False
    if request.torch:
        (request.venv / REST).write_text(without_torch(LOCK.read_text()))
        planned = commands_for_torch(request.venv, request.torch, uv, cpu)
    else:
        planned = commands(request.venv, request.tools, uv, cpu)
    tool = "uv" if uv else "pip, which takes some minutes the first time"
    print(f"installing into {request.venv} with {tool}", flush=True)
    for command in planned:
        status = subprocess.run(command, check=False).returncode
        if status:
            print(f"failed, with status {status}: {' '.join(command)}", file=sys.stderr)
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
