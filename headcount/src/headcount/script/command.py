"""The command ``run``: it starts a script's ranks, hands on what they print, and says why it hangs.

Exit status: 0 every rank has ended well; 1 the script has failed by itself (an exception, a status
of its own, a signal); 2 the request was wrong; 3 a fault of communication (a deadlock, calls that
do not match); 4 the time limit is over, and nothing is proved; 5 headcount itself has failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import psutil

from headcount.core.commands import say, settle_press
from headcount.core.errors import RequestError
from headcount.core.options import add_json, seconds, whole_number
from headcount.core.resource_limits import DEFAULTS
from headcount.core.semantics import Semantics, add_semantics
from headcount.core.source_locations import following_script
from headcount.rank.launcher_variables import LAUNCHERS

if TYPE_CHECKING:
    from headcount.core.verdict import Failure
    from headcount.launch.launchers import Launcher
    from headcount.rank.script import Script
    from headcount.script.report import ScriptRun
    from headcount.script.tally import CallTally
    from headcount.trace.trace import Trace

__all__ = [
    "add_explain_options",
    "add_run_options",
    "explain_command",
    "run_on_ranks",
    "run_script_command",
]

#: Operations of each rank that the record keeps.
KEPT = 5_000

#: The same where NCCL's rules are applied, which need all of them.
KEPT_FOR_NCCL = 200_000

#: What is said of a run that has more.
_TOO_LONG = (
    f"NCCL's rules are not applied: a rank has begun more than {KEPT_FOR_NCCL:,} operations; run"
    " fewer steps"
)

#: What is said of a run that shows nothing.
_ALONE = (
    "the ranks never communicated: none has called a collective, or sent a message. A library that"
    " looks for GPUs may take each rank for the only one"
)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command; all that follows the script is the script's."""
    add = parser.add_argument
    most = f"how many ranks, {DEFAULTS.ranks} at most (default: WORLD_SIZE, else 2)"
    add("--ranks", type=whole_number, metavar="N", help=most)
    add("--timeout", type=seconds, metavar="S", help="end it after so many seconds (never)")
    add(
        "--cuda",
        choices=["map", "available", "off"],
        default="map",
        help="map: what the script does on a GPU is done on the CPU, and nccl is gloo; available:"
        " torch.cuda.is_available() is true besides; off: torch's own errors (default: map)",
    )
    add_json(add)
    add("--trace", metavar="FILE", help="write a trace that Perfetto opens: ui.perfetto.dev")
    add("--flight-recorder", metavar="DIR", help="write dumps as PyTorch's flight recorder does")
    add_semantics(parser)
    text = "replicas: does every rank hold the same after each step of an optimizer?"
    add("--check", choices=["replicas"], help=text)
    text = "whose variables tell a rank which one it is, such as SLURM_PROCID (torchrun)"
    add("--launcher", choices=LAUNCHERS, default=LAUNCHERS[0], help=text)
    add("--strict", action="store_true", help="messages left over at the end are a fault, too")
    add("--seed", type=int, help="repeat the random numbers of an earlier run")
    add("-m", dest="module", action="store_true", help="SCRIPT is a module, as of python -m")
    add("script", metavar="SCRIPT", help="the script, as torchrun takes it")
    add("arguments", metavar="...", nargs=argparse.REMAINDER, help="its own arguments")


