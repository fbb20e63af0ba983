"""The judge's side of a world: how its ranks are started, supervised and ended, and why it failed.

This room has the launchers, the sandboxes, the supervisor and the root cause that it names, the
kernel's counters, the registry of backends, and the building of C++ answers.  Its door:
:mod:`headcount.launch.launchers`.
"""
