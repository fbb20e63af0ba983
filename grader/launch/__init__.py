"""Worlds from outside: how ranks are started, supervised and ended, and why they failed.

The fork server's client, sandboxes and their pool, the supervisor and the cause that it names,
what the kernel counted, and C++ answers.  Its door: :mod:`grader.launch.launchers`.
"""
