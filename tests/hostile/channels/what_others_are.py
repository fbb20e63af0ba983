# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import os
import resource
import time

import torch.distributed as dist


def ask(question):
    """What the kernel says about any other process of the sandbox."""
    if dist.get_world_size() == 1:
        raise LookupError("alone in the world")
    answers = {}
    for pid in range(1, 100):
        if pid != os.getpid():
            try:
                answers[pid] = question(pid)
            except OSError:
                continue
    if not answers:
        raise PermissionError
    return answers


ATTEMPTS = {
    "time that it has computed": lambda: ask(lambda pid: time.clock_gettime((~pid << 3) | 2)),
    "precision of its clock": lambda: ask(lambda pid: time.clock_getres((~pid << 3) | 2)),
    "its processors": lambda: ask(os.sched_getaffinity),
    "its scheduling": lambda: ask(os.sched_getscheduler),
    "its group": lambda: ask(os.getpgid),
    "its session": lambda: ask(os.getsid),
    "its priority": lambda: ask(lambda pid: os.getpriority(os.PRIO_PROCESS, pid)),
    "its limits": lambda: ask(lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE)),
}
