"""A real JupyterLab, and a reader who uses it through a real browser."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Locator, Page, expect

from tests.system.browser.learner import hidden_extensions, hide

ROOT = Path(__file__).resolve().parents[3]

#: Seconds for what takes long on a busy machine: a server, a kernel that imports torch.
PATIENCE = 90.0

#: Settings of the one who tests: nothing pops up, and the rest is as `make lab` has it.
_SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"doNotDisturbMode": True},
    # all cells exist at all times, so that a test can look at one far below
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
}


class Server:
    """JupyterLab on a copy of the course, started by ``make lab``, with settings of its own.

    Server and kernels see the packages that a learner has, and no others.

    Args:
        home: an empty folder; the course is copied into it.
        port: where the server begins to look for a free port; 0 lets the system choose.

    Attributes:
        course: the copy.
        log: the file of all that it prints.
        started: when ``make lab`` was called, on the monotonic clock.
        pid: the process of JupyterLab itself, below ``make``.
        printed: the address that a learner is told to open, as it stands in the terminal.
    """

    def __init__(self, home: Path, port: int = 0) -> None:
        self.course = home / "course"
        for name in ("notebooks", "solutions", "imgs", "docs", "headcount/docs"):
            shutil.copytree(ROOT / name, self.course / name)
        shutil.copy(ROOT / "Makefile", self.course)
        self._settings = home / "settings"
        for name, values in _SETTINGS.items():
            self._set(name, values)
        self._wear("Light")
        self._environment = self._prepare(home)
        self.log = home / "jupyter.log"
        self._log = self.log.open("wb")
        self.started = time.monotonic()
        # The environment is the one that these tests run in.  To make, it counts as made, however
        # old its mark is (-o), so that a test never installs anything.
        self._process = subprocess.Popen(
            [
                *("make", "-C", str(self.course), "lab", f"VENV={sys.prefix}"),
                *("-o", f"{sys.prefix}/.course", f"ARGS=--no-browser --port={port}"),
            ],
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.pid, self.printed = self._wait(home)
        parts = urllib.parse.urlsplit(self.printed)
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._token = urllib.parse.parse_qs(parts.query)["token"][0]

    @contextlib.contextmanager
    def dark(self) -> Iterator[None]:
        """Let the pages that are opened in this context wear JupyterLab's dark theme."""
        self._wear("Dark")
        try:
            yield
        finally:
            self._wear("Light")

    def _wear(self, theme: str) -> None:
        self._set("@jupyterlab/apputils-extension/themes", {"theme": f"JupyterLab {theme}"})

    def _set(self, name: str, values: dict[str, Any]) -> None:
        path = self._settings / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))

    def _prepare(self, home: Path) -> dict[str, str]:
        hide(home / "site", ROOT / "requirements.txt")
        switched_off = dict.fromkeys(hidden_extensions(ROOT / "requirements.txt"), True)
        page_config = home / "config" / "labconfig" / "page_config.json"
        page_config.parent.mkdir(parents=True)
        page_config.write_text(json.dumps({"disabledExtensions": switched_off}))
        paths = [str(home / "site"), str(ROOT)]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "JUPYTERLAB_SETTINGS_DIR": str(self._settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
            "GRADER_PROGRESS": str(home / "progress.json"),
            "IPYTHONDIR": str(home / "ipython"),
        }

    def _wait(self, home: Path) -> tuple[int, str]:
        """Return JupyterLab's process and the address that it prints, once it answers there."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            for path in (home / "runtime").glob("jpserver-*.json"):
                text = path.read_text()
                said = self.log.read_text()
                printed = re.search(r"^\s+(http://localhost:(\d+)/\S+)$", said, flags=re.M)
                if text.endswith("}") and printed:
                    with socket.socket() as knock:
                        if knock.connect_ex(("127.0.0.1", int(printed[2]))) == 0:
                            return json.loads(text)["pid"], printed[1]
            time.sleep(0.05)
        self.close()
        raise RuntimeError(self.log.read_text()[-4000:])

    def address(self, path: str) -> str:
        """Where a notebook opens, in a fresh workspace."""
        return f"{self.url}/lab/workspaces/w{secrets.token_hex(4)}/tree/{path}?token={self._token}"

    def trust(self, path: str) -> None:
        """Say that a notebook's saved outputs may run."""
        subprocess.run(
            [sys.executable, "-m", "jupyter", "trust", str(self.course / path)],
            env=self._environment,
            check=True,
            capture_output=True,
        )

    def ranks(self) -> list[psutil.Process]:
        """Processes that the fork servers of this server's kernels have started."""
        found = []
        for child in psutil.Process(self.pid).children(recursive=True):
            try:
                parent = child.parent()
                if (
                    parent is not None
                    and "headcount.server.fork_server" in " ".join(parent.cmdline())
                    and child.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(child)
            except psutil.NoSuchProcess:
                continue
        return found

    def sessions(self) -> list[dict[str, Any]]:
        """Return the notebooks that have a kernel, as the server tells them."""
        found: list[dict[str, Any]] = json.loads(self._ask("GET", "api/sessions"))
        return found

    def end_kernels(self) -> None:
        """Shut every kernel down, as its reader would, and see that all its processes end.

        Raises:
            AssertionError: some do not.
        """
        # A page that has gone may have asked for a kernel that starts only now, and the server
        # tells of it once it has started: so they are asked for until no process is left.
        until = time.monotonic() + PATIENCE
        alive = psutil.Process(self.pid).children(recursive=True)
        while alive and time.monotonic() < until:
            for session in self.sessions():
                self._ask("DELETE", f"api/sessions/{session['id']}")
            psutil.wait_procs(alive, timeout=1)
            alive = psutil.Process(self.pid).children(recursive=True)
        assert not alive, alive

    def default(self, plugin: str, name: str) -> Any:
        """Return what a setting of JupyterLab is as long as nobody has chosen anything."""
        found = json.loads(self._ask("GET", f"lab/api/settings/{plugin}"))
        return found["schema"]["properties"][name]["default"]

    def _ask(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(
            f"{self.url}/{path}",
            method=method,
            headers={"Authorization": f"token {self._token}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            body: bytes = answer.read()
            return body

    def status(self, path: str) -> int:
        """Return what the server answers to a request for a path of its own."""
        try:
            self._ask("GET", path)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    def export(self, path: str, target: Path) -> None:
        """Save a notebook as a page, as File → Save and Export does."""
        subprocess.run(
            [
                *(sys.executable, "-m", "jupyter", "nbconvert", "--to", "html"),
                *(str(self.course / path), "--output", str(target)),
            ],
            env=self._environment,
            check=True,
            capture_output=True,
        )

    def close(self) -> None:
        """End the server, its kernels and their processes."""
        processes = [psutil.Process(self._process.pid)] if self._process.poll() is None else []
        processes += [c for p in processes for c in p.children(recursive=True)]
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(processes, timeout=10)
        self._log.close()


class Reader:
    """Somebody in front of JupyterLab.

    Args:
        server: whose notebooks.
        page: of the browser.
    """

    def __init__(self, server: Server, page: Page) -> None:
        self.server = server
        self.page = page

    def open(self, path: str) -> None:
        """Open a notebook and wait until its kernel is there."""
        self.page.goto(self.server.address(path))
        expect(self.page.locator(".jp-Notebook .jp-Cell").first).to_be_visible(
            timeout=PATIENCE * 1000
        )
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        """Wait until the kernel has nothing to do."""
        # the status bar knows it from the kernel; the toolbar says idle before there is one
        status = self.page.locator("#jp-bottom-panel", has_text="Python 3 (ipykernel) | Idle")
        try:
            expect(status).to_be_visible(timeout=PATIENCE * 1000)
        except AssertionError as error:
            # the page does not say why
            sessions, printed = self.server.sessions(), self.server.log.read_text()[-4000:]
            raise AssertionError(f"sessions: {sessions}\nthe server's log: {printed}") from error

    def cell(self, text: str) -> Cell:
        """The one code cell that holds a text."""
        found = self.page.locator(".jp-Notebook .jp-CodeCell").filter(
            has=self.page.locator(".jp-InputArea", has_text=text)
        )
        expect(found).to_have_count(1)
        return Cell(self, found)

    def run_all(self) -> None:
        """Run every cell, and wait for the last."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        waiting = self.page.locator(".jp-InputPrompt", has_text="[*]:")
        expect(waiting.first).to_be_attached()
        expect(waiting).to_have_count(0, timeout=PATIENCE * 1000)


class Cell:
    """A code cell as its reader sees it.

    Args:
        reader: who looks.
        place: the cell's element, found by a text that may be overwritten.
    """

    def __init__(self, reader: Reader, place: Locator) -> None:
        self._reader = reader
        handle = place.get_attribute("data-windowed-list-index")
        self._place = (
            reader.page.locator(f'.jp-Notebook .jp-CodeCell[data-windowed-list-index="{handle}"]')
            if handle is not None
            else place
        )

    @property
    def output(self) -> Locator:
        """What the cell shows."""
        return self._place.locator(".jp-OutputArea-output")

    @property
    def outputs(self) -> Locator:
        """Where all of its outputs are."""
        return self._place.locator(".jp-OutputArea").first

    def write(self, code: str) -> None:
        """Replace the cell's code."""
        editor = self._place.locator(".cm-content")
        editor.click()
        keyboard = self._reader.page.keyboard
        keyboard.press("ControlOrMeta+A")
        keyboard.insert_text(code)

    def start(self) -> str:
        """Run the cell; what its prompt was."""
        prompt = self._place.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        self._place.locator(".cm-content").click()
        self._reader.page.keyboard.press("Control+Enter")
        expect(prompt).not_to_have_text(before)
        return before

    def run(self) -> None:
        """Run the cell and wait for its end."""
        self.start()
        self.wait()

    def wait(self) -> None:
        """Wait until it has run."""
        prompt = self._place.locator(".jp-InputPrompt")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=PATIENCE * 1000)