def add_explain_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``explain``."""
    text = "folders, files or patterns; the files' names end in the numbers of their ranks"
    parser.add_argument("dumps", metavar="DUMPS", nargs="+", help=text)
    text = (
        "dumps of the same job, minutes earlier: which ranks have gone on since, and which stand?"
    )
    parser.add_argument("--before", metavar="DUMPS", nargs="+", help=text)
    add_json(parser.add_argument)


def run_script_command(
    request: argparse.Namespace, environment: Mapping[str, str] | None = None
) -> int:
    """Run a script as the options say, report on it, and return the exit status.

    Args:
        request: the options.
        environment: the variables of the script's environment; those of this process by default.

    Raises:
        RequestError: there is no such script, or so many ranks cannot be.
    """
    variables = dict(os.environ if environment is None else environment)
    if _RUN in variables and variables.get("LOCAL_RANK", "0") != "0":
        return _wait_for_first_rank()
    ranks = request.ranks or _ranks_of(variables)
    if ranks > DEFAULTS.ranks:
        asked = f"--ranks {ranks}" if request.ranks else f"WORLD_SIZE={ranks}"
        raise RequestError(
            f"{asked} is too many: each rank is a process of its own on this machine, and there can"
            f" be {DEFAULTS.ranks}; give --ranks 1 to {DEFAULTS.ranks}"
        )
    folder = str(Path.cwd())
    if not request.module and not os.path.exists(request.script):
        raise RequestError(f"there is no script {request.script}; -m runs a module")
    inside = Path(request.script, "__main__.py")
    if not request.module and Path(request.script).is_dir() and not inside.is_file():
        raise RequestError(f"{request.script} is a folder, and there is no {inside} to run")
    dumps = request.flight_recorder
    if dumps and Path(dumps).exists() and not Path(dumps).is_dir():
        raise RequestError(f"--flight-recorder {dumps} is a file; name a folder")
    for option, path in (("--json", request.json), ("--trace", request.trace)):
        if not path or path == "-":
            continue
        if Path(path).is_dir():
            raise RequestError(f"{option} {path} is a folder; name a file")
        if not os.access(Path(path).absolute().parent, os.W_OK):
            raise RequestError(f"{option} {path}: its folder is not there, or cannot be written to")
    # torch is imported here once, for all ranks
    from headcount.launch.launchers import default_launcher, fork_server_here

    fork_server_here()
    from headcount.rank.script import Script
    from headcount.script.report import json_report, text_report, write_file

    script = Script(
        request.script,
        request.module,
        list(request.arguments),
        folder,
        _environment(variables, request.launcher),
        # not the folder that Python puts first, which is this command's
        [one for one in sys.path[not getattr(sys.flags, "safe_path", False) :] if one] + [_home()],
        request.cuda,
        request.launcher,
    )
    ran, trace = run_on_ranks(
        script,
        ranks,
        default_launcher(),
        sys.stderr if request.json == "-" else sys.stdout,
        request.timeout or math.inf,
        request.seed,
        Semantics(request.semantics),
        request.strict,
        request.check == "replicas",
    )
    with following_script(script.root, folder):
        report = text_report(ran, shutil.get_terminal_size().columns)
        print(report, file=sys.stderr)
        if request.trace:
            from headcount.script.chrome_trace import chrome_trace

            write_file("--trace", request.trace, json.dumps(chrome_trace(trace, ran.failure)))
    if dumps:
        from headcount.trace.flight_recorder import write_dumps

        try:
            write_dumps(trace, Path(dumps))
        except OSError as error:
            text = f"--flight-recorder {dumps} cannot be written: {error.strerror}"
            raise RequestError(text) from None
    if request.json:
        text = json_report(ran) + "\n"
        if request.json == "-":
            sys.stdout.write(text)
        else:
            write_file("--json", request.json, text)
    return ran.status()


def explain_command(request: argparse.Namespace) -> int:
    """Explain the dumps of a job: 0 if they show no fault, 3 if they show one.

    Raises:
        RequestError: there are no dumps, or the earlier ones are none of this job's.
    """
    from headcount.script.explain import explain, explanation_json, explanation_text
    from headcount.script.report import ExitStatus, show
    from headcount.trace.flight_recorder import read_dumps

    if request.before and {*request.before} == {*request.dumps}:
        raise RequestError("--before names the same dumps; it takes those of an earlier moment")
    dumps = read_dumps(request.dumps)
    found = explain(dumps, read_dumps(request.before) if request.before else None)
    text = explanation_text(found, dumps, shutil.get_terminal_size().columns)
    show(text, explanation_json(found), request.json)
    return ExitStatus.COMMUNICATION_FAULT if found.is_fault else ExitStatus.OK


def run_on_ranks(
    script: Script,
    ranks: int,
    launcher: Launcher,
    out: TextIO,
    seconds: float = math.inf,
    seed: int | None = None,
    semantics: Semantics = Semantics.GLOO,
    strict: bool = False,
    replicas: bool = False,
) -> tuple[ScriptRun, Trace]:
    """Run a script on recorded ranks, and hand on what they print.

    Return what it came to, and the record of the last operations.

    Args:
        script: the script.
        ranks: the number of ranks.
        launcher: starts them.
        out: where to print what they print.
        seconds: after which it is ended.
        seed: of the random numbers that ranks draw; a fresh one by default.
        semantics: by whose rules a run is judged that ends well.
        strict: whether what is left over when all ranks have ended is a fault.
        replicas: whether to compare what ranks hold of their replicas.
    """
    from headcount.core.packing import live_program
    from headcount.core.random_numbers import fresh_seed
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job
    from headcount.rank.script import run_script
    from headcount.script.report import ScriptRun
    from headcount.script.tally import CallTally
    from headcount.trace.nccl_semantics import nccl_fault, undecided
    from headcount.trace.trace import MAKE_GROUPS

    judged = semantics is Semantics.NCCL
    follower = RunFollower(ranks, CallTally(KEPT_FOR_NCCL if judged else KEPT), out)
    job = Job(
        run_script.__name__,
        ((),) * ranks,
        allowed=None,
        strict=False,
        seconds=seconds,
        replicas=replicas,
        follower=follower,
    )
    program = live_program(run_script, script)
    drawn = fresh_seed() if seed is None else seed
    with (
        following_script(script.root, script.folder),
        ProcessWorld(launcher, ranks, program, seed=drawn, script=True) as world,
        _heeded(follower),
    ):
        try:
            outcome = world.run(job)
        finally:
            follower.flush()
    failure, remarks = outcome.failure, outcome.trace.warnings
    if judged and failure is None:
        if all(ops[0].number == 0 for ops in map(list, outcome.trace.operations) if ops):
            failure, note = nccl_fault(outcome.trace), undecided(outcome.trace)
            remarks = (note, *remarks) if note else remarks
        else:
            remarks = (_TOO_LONG, *remarks)
    if ranks > 1 and not failure and {kind for _, kind in follower.tally.calls} <= MAKE_GROUPS:
        remarks = (_ALONE + ": try --cuda available" * (script.cuda == "map"), *remarks)
    if outcome.replicas is not None:
        failure, notes = outcome.replicas.judged(failure)
        remarks = (*notes, *remarks)
    ran = ScriptRun(
        [script.name, *script.arguments],
        ranks,
        failure or (follower.left if strict else None),
        follower.left,
        remarks,
        follower.tally,
        outcome.seconds,
        outcome.failure is None,
        follower.signal,
        outcome.replicas.compared if outcome.replicas is not None else 0,
    )
    return ran, outcome.trace


# Inside torchrun. -------------------------------------------------------------------
#
# torchrun has started a process for each rank.  The first one runs the command, with ranks of its
# own, and the others wait until it has ended; if it fails, torchrun ends them.

#: The variable by which a process knows that torchrun has started it.
_RUN = "TORCHELASTIC_RUN_ID"


def _wait_for_first_rank() -> int:
    """Wait until the process that torchrun has started as the first rank has ended."""
    for sibling in psutil.Process(os.getppid()).children():
        # one that has ended meanwhile need not be waited for
        with contextlib.suppress(psutil.Error):
            if sibling.environ().get("LOCAL_RANK") == "0":
                sibling.wait()
    return 0


def _ranks_of(variables: Mapping[str, str]) -> int:
    """Return the number of ranks that the environment asks for, or 2.

    Raises:
        RequestError: it asks for no number, or for ranks on several machines.
    """
    asked = variables.get("WORLD_SIZE", "2")
    here = variables.get("LOCAL_WORLD_SIZE", asked)
    if _RUN in variables and here != asked:
        raise RequestError(f"{here} of {asked} ranks are on this machine, and all have to be")
    if not asked.isdecimal() or int(asked) < 1:
        raise RequestError(f"WORLD_SIZE is {asked!r}, and no number of ranks: give --ranks N")
    return int(asked)


#: Variables of ``torchrun`` that differ by rank, or that this command sets.
_BY_RANK = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK"})


def _environment(variables: Mapping[str, str], launcher: str) -> dict[str, str]:
    """Return the variables that are the same for all ranks; only torchrun says where to meet."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    same = {name: value for name, value in variables.items() if name not in _BY_RANK}
    return {**(meeting if launcher == "torchrun" else {}), **same}


