"""``python -m grader bench``: how fast a collective is, a student's or torch's own.

- ``plan`` — what was asked for, checked
- ``results`` — what ranks say: what was measured, or what went wrong
- ``contracts`` — how a collective is called, and what it must leave where
- ``rank`` — what one rank does, in any process group that is set up
- ``joining`` — how a rank gets into its group, and notices that it hangs
- ``starting`` — ranks of our own, on this machine
- ``table``, ``plot`` — what was measured, for people and programs
- ``options``, ``command`` — the request; brings them together, alone or under ``torchrun``

The arithmetic is in :mod:`grader.course.bandwidth`.
"""
