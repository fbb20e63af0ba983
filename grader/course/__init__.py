"""The exercises of this course, and all that is said of them.

:mod:`~grader.course.chapters` has a module for each chapter, ``help`` the hints, ``mistakes`` the
programs that people write by mistake.  The public entry is
:func:`~grader.course.chapters.discover`.
"""
