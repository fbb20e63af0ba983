"""The engine against ``torch.multiprocessing.spawn`` and against its own floor.

Every figure is a median over repetitions; what is compared alternates, so
that a drift of the machine's speed hits both alike.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from benchmarks.figures import Figure
from grader.api import catalogue
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission, live_program
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.rank.process_limits import let_others_finish

RANKS = 4

#: Ranks of the ring whose calls are compared with the same calls on gloo, and the calls.
MANY, CALLS = 8, 40


def _all_reduce() -> float:
    x = torch.full((4,), float(dist.get_rank()))
    dist.all_reduce(x)
    return float(x[0])


def loopback() -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo" if os.uname().sysname == "Linux" else "lo0"


def _join_and_reduce(rank: int, size: int, path: str) -> None:
    loopback()
    torch.set_num_threads(1)
    store = dist.FileStore(path, size)
    dist.init_process_group("gloo", rank=rank, world_size=size, store=store)
    _all_reduce()


def spawn_once() -> None:
    """The usual way: a fresh interpreter per rank."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_join_and_reduce, args=(RANKS, str(Path(folder) / "store")), nprocs=RANKS)


def ping_pong(rank: int, count: int, elements: int) -> list[float]:
    """Microseconds per message between ranks 0 and 1, by ``dist.send`` and ``dist.recv``."""
    x, found = torch.ones(elements), []
    for _ in range(7):
        started = time.perf_counter()
        for _ in range(count):
            (dist.send if rank == 0 else dist.recv)(x, 1 - rank)
            (dist.recv if rank == 0 else dist.send)(x, 1 - rank)
        found.append(1e6 * (time.perf_counter() - started) / (2 * count))
    return found


