"""``python -m grader bench``: how fast a collective is, a student's or torch's own.

A ``plan`` says what is measured, a ``rank`` of this machine's or of ``torchrun``'s measures it, and
the ``command`` shows the results.  These ranks are neither recorded nor sealed, since that would be
measured as well.  The arithmetic is in :mod:`grader.course.costs`.  Its door:
:func:`grader.course.bench.command.serve`.
"""
