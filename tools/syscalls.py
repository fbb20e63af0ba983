"""Traces the system calls of sealed ranks, and says which rules of the filter they need.

    python -m tools.syscalls           # while the solutions are graded
    python -m tools.syscalls FOLDER    # or anything else that ``grade`` takes

It needs root, bubblewrap and strace, and takes some twenty times as long as grading does.  A rule
that no run needs stands in :data:`headcount.rank.process_limits.RULES` for a reason of its own, or
has to go; a call that was refused may be missing there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from headcount.rank.process_limits import RULES, Rule

ROOT = Path(__file__).resolve().parent.parent

#: A call in strace's words, its arguments as numbers, or a process's end.
_LINE = re.compile(r"(\d+) +(?:(\w+)\((.*)\) += (.*)|(\+\+\+).*)")
_BEGUN = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")

#: Process ids in the words of ``--pidns-translation``, outside of the sandbox.
_OUTSIDE = re.compile(r"(\d+)(?: /\* (\d+) in strace's PID NS \*/)?")

_SET_MODE_FILTER = 1
_THREAD_FLAGS = 0x10100


class Trace:
    """What sealed processes have called.

    Attributes:
        used: how often each call of each rule was made.
        refused: how often each call was, that no rule allows.
        sealed: how many processes there were.
    """

    def __init__(self) -> None:
        self.used: Counter[tuple[Rule, str]] = Counter()
        self.refused: Counter[str] = Counter()
        self.sealed = 0
        self._begun: dict[str, str] = {}
        self._process: dict[str, str] = {}
        self._sealed: set[str] = set()

    def read(self, lines: Iterable[str]) -> None:
        """Read lines of ``strace -f --pidns-translation``, whose arguments are raw but clone's."""
        for line in lines:
            if (begun := _BEGUN.match(line)) is not None:
                self._begun[begun[1]] = begun[2]
                continue
            if (rest := _RESUMED.match(line)) is not None:
                line = f"{rest[1]} {self._begun.pop(rest[1], '')}{rest[2]}"
            if (found := _LINE.match(line)) is None:
                continue
            thread, name, arguments, answer, ended = found.groups()
            if ended:
                self._process.pop(thread, None)
                self._sealed.discard(thread)
            else:
                self._note(thread, name, arguments, answer)

    def _note(self, thread: str, name: str, arguments: str, answer: str) -> None:
        process = self._process.get(thread, thread)
        if name in ("clone", "clone3"):
            child = _OUTSIDE.match(answer)
            if child is not None:
                number = child[2] or child[1]
                # the system gives numbers again, also that of a thread which ended before this
                self._sealed.discard(number)
                self._process[number] = process if "CLONE_THREAD" in arguments else number
            numbers = [_THREAD_FLAGS if "CLONE_THREAD" in arguments else 0]
        else:
            numbers = [int(one, 16) for one in re.findall(r"\b(?:0x)?[0-9a-f]+\b", arguments)]
        if process in self._sealed:
            rule = next((one for one in RULES if _covers(one, name, numbers)), None)
            if rule is not None:
                self.used[rule, name] += 1
            if rule is None or (" EPERM " in answer and not rule.error):
                self.refused[f"{name}({arguments})"] += 1
        elif name == "seccomp" and numbers[:1] == [_SET_MODE_FILTER] and answer == "0":
            self._sealed.add(process)
            self.sealed += 1


def _covers(rule: Rule, name: str, arguments: list[int]) -> bool:
    """Return whether a rule is about a call; a rank's own process id is taken to be right."""
    if name not in rule.calls.split():
        return False
    return not rule.when or any(
        all(
            one.value is None or arguments[one.position] & one.mask == one.value & one.mask
            for one in conditions
        )
        for conditions in rule.when
    )


def main() -> int:
    """Grade under strace, and print what each rule was needed for."""
    parser = argparse.ArgumentParser(prog="python -m tools.syscalls", description=__doc__)
    parser.add_argument("submissions", type=Path, nargs="?", default=ROOT / "solutions")
    parser.add_argument("--layout", default="student", help="of the submissions, as for grade")
    wanted = parser.parse_args()
    trace = Trace()
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as results:
        grading = [sys.executable, "-m", "grader", "grade", str(wanted.submissions)]
        grading += ["--layout", wanted.layout, "--out", results, "--sandbox", "bubblewrap"]
        # by the clock, everything takes longer here
        grading += ["--timeout", "7200", "--seconds", "30"]
        command = ["strace", "-f", "-qq", "--pidns-translation", "-e", "signal=none"]
        command += ["-e", "raw=!clone,clone3", "-o", f"/dev/fd/{writer}", *grading]
        with subprocess.Popen(command, cwd=ROOT, pass_fds=[writer]) as process:
            os.close(writer)
            with open(reader, encoding="utf-8", errors="replace") as lines:
                trace.read(lines)
    print(f"{trace.sealed} sealed processes")
    for rule in RULES:
        print(rule.reason)
        for name in rule.calls.split():
            print(f"{trace.used[rule, name] or 'unused':>9}  {name}")
    for call, count in trace.refused.most_common():
        print(f"{count:>9}  refused: {call}")
    return 0 if process.returncode == 0 and trace.sealed else 1


if __name__ == "__main__":
    sys.exit(main())
