"""Building of a library from a student's C++ source; only a rank runs what is in it.

The compiler runs as a process of its own, in bubblewrap if the ranks do: with no network, nothing
to read but what ranks can read, and a folder in memory that is gone afterwards.  The library goes
into a folder that ranks can read, and that only its builder can write.

Most of the time is spent in reading torch's headers.  ``torch/types.h`` has all that a function
on tensors needs and takes half as long as ``torch/extension.h``, so it is tried first.  Where that
fails and more headers could help, the source is compiled with all of them, and only the errors of
that second attempt are reported.

GCC reads headers that it has compiled before in a quarter of the time
(https://gcc.gnu.org/onlinedocs/gcc/Precompiled-Headers.html).  To compile them takes as long as two
submissions, and 450 MB of disk, so it is done when a machine is asked for the second time, and kept
in the user's cache.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import math
import os
import re
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.sandbox import SANDBOX
from headcount.core.program import Program
from headcount.core.resource_limits import DEFAULTS

__all__ = ["SCRATCH", "Built", "CppBuilder", "CppSource", "compiler", "missing"]

#: Where a compiler writes in a sandbox; no folder that could hold a Python, as /tmp may.
SCRATCH = "/scratch"

#: The script that runs the compiler: its path here, and in a sandbox.
PROGRAM = str(Path(__file__).resolve().parent.parent / "sandbox" / "compiler.py")
_PROGRAM_INSIDE = f"{SANDBOX}/grader/sandbox/compiler.py"

#: What is compiled beforehand, and its file name.
HEADERS = "#include <torch/types.h>\n#include <type_traits>\n"
_HEADER = "answer.h"

#: Bytes that must be free on the disk for it.
ROOM = 4 << 30

_INSTALL = "apt install g++" if sys.platform == "linux" else "xcode-select --install"

#: Includes that the first attempt replaces by ``torch/types.h``.
_LARGER = re.compile(
    r'^([^\S\n]*#[^\S\n]*include[^\S\n]*)[<"]torch/(?:extension|torch|all)\.h[>"]', re.M
)

_ERROR = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<what>.*)$", re.M
)

#: Names that need more headers than ``torch/types.h``.
_MORE = re.compile(r"\b(?:py::|pybind|PYBIND|torch::(?:nn|jit|optim|data|serialize|python)\b)")

#: The namespace of ``torch.ops`` in which a library has its function.
NAMESPACE = "answer"

#: The file name that errors in the added lines have, which bind the function.
_BINDING = "binding"


@dataclass(frozen=True)
class CppSource:
    """A text in C++, and the function in it that is called from Python.

    Attributes:
        name: the student's name of the text.
        text: the source.
        function: the name of the function.
        tensors: the number of tensors that it takes.
    """

    name: str
    text: str
    function: str
    tensors: int


@dataclass(frozen=True)
class Built:
    """The result of a build: a library, or an error.

    Attributes:
        library: its path as ranks see it; empty if there is none.
        complaint: the compiler's first error.
        line: the line of the source that the error is about, if it is about one.
        late: whether the compiler was stopped at its time limit.
    """

    library: str = ""
    complaint: str = ""
    line: int | None = None
    late: bool = False

    def program(self, function: str) -> Program:
        """Return the program by which ranks load the library and have its function."""
        source = (
            f"import torch\ntorch.ops.load_library({self.library!r})\n"
            f"{function} = torch.ops.{NAMESPACE}.{function}\n"
        )
        return Program.from_source(source, function)


def compiler() -> str | None:
    """Return the path of this machine's C++ compiler, or of the one that ``CXX`` names."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


def missing() -> str:
    """Return why nothing can be compiled here, with the mend, or an empty string."""
    if sys.platform == "win32":
        return "C++ is compiled on Linux and macOS only; on Windows, use WSL"
    if compiler() is None:
        return f"there is no C++ compiler; to install one: {_INSTALL}"
    if not (_torch() / "include" / "torch" / "extension.h").is_file():
        return "this torch has come without its C++ headers; pip install torch brings them"
    return ""


def _torch() -> Path:
    import torch

    # not resolved: a sandbox shows an environment at its own path, which may be a link
    return Path(torch.__file__).absolute().parent


