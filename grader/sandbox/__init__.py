"""What strangers' code needs: bubblewrap, the kernel's counters, and a compiler out of reach.

A sandbox is a launcher of :mod:`headcount.launch.launchers`, so that worlds and the judge know
nothing of it.  Its door: :func:`~grader.sandbox.sandboxes.new_sandbox`.
"""

__all__ = ["SANDBOX"]

#: The folder in a sandbox in which our modules are shown.
SANDBOX = "/course"
