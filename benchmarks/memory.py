"""What the course takes of a machine: for those who plan servers.

First eight ranks, then JupyterLab with nothing open, then chapters from the
first cell to the last, each in a Jupyter kernel of its own with all that it
starts.  Two kinds of memory are told apart: a learner's own, and that of the
programs' files (torch's libraries, mostly), which all learners of a machine
share if they share one installation, and which the system may drop and read
again.  Looking takes time as well: what lives for a few milliseconds may be
missed.  Linux only.

Run with ``make bench``, or alone with ``python -m benchmarks.memory``;
``python -m benchmarks.memory 0 1 2 3`` measures every chapter.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import nbformat
import psutil
import torch
import torch.distributed as dist
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from grader import run

ROOT = Path(__file__).resolve().parent.parent
SERVER_SECONDS = 60


def own(pid: int | str) -> int:
    """Bytes that a process needs for itself; what it shares is divided among those that do."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, amount, _ = line.split()
        sizes[name] = int(amount) * 1024
    return sizes["Pss_Anon:"] + sizes["Pss_Shmem:"]


@dataclass(frozen=True)
class Look:
    """A process and all that it started, at one moment."""

    own: int
    files: int
    processes: int
    threads: int


def look(pid: int) -> Look:
    """Look at a process and all that it started."""
    top = psutil.Process(pid)
    seen = []
    for process in (top, *top.children(recursive=True)):
        try:
            # a library is mapped by several: the largest holds nearly all of them
            files = process.memory_info().shared
            seen.append((own(process.pid), files, process.num_threads()))
        except (psutil.Error, OSError, KeyError):  # it has just ended
            continue
    owned, files, threads = zip(*seen, strict=True)
    return Look(sum(owned), max(files), len(seen), sum(threads))


def mega(size: float) -> str:
    return f"{size / 1e6:.0f} MB"


def eight_ranks() -> None:
    """Eight ranks that have communicated; each looks at itself while all are there."""

    def weigh() -> int:
        dist.all_reduce(torch.ones(1000))
        size = own("self")
        dist.barrier()
        return size

    sizes = list(run(weigh, 8))
    print(f"eight ranks: {mega(sum(sizes))} of their own, {mega(median(sizes))} each", flush=True)


def jupyterlab() -> None:
    """JupyterLab's server after it has shown its page, with no kernel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--port=0"]
        if os.geteuid() == 0:
            command.append("--allow-root")
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "JUPYTER_RUNTIME_DIR": folder, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            where = address(Path(folder), server)
            with urllib.request.urlopen(where, timeout=SERVER_SECONDS) as page:
                page.read()
            found = look(server.pid)
        finally:
            server.terminate()
            server.wait()
    print(f"JupyterLab: {mega(found.own)} of its own, files {mega(found.files)}", flush=True)


def address(folder: Path, server: subprocess.Popen[bytes]) -> str:
    """Where a server that has just been started answers; it writes that to a file."""
    until = time.monotonic() + SERVER_SECONDS
    while time.monotonic() < until and server.poll() is None:
        for path in folder.glob("jpserver-*.json"):
            try:
                about = json.loads(path.read_text())
            except ValueError:  # it is being written
                continue
            return f"{about['url']}lab?token={about['token']}"
        time.sleep(0.05)
    raise SystemExit(f"JupyterLab said nowhere within {SERVER_SECONDS} s where it answers")


def chapter(path: Path) -> None:
    """A chapter's solved edition, from the first cell to the last."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(
        cwd=str(path.parent),
        env={**os.environ, "GRADER_PROGRESS": ""},
        extra_arguments=["--log-level=ERROR"],
    )
    client = NotebookClient(nbformat.read(path, as_version=4), km=manager, timeout=300)
    ended = threading.Event()
    looks: list[Look] = []

    def watch() -> None:
        while not ended.is_set():
            looks.append(look(manager.provisioner.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        client.execute(reset_kc=True)
    finally:
        ended.set()
        watcher.join()
        rest = look(manager.provisioner.pid)
        manager.shutdown_kernel(now=True)
    print(
        f"{path.stem}: at most {mega(max(look.own for look in looks))} of its own,"
        f" files {mega(max(look.files for look in looks))},"
        f" {max(look.processes for look in looks)} processes,"
        f" {max(look.threads for look in looks)} threads;"
        f" left open {mega(rest.own)}, {rest.processes} processes",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "chapters", nargs="*", default=["00", "11"], help="how their names begin, such as 02"
    )
    request = parser.parse_args()
    if not sys.platform.startswith("linux"):
        print("memory is measured on Linux only")
        return
    eight_ranks()
    jupyterlab()
    for name in request.chapters:
        for path in sorted((ROOT / "solutions").glob(f"{name}*.ipynb")):
            chapter(path)


if __name__ == "__main__":
    main()
