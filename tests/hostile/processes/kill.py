# promise: a rank starts no process and touches none but itself
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import os
import signal


def each(how):
    """To the parent, to siblings, to the first process, to everybody."""
    me, reached = os.getpid(), []
    pids = {os.getppid(), 0, 1, 2, -1, -me, *range(me - 12, me + 12)} - {me}
    for pid in sorted(pids):
        try:
            how(pid)
            reached.append(pid)
        except OSError:
            continue
    return reached or os.stat("/nothing/found")


ATTEMPTS = {
    "stop": lambda: each(lambda pid: os.kill(pid, signal.SIGSTOP)),
    "kill": lambda: each(lambda pid: os.kill(pid, signal.SIGKILL)),
    "ask": lambda: each(lambda pid: os.kill(pid, 0)),
    "group": lambda: os.killpg(os.getpgrp(), signal.SIGSTOP) or "stopped",
    "descriptor": lambda: each(os.pidfd_open),
    "threads": lambda: each(lambda pid: call("tgkill", pid, pid, 9)),
    "queue": lambda: each(lambda pid: call("sigqueue", pid, 9, None)),
    "priority": lambda: each(lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19)),
    "limits": lambda: each(
        lambda pid: __import__("resource").prlimit(pid, 7) if pid > 0 else call("kill", pid, 0)
    ),
}