def ring_all_reduce() -> None:
    """A right answer to chapter 11's exercise, on a thousand numbers."""
    x = torch.ones(1000, dtype=torch.float64)
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(n)
    for step in range(2 * (n - 1)):
        into = chunks[(rank - step - 1) % n]
        came = torch.empty_like(into)
        request = dist.isend(chunks[(rank - step) % n], (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        if step < n - 1:
            into.add_(came)
        else:
            into.copy_(came)


def rings(count: int) -> float:
    """Milliseconds of this rank's processor time that a call of the ring takes."""
    ring_all_reduce()
    before = time.process_time()
    for _ in range(count):
        ring_all_reduce()
    return 1e3 * (time.process_time() - before) / count


def floor_server(client: socket.socket) -> None:
    """Fork ranks on request and do nothing else: a process with torch and no threads."""
    client.send(b"ready")
    while request := client.recv(4096):
        size, count, elements, path = request.decode().split(" ", 3)
        reader, writer = os.pipe()
        pids = []
        for rank in range(int(size)):
            pid = os.fork()
            if pid == 0:
                if int(size) == MANY:
                    # as ranks do it; gloo alone takes several times as long
                    let_others_finish()
                _join_and_reduce(rank, int(size), path)
                if int(size) == MANY:
                    each = torch.tensor(rings(int(count)))
                    dist.all_reduce(each)
                    if rank == 0:
                        os.write(writer, json.dumps([float(each)]).encode())
                elif int(count) and rank == 0:
                    os.write(writer, json.dumps(ping_pong(0, int(count), int(elements))).encode())
                elif int(count):
                    ping_pong(rank, int(count), int(elements))
                os._exit(0)
            pids.append(pid)
        for pid in pids:
            os.waitpid(pid, 0)
        os.close(writer)
        client.send(os.read(reader, 4096) or b"[]")
        os.close(reader)


class Floor:
    """Plain fork, gloo's start and one all-reduce: what no engine can beat."""

    def __init__(self) -> None:
        self._client, theirs = socket.socketpair()
        code = "import socket, sys; from benchmarks.engine import floor_server"
        code += "; floor_server(socket.socket(fileno=int(sys.argv[1])))"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        assert self._client.recv(16) == b"ready"

    def once(self, size: int = RANKS, count: int = 0, elements: int = 0) -> list[float]:
        """One world from nothing to nothing; the times of its ping-pong, if one is asked for.

        :data:`MANY` ranks call :func:`rings` instead, and the one figure is what they take in all.
        """
        with tempfile.TemporaryDirectory() as folder:
            self._client.send(f"{size} {count} {elements} {folder}/store".encode())
            return list(json.loads(self._client.recv(4096)))

    def close(self) -> None:
        """End the process."""
        self._client.close()
        self._process.wait()


def engine_once() -> None:
    """One case on a fresh world, everything gone at the end."""
    launcher = default_launcher()
    job = Job("answer", ((),) * RANKS, allowed=None)
    with ProcessWorld(launcher, RANKS, live_program(_all_reduce)) as world:
        outcome = world.run(job)
    launcher.settle()
    assert outcome.failure is None, outcome.failure


def broadcast(x: torch.Tensor, src: int) -> None:
    """A plain right answer."""
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)


def check_once() -> None:
    """A whole check of ``broadcast``, over all its world sizes and cases."""
    judge = Judge(default_launcher(), Settings(seed=1))
    submission = Submission.from_function(broadcast, "broadcast")
    verdict = judge.judge(catalogue()["broadcast"], submission)
    assert verdict.passed, verdict


def _timed(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _recorded_ping_pong(count: int, elements: int) -> list[float]:
    return ping_pong(dist.get_rank(), count, elements)


def recorder_cost(floor: Floor, elements: int, strict: bool) -> tuple[float, float]:
    """Microseconds per message with the recorder and without, alternating worlds."""
    launcher = default_launcher()
    job = Job("answer", ((200, elements),) * 2, allowed=None, strict=strict, seconds=100)
    recorded: list[float] = []
    plain: list[float] = []
    for _ in range(3):
        with ProcessWorld(launcher, 2, live_program(_recorded_ping_pong)) as world:
            outcome = world.run(job)
        launcher.settle()
        assert outcome.failure is None, outcome.failure
        recorded += outcome.results[0].value
        plain += floor.once(2, 200, elements)
    return statistics.median(recorded), statistics.median(plain)


def ring_cost(floor: Floor) -> tuple[float, float]:
    """Milliseconds of the processor that a call of the ring takes with the recorder and without.

    The first includes what the judge takes meanwhile.  The ranks of either have met before.
    """
    launcher = default_launcher()
    job = Job("answer", ((CALLS,),) * MANY, allowed=frozenset(), strict=True)
    recorded: list[float] = []
    plain: list[float] = []
    for _ in range(3):
        with ProcessWorld(launcher, MANY, live_program(rings)) as world:
            before = time.process_time()
            outcome = world.run(job)
            judge = 1e3 * (time.process_time() - before) / (1 + CALLS)
        launcher.settle()
        assert outcome.failure is None, outcome.failure
        recorded.append(judge + sum(result.value for result in outcome.results))
        plain += floor.once(MANY, CALLS)
    return statistics.median(recorded), statistics.median(plain)


def memory_per_rank() -> tuple[float, float]:
    """Megabytes of one rank's own, and with its share of what it has in common."""
    launcher = default_launcher()
    with ProcessWorld(launcher, RANKS, live_program(_all_reduce)) as world:
        world.run(Job("answer", ((),) * RANKS, allowed=None))
        infos = [psutil.Process(pid).memory_full_info() for pid in world.pids]
    launcher.settle()
    own = statistics.median(info.uss for info in infos) / 1e6
    shared = statistics.median(getattr(info, "pss", info.uss) for info in infos) / 1e6
    return own, shared


def figures(repetitions: int = 15) -> Iterator[Figure]:
    """Yield what worlds, a check and recorded messages cost, each beside its floor."""
    loopback()
    floor = Floor()
    engine_once(), floor.once(), check_once()  # warm
    times: dict[str, list[float]] = {"floor": [], "engine": [], "spawn": []}
    for i in range(repetitions):
        times["floor"].append(_timed(floor.once))
        times["engine"].append(_timed(engine_once))
        if i % 4 == 0:
            times["spawn"].append(_timed(spawn_once))
    least, ours, spawned = (statistics.median(times[name]) for name in times)
    what = f"one case on {RANKS} ranks"
    yield Figure(what, 1e3 * ours, "ms", f"{1e3 * least:.0f} ms forked by hand", ours / least, 1.2)
    beside = f"{spawned:.1f} s by mp.spawn"
    yield Figure(what, 1e3 * ours, "ms", beside, ours / spawned, 0.02)
    checks = statistics.median(_timed(check_once) for _ in range(repetitions))
    yield Figure("check(broadcast), warm", checks, "s", "one case, as above", checks / ours)
    for elements in (1, 250_000):
        for strict in (True, False):
            recorded, gloo = recorder_cost(floor, elements, strict)
            what = f"message of {4 * elements:,} bytes, {'checked' if strict else 'run'}"
            goal = 2.0 if elements > 1 and strict else None
            beside = f"{gloo:.0f} µs unrecorded"
            yield Figure(what, recorded, "µs", beside, recorded / gloo, goal)
    recorded, gloo = ring_cost(floor)
    what = f"processor time of a recorded ring_all_reduce on {MANY} ranks"
    yield Figure(what, recorded, "ms", f"{gloo:.0f} ms unrecorded", recorded / gloo, 3.0)
    floor.close()
    own, shared = memory_per_rank()
    yield Figure("memory of a rank", own, "MB", f"{shared:.0f} MB with its share", own / shared)
