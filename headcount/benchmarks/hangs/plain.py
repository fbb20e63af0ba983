"""What torch itself says of a program: on gloo alone, and with its own checks on.

Ranks are forked from a process that has imported torch, so that no program waits for an
import; nothing of headcount is in them.  Torch's checks are those of
``TORCH_DISTRIBUTED_DEBUG=DETAIL``, which compares every collective's name, shapes and types
before it starts, and waits for all ranks first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

import torch.distributed as dist

from benchmarks.hangs.catalogue import every_pair
from benchmarks.hangs.declare import Pair, Program, both

__all__ = ["LEVELS", "Heard", "Outcome", "hear", "serve"]

#: Values of ``TORCH_DISTRIBUTED_DEBUG``, and what a table calls them.
LEVELS = {"OFF": "gloo", "DETAIL": "gloo, DETAIL"}


class Outcome(str, Enum):
    """How a program ended, seen from outside."""

    #: an error that says what is wrong: a mismatch, an argument, the program's own exception
    NAMED = "named"
    #: an error that says which rank was missing, when the time limit had passed
    NAMED_LATE = "named after the limit"
    #: an error that says something else, such as a closed connection
    RAISED = "another error"
    #: nothing until the time limit
    HUNG = "hung"
    #: a process died
    DIED = "died"
    #: all ranks returned, and not what they should
    WRONG_VALUES = "wrong values"
    #: all ranks returned as if nothing were wrong
    SILENT = "nothing"

    __str__ = str.__str__


@dataclass(frozen=True)
class Heard:
    """How one program ended on gloo, by level, with the error that says most."""

    outcomes: Mapping[str, Outcome]
    messages: Mapping[str, str]


_TIMED_OUT = re.compile(r"timed? ?out|timeout", re.IGNORECASE)
_LATE = re.compile(r"monitoredBarrier|not responding|failed to (reach|respond)", re.IGNORECASE)
_MISMATCH = re.compile(r"Detected mismatch|[Mm]ismatch between")
_CONNECTION = re.compile(
    r"closed by peer|[Cc]onnection (reset|closed|refused)|Broken pipe|\[enforce fail|/gloo/"
)


def hear(pairs: Sequence[Pair], limit: float, servers: int = 4) -> dict[str, Heard]:
    """Run the programs of these pairs on plain gloo at every level.

    A wrong program should have returned what its right twin returns.

    Args:
        pairs: of programs.
        limit: seconds after which an operation gives up.
        servers: processes that fork ranks; a rank that hangs needs no processor.
    """
    programs = both(pairs)
    gives = {program.name: pair.right.gives for pair in pairs for program in both([pair])}
    outcomes: dict[str, dict[str, Outcome]] = {program.name: {} for program in programs}
    messages: dict[str, dict[str, str]] = {program.name: {} for program in programs}
    jobs = [(program, level) for program in programs for level in LEVELS]
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(servers) as pool:
        idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for _ in range(servers):
            idle.put(stack.enter_context(_server(limit)))

        def one(program: Program, level: str) -> None:
            server = idle.get()
            try:
                ends = _ask(server, program, level)
            finally:
                idle.put(server)
            expected = list(gives[program.name])
            outcomes[program.name][level], messages[program.name][level] = _outcome(ends, expected)

        for done in [pool.submit(one, *job) for job in jobs]:
            done.result()
    return {name: Heard(outcomes[name], messages[name]) for name in outcomes}


@contextlib.contextmanager
def _server(limit: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "from benchmarks.hangs.plain import serve; serve()"]
    environment = os.environ | {"HANGS_LIMIT": str(limit)}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        cwd=Path(__file__).resolve().parent.parent.parent,
    ) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _ask(server: subprocess.Popen[str], program: Program, level: str) -> list[dict[str, Any]]:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{program.name} {level}\n")
    server.stdin.flush()
    return list(json.loads(server.stdout.readline()))


def _outcome(ends: Sequence[dict[str, Any]], expected: Sequence[Any]) -> tuple[Outcome, str]:
    """Sum up how the ranks ended: the most that anybody learns from it."""
    said = [(end["type"], end["message"]) for end in ends if "type" in end]
    late = [end["message"] for end in ends if end.get("late") and _TIMED_OUT.search(end["message"])]
    for kind, text in said:
        if _MISMATCH.search(text) or (kind not in ("RuntimeError", "DistBackendError")):
            return Outcome.NAMED, f"{kind}: {text}"
    for _, text in said:
        if _LATE.search(text):
            return Outcome.NAMED_LATE, text
    for kind, text in said:
        # a time limit of the program's own has said what it was for
        if text not in late and (_TIMED_OUT.search(text) or not _CONNECTION.search(text)):
            return Outcome.NAMED, f"{kind}: {text}"
    if late or any(end.get("hung") for end in ends):
        return Outcome.HUNG, next(iter(late), "")
    if any("status" in end for end in ends):
        return Outcome.DIED, f"exit status {[end.get('status') for end in ends]}"
    if said:
        return Outcome.RAISED, said[0][1]
    if [end["value"] for end in ends] == json.loads(json.dumps(expected)):
        return Outcome.SILENT, ""
    return Outcome.WRONG_VALUES, f"{[end['value'] for end in ends]}, expected {expected}"


# The server, and its ranks. -----------------------------------------------------------


def serve() -> None:
    """Run the programs that are named on standard input, one after the other."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo" if sys.platform == "linux" else "lo0"
    limit = float(os.environ["HANGS_LIMIT"])
    programs = {}
    for pair in every_pair():
        for program in (pair.wrong, pair.right):
            if program is not None:
                programs[program.name] = program
    for line in sys.stdin:
        name, level = line.split()
        # a fork takes the level along, as a process takes it from its environment
        os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
        dist.set_debug_level_from_env()
        print(json.dumps(_run(programs[name], limit)), flush=True)


