"""The filter on system calls of sealed ranks, and the tool that says what it is needed for."""

from __future__ import annotations

import pytest

from grader.sandbox.sandboxes import missing
from headcount.rank.process_limits import RULES
from tools.syscalls import Trace

#: A rank is sealed, begins threads, and forks nothing; the process beside it is not sealed.
TRACED = """\
7 openat(0xffffff9c, 0x7fff, 0, 0) = 0x3
7 seccomp(0x1, 0x1, 0x55d0) = 0
7 getpid() = 0x4
7 madvise(0x7f00, 0x1000, 0x4) = 0
7 madvise(0x7f00, 0x1000, 0x15) = -1 EPERM (Operation not permitted)
7 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD, tls=0x7f) = 5 /* 9 in strace's PID NS */
8 getpid() = 0x8
9 futex(0x7f00, 0x80, 0, 0 <unfinished ...>
8 fadvise64(0x3, 0, 0, 0x4) = 0
9 <... futex resumed>) = 0
9 futex(0x7f00, 0, 0, 0) = -1 EAGAIN (Resource temporarily unavailable)
9 +++ exited with 0 +++
7 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD, tls=0x7f) = 6 /* 9 in strace's PID NS */
8 clone(child_stack=0, flags=SIGCHLD) = 7 /* 9 in strace's PID NS */
9 getuid() = 0
"""


def test_every_rule_has_a_reason_and_no_call_is_allowed_twice():
    assert all(rule.reason and rule.calls.split() for rule in RULES)
    free = [name for rule in RULES if not rule.when for name in rule.calls.split()]
    bound = {name for rule in RULES if rule.when for name in rule.calls.split()}
    assert len(set(free)) == len(free)
    assert not bound.intersection(free)


@pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}")
def test_every_rule_names_calls_of_linux():
    import pyseccomp

    architectures = (pyseccomp.Arch.X86_64, pyseccomp.Arch.AARCH64)
    names = {name for rule in RULES for name in rule.calls.split()}
    unknown = [
        name
        for name in names
        if all(pyseccomp.resolve_syscall(arch, name) < 0 for arch in architectures)
    ]
    assert unknown == []


def test_the_tool_counts_what_sealed_processes_call_and_what_is_refused():
    trace = Trace()
    trace.read(TRACED.splitlines())
    assert trace.sealed == 1
    used = {(name, rule.error != 0): count for (rule, name), count in trace.used.items()}
    assert used == {
        ("getpid", False): 1,
        ("madvise", False): 1,
        ("clone", False): 2,
        ("futex", False): 1,
        ("futex", True): 1,
    }
    assert dict(trace.refused) == {"madvise(0x7f00, 0x1000, 0x15)": 1}
