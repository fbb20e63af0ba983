"""How exercises are declared, and the exercises of the course.

It holds cases, oracles, limits on traffic, and the choice of hints;
:mod:`~grader.course.chapters` has a module for each chapter.  The public entry is
:class:`~grader.course.exercise.Exercise`.
"""
