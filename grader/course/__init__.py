"""The exercises of this course, and all that is said of them.

:mod:`~grader.course.chapters` has a module for each chapter, ``help`` the hints, ``answers`` the
programs that are known to be right or wrong.  The public entry is
:func:`~grader.course.chapters.discover`.
"""