class CppBuilder:
    """A builder of libraries, which it keeps until it is closed.

    Builders share nothing, so that no student's ranks can see another student's library.

    Args:
        folder: the folder for libraries; by default a temporary one.
        seen: the path of the same folder as ranks see it.
        sandbox: returns the command to compile under, which gives the compiler :data:`SCRATCH`
            and shows it some folders; None to compile without a sandbox.
        user: the user id of the compiler in there.
    """

    def __init__(
        self,
        folder: Path | None = None,
        seen: str = "",
        sandbox: Callable[[Sequence[Path]], Sequence[str]] | None = None,
        user: int | None = None,
    ) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="grader-") if folder is None else None
        self._folder = Path(self._own.name) if self._own is not None else Path(folder or "")
        self._seen = seen or str(self._folder)
        self._sandbox = sandbox
        self._user = user
        self._made: dict[CppSource, Built] = {}

    def build(self, source: CppSource, until: float = math.inf) -> Built:
        """Return the library of a source, which is built once.

        Args:
            source: the source.
            until: when the compiler must be done, on the monotonic clock; it has a limit of its
                own besides.
        """
        if source not in self._made:
            built = self._build(source, until)
            if built.late:
                return built  # the machine may have been busy: it is tried again the next time
            self._made[source] = built
        return self._made[source]

    def _build(self, source: CppSource, until: float) -> Built:
        built = Built()
        started = time.monotonic()
        until = min(until, started + DEFAULTS.compiling)
        for header in ("torch/types.h", "torch/extension.h"):
            small = header == "torch/types.h"
            ready = precompiled(until - started > _ENOUGH) if small else None
            try:
                status, library, said = self.compile(_unit(source, header), ready, until)
            except subprocess.TimeoutExpired:
                complaint = f"the compiler is not done after {until - started:.0f} s"
                return Built(complaint=complaint, late=True)
            if status == 0:
                return Built(library=self._keep(library))
            built = _complaint(source, said)
            if not _may_lack_headers(source, built):
                break
        return built

    def _keep(self, library: bytes) -> str:
        name = f"{secrets.token_hex(8)}.so"
        path = self._folder / name
        path.write_bytes(library)
        path.chmod(0o444)
        return f"{self._seen}/{name}"

    def compile(
        self, unit: str, ready: Path | None, until: float = math.inf
    ) -> tuple[int, bytes, str]:
        """Return the compiler's exit status, the library, and what the compiler printed.

        Args:
            unit: the compiler's input.
            ready: the folder of precompiled headers that it begins with, if there is one.
            until: when the compiler must be done, on the monotonic clock.

        Raises:
            subprocess.TimeoutExpired: it is not, or has written too much.
        """
        sandbox = () if self._sandbox is None else self._sandbox([ready] if ready else [])
        included = ["-include", str(ready / _HEADER)] if ready else []
        with tempfile.TemporaryDirectory(prefix="grader-") as scratch:
            program, where = (_PROGRAM_INSIDE, SCRATCH) if sandbox else (PROGRAM, scratch)
            user = "-" if self._user is None else str(self._user)
            process = subprocess.Popen(
                [
                    *sandbox, sys.executable, "-I", program, user, where,
                    str(DEFAULTS.compiler), str(DEFAULTS.compiler_memory),
                    str(DEFAULTS.compiler_file),
                    str(compiler()), *_flags(), *included, *_linking(),
                ],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            try:
                library, said = _exchange(process, unit.encode("utf-8", "replace"), until)
            except BaseException:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            return process.returncode, library, said.decode("utf-8", "replace")

    def close(self) -> None:
        """Remove all libraries."""
        for built in self._made.values():
            if built.library:
                (self._folder / Path(built.library).name).unlink(missing_ok=True)
        self._made.clear()
        if self._own is not None:
            self._own.cleanup()


#: Bytes that are taken from the compiler at a time.
_PIECE = 1 << 16


def _exchange(process: subprocess.Popen[bytes], given: bytes, until: float) -> tuple[bytes, bytes]:
    """Give a process its input, and return its output and its errors.

    Unlike ``communicate``, it takes no more than a compiler may write, and waits for nothing once
    the time is over.

    Raises:
        subprocess.TimeoutExpired: the process has not ended in time, or has written too much.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    late = subprocess.TimeoutExpired(process.args, DEFAULTS.compiling)
    until = min(until, time.monotonic() + DEFAULTS.compiling)
    left = memoryview(given)
    found = {process.stdout: bytearray(), process.stderr: bytearray()}
    with process.stdin, process.stdout, process.stderr, selectors.DefaultSelector() as selector:
        for pipe in (process.stdin, *found):
            os.set_blocking(pipe.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        for pipe in found:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(until - time.monotonic(), 0))
            if not ready or time.monotonic() > until:
                raise late
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    with contextlib.suppress(BrokenPipeError):
                        left = left[os.write(key.fd, left[:_PIECE]) :]
                        if left:
                            continue
                    selector.unregister(key.fileobj)
                    process.stdin.close()
                    continue
                data = os.read(key.fd, _PIECE)
                taken = found[process.stdout if key.fileobj is process.stdout else process.stderr]
                taken += data
                if len(taken) > DEFAULTS.compiler_file:
                    raise late
                if not data:
                    selector.unregister(key.fileobj)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(until - time.monotonic(), 0.1))
        return bytes(found[process.stdout]), bytes(found[process.stderr])
    raise late


def _unit(source: CppSource, header: str) -> str:
    """Return the compiler's input: a header, the source, and the lines that bind its function."""
    text = source.text
    if header == "torch/types.h":
        text = _LARGER.sub(r"\1<torch/types.h>", text)
    function, tensors = source.function, ", torch::Tensor" * source.tensors
    asked = f"{function} must take {source.tensors} torch::Tensor and return one"
    return (
        f"#include <{header}>\n#include <type_traits>\n"
        f'#line 1 "{source.name}"\n{text}\n#line 1 "{_BINDING}"\n'
        f"static_assert(std::is_invocable_r_v<torch::Tensor, decltype(&{function}){tensors}>,"
        f' "{asked}");\n'
        f'TORCH_LIBRARY({NAMESPACE}, m) {{ m.def("{function}", &{function}); }}\n'
    )


#: Seconds that a build must have for headers to be compiled beforehand in them.
_ENOUGH = 120.0


def precompiled(enough: bool = True) -> Path | None:
    """Return the folder of the precompiled headers; None where there are none.

    They are made when they are asked for the second time on a machine, which this function
    remembers by an empty folder.  A compiler that cannot make them, or a disk without room, costs
    no more than that.

    Args:
        enough: whether there is time to make them.
    """
    version = subprocess.run(
        [str(compiler()), "--version"], capture_output=True, text=True, check=False
    ).stdout
    if "Free Software Foundation" not in version:
        return None  # clang names its precompiled headers by another option
    import torch

    named = "\0".join([version, torch.__version__, HEADERS, *_flags()])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "gather-round" / f"cpp-{hashlib.sha256(named.encode()).hexdigest()[:16]}"
    made = folder / f"{_HEADER}.gch"
    try:
        if made.exists():
            return folder
        if not folder.is_dir():
            folder.parent.parent.mkdir(parents=True, exist_ok=True)
            for mine in (folder.parent, folder):
                mine.mkdir(mode=0o755, exist_ok=True)
            return None
        if not enough or (folder / "failed").exists() or shutil.disk_usage(folder).free < ROOM:
            return None
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return folder if made.exists() or _precompile(folder, made) else None
    except OSError:
        # another process makes them now, or nothing can be written: the source is compiled whole
        return None


def _precompile(folder: Path, made: Path) -> bool:
    """Compile the headers into a folder; return whether that worked."""
    header, unfinished = folder / _HEADER, folder / "unfinished"
    header.touch(mode=0o644)  # nobody else writes into it, whatever the umask
    header.write_text(HEADERS, encoding="utf-8")
    command = [str(compiler()), *_flags(), "-x", "c++-header", str(header), "-o", str(unfinished)]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=DEFAULTS.compiling, check=False, umask=0o022
        )
    except subprocess.TimeoutExpired:
        return False  # the machine may be busy: it is tried again
    if done.returncode != 0:
        (folder / "failed").touch()
        return False
    # a compiler in a sandbox is another user
    for path, mode in ((folder, 0o755), (header, 0o644), (unfinished, 0o644)):
        path.chmod(mode)
    unfinished.replace(made)
    return True


