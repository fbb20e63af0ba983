"""MPI, the backend that chapter 19 compares: torch's wheels come without theirs.

The entry point ``headcount.backends`` names :data:`grader.course.mpi.job.BACKEND`.
"""
