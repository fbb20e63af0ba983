"""The command ``attach``: who holds up a job of torch.distributed that hangs now.

Exit status: 0 no fault is seen, 2 the request was wrong, 3 a fault between ranks.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.core.errors import RequestError
from headcount.core.options import add_json, seconds, whole_number

if TYPE_CHECKING:
    from headcount.script.attach.verdicts import Verdict

__all__ = ["add_attach_options", "attach_command"]

#: The most seconds for which a job is looked at longer, to tell a slow rank from one that hangs.
_LONGER = 12.0


def add_attach_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``attach``."""
    parser.description = (
        "Reads a job that hangs now from outside, and names the rank that holds it up: nothing is"
        " stopped, and no code runs in its ranks. Linux; docs/attach.md says what it can know."
    )
    add = parser.add_argument
    add("pids", metavar="PID", nargs="*", type=whole_number,
        help="any rank of the job, its launcher, or a process that a rank has started")  # fmt: skip
    add("--wait", type=seconds, metavar="SECONDS", default=1.0,
        help="the time between the two readings of everything (1)")  # fmt: skip
    add("--store", type=_address, metavar="HOST:PORT",
        help="the job's store, where no environment of its ranks names it")  # fmt: skip
    add("--write", type=Path, metavar="DIR",
        help="leave what was read in a folder as well, on each machine of a job")  # fmt: skip
    add("--job", type=Path, metavar="DIR", help="judge what --write has left on all machines")
    add_json(add)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port[:6]) < 1 << 16:
        raise argparse.ArgumentTypeError(f"HOST:PORT is needed, not {text[:60]!r}")
    return host.strip("[]"), int(port)


def attach_command(request: argparse.Namespace) -> int:
    """Report on a job: 3 if a fault between its ranks is seen, 0 if none is.

    Raises:
        RequestError: there is no such job, or this is not Linux.
    """
    if bool(request.pids) == (request.job is not None):
        raise RequestError("give the number of a process of the job, or --job DIR")
    if request.job is not None and (request.write or request.store):
        raise RequestError("--write and --store are for a job that runs: leave out --job")
    from headcount.script.attach.reading_files import read_folder, write_readings
    from headcount.script.attach.verdicts import verdicts_of
    from headcount.script.attach.waits import waits_of

    if request.job is not None:
        readings = read_folder(request.job)
        found = waits_of(readings)
        verdicts = verdicts_of(readings, found)
    else:
        if sys.platform != "linux":
            raise RequestError("attach reads what Linux says of processes, and this is not Linux")
        from headcount.script.attach.observation import Observer

        observer = Observer(request.pids, request.store)
        readings = observer.look()
        pause, end = request.wait, time.monotonic() + request.wait + _LONGER
        while True:
            time.sleep(pause)
            observer.look_again(readings)
            found = waits_of(readings)
            verdicts = verdicts_of(readings, found)
            missing = _missing_time(verdicts)
            if not 0 < missing < end - time.monotonic():
                break
            pause = min(missing, 2 * pause)  # a job that was only slow is soon seen to move
    if request.write is not None:
        path = write_readings(readings, request.write)
        print(f"headcount: what was read is in {path}", file=sys.stderr)
    from headcount.script.attach.attach_report import attach_json, attach_text
    from headcount.script.report import ExitStatus, show

    text = attach_text(readings, found, verdicts, shutil.get_terminal_size().columns)
    show(text, attach_json(readings, found, verdicts), request.json)
    is_fault = any(one.is_fault for one in verdicts)
    return ExitStatus.COMMUNICATION_FAULT if is_fault else ExitStatus.OK


def _missing_time(verdicts: list[Verdict]) -> float:
    """Return for how much longer others have to wait before the first culprit is accused."""
    if not verdicts or verdicts[0].is_fault or not verdicts[0].patience:
        return 0.0
    return verdicts[0].patience - verdicts[0].seconds + 0.1
