"""``python -m grader bench``: how fast a collective is, a student's or torch's own.

A plan says what is measured; ranks of our own, or those of ``torchrun``, measure it and say what
came of it; a table shows that.  Nothing records or seals these ranks, since that would be measured,
too.  The arithmetic is in :mod:`grader.course.bandwidth`.  Its door:
:func:`grader.bench.options.serve`.
"""