def _flags() -> list[str]:
    """Return the options of torch's own builder for compiling."""
    include = _torch() / "include"
    places = (
        include,
        include / "torch" / "csrc" / "api" / "include",
        sysconfig.get_path("include"),
    )
    return [
        "-std=c++20", "-fPIC", "-O0", "-w", "-Wfatal-errors", "-fdiagnostics-color=never",
        *(f"-isystem{place}" for place in places),
    ]  # fmt: skip


def _linking() -> list[str]:
    """Return the options that make a library of what comes on standard input."""
    shared = (
        ["-shared"] if sys.platform != "darwin" else ["-shared", "-undefined", "dynamic_lookup"]
    )
    return [*shared, "-x", "c++", "-", f"-L{_torch() / 'lib'}", "-lc10", "-ltorch_cpu"]


def _may_lack_headers(source: CppSource, built: Built) -> bool:
    """Return whether more headers could mend an error, as they cannot mend a syntax error."""
    slip = built.line is None or built.complaint.startswith("expected")
    return bool(_MORE.search(source.text)) or not slip


def _complaint(source: CppSource, said: str) -> Built:
    """Return the first error that is about the source, in one line."""
    errors = list(_ERROR.finditer(said))
    for error in errors:
        line = int(error["line"])
        if error["file"] == source.name:
            return Built(complaint=error["what"], line=line)
        if error["file"] == _BINDING:
            what = error["what"].removeprefix("static assertion failed: ")
            return Built(complaint=f"{source.function} cannot be called from Python: {what}")
    if errors:
        # the error is deep in a header, and the lines before it say which line led there
        through = re.search(rf"^[^\S\n]*{re.escape(source.name)}:(\d+)", said, re.M) or re.search(
            rf"from {re.escape(source.name)}:(\d+)", said
        )
        return Built(complaint=errors[0]["what"], line=int(through[1]) if through else None)
    last = said.strip().splitlines()[-1:] or ["the compiler ended without a word"]
    return Built(complaint=last[0])