def _home() -> str:
    """Return the folder that headcount is imported from, which ranks go on importing from."""
    return str(Path(__file__).resolve().parent.parent.parent)


def _free_port() -> int:
    """Return a port that is free now, for scripts that make a store of their own."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


#: Seconds within which a second SIGTERM is the first one's.
_TWICE = 1.0


@contextlib.contextmanager
def _heeded(follower: RunFollower) -> Iterator[None]:
    """Let SIGTERM stop the run as Ctrl-C does, and SIGQUIT show where its ranks are."""

    last = -math.inf

    def stop(number: int, _: object) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        # `timeout` signals the process, and at once its group
        if last - before > _TWICE:
            raise KeyboardInterrupt(number)

    def ask(*_: object) -> None:
        follower.asked = True

    heeds: dict[int, Callable[[int, object], None]] = {signal.SIGTERM: stop, signal.SIGQUIT: ask}
    before = {number: signal.getsignal(number) for number in heeds}
    free = threading.current_thread() is threading.main_thread()
    mine = [one for one, handler in before.items() if free and handler is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, heeds[number])
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


class RunFollower:
    """Follows a run: it prints what the ranks print, line by line, with the rank before it.

    Args:
        ranks: the number of ranks.
        tally: counts what they do.
        out: where to print.
    """

    def __init__(self, ranks: int, tally: CallTally, out: TextIO) -> None:
        self.tally = tally
        self.left: Failure | None = None
        #: the signal that has stopped the run, or 0
        self.signal = 0
        self.asked = False
        self.keeps = tally.keeps
        self.posted, self.done, self.called = tally.posted, tally.done, tally.called
        self._out = out
        self._parts = [bytearray() for _ in range(ranks)]
        self._width = len(str(ranks - 1))

    def printed(self, rank: int, data: bytes) -> None:
        """Print the lines that are complete; progress bars end theirs by a carriage return."""
        first, *more = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        part = self._parts[rank]
        part += first
        if more:
            *lines, rest = more
            lines.insert(0, bytes(part))
            # before they are printed: who sees them may press Ctrl-C at once, which ends this here
            part[:] = rest
            self._print(rank, lines)

    def leftover(self, failure: Failure) -> None:
        """Note what was wrong when all ranks had ended."""
        self.left = failure

    def stopped(self, number: int) -> None:
        """Note the signal that has stopped the run, of which the report will speak."""
        settle_press()
        self.signal = number

    def asks(self) -> bool:
        """Return whether SIGQUIT has come since this was last called."""
        asked, self.asked = self.asked, False
        return asked

    def shows(self, where: Failure, silent: float) -> None:
        """Print where the ranks are, in a line."""
        told = "; ".join((where.message, *where.detail))
        say("headcount", f"no call for {silent:.0f} s, and nothing is proved: {told}")

    def flush(self) -> None:
        """Print what stands in lines that have not ended."""
        for rank, part in enumerate(self._parts):
            lines = [bytes(part)] if part else []
            part.clear()
            self._print(rank, lines)

    def _print(self, rank: int, lines: Sequence[bytes]) -> None:
        for line in lines:
            text = line.decode("utf-8", "replace")
            print(f"[{rank:>{self._width}}] {text}".rstrip(" "), file=self._out)
        if lines:
            self._out.flush()
