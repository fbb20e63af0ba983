"""Many submissions: graded safely, kept, and reported.

- :mod:`~grader.classroom.outputs` — what comes of it: gradebooks and pages.
"""
