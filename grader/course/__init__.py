"""How an exercise is declared, and the exercises of the course.

Cases, oracles, limits and hints; :mod:`~grader.course.chapters` has a module for each chapter.
Its door: :class:`~grader.course.exercise.Exercise`.
"""
