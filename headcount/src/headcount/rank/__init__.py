"""What runs inside a rank: the recording process group, and what it stands on.

It holds the requests and futures that report waits, the transports (gloo, NCCL), the limits
on a process, and the filter on system calls.  Its door: :func:`headcount.rank.guard.join`.
"""
