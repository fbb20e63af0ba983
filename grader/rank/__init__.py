"""What runs inside a rank: the recording process group, and what it stands on.

Requests and futures that say who waits, transports (gloo, MPI, NCCL), limits, and the seal on
system calls.  Its door: :func:`grader.rank.guard.join`.
"""