def _run(program: Program, limit: float) -> list[dict[str, Any]]:
    """Run a program on forked ranks, and say of each how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        pids, readers = [], []
        for rank in range(program.ranks):
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                _rank(program, rank, folder, writer, limit)
            os.close(writer)
            pids.append(pid)
            readers.append(reader)
        texts, hung = _read(readers, limit * 2 + 2)
        ends = []
        for pid, text, is_hung in zip(pids, texts, hung, strict=True):
            if text or is_hung:
                os.kill(pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if is_hung:
                ends.append({"hung": True})
            else:
                ends.append(json.loads(text) if text else {"status": status})
        return ends


def _read(readers: Sequence[int], seconds: float) -> tuple[list[str], list[bool]]:
    """Read pipes to their ends; what is still open after so many seconds hangs."""
    found = [b""] * len(readers)
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for i, fd in enumerate(readers):
            selector.register(fd, selectors.EVENT_READ, i)
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(deadline - time.monotonic()):
                data = os.read(key.fd, 1 << 16)
                found[key.data] += data
                if not data:
                    selector.unregister(key.fd)
        hung = [fd in selector.get_map() for fd in readers]
    for fd in readers:
        os.close(fd)
    return [text.decode() for text in found], hung


def _rank(program: Program, rank: int, folder: str, writer: int, limit: float) -> NoReturn:
    """Be one rank, and tell its end as JSON."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    end: dict[str, Any] = {}
    started = time.monotonic()
    try:
        store = dist.FileStore(str(Path(folder) / "store"), program.ranks)
        dist.init_process_group(
            "gloo",
            rank=rank,
            world_size=program.ranks,
            store=store,
            timeout=timedelta(seconds=limit),
        )
        # nobody may fail while others still connect: that would be another story
        if store.add("joined", 1) == program.ranks:
            store.set("everybody", "is here")
        store.wait(["everybody"])
        started = time.monotonic()
        end = {"value": program.function()}
    except SystemExit as error:
        os._exit(int(error.code or 0))
    except BaseException as error:
        end = {"type": type(error).__name__, "message": str(error)[:500]}
        end["late"] = time.monotonic() - started > 0.9 * limit
    os.write(writer, json.dumps(end).encode())
    os.close(writer)
    if "value" in end:  # a rank that has returned goes on with something else
        signal.pause()
    os._exit(1)
