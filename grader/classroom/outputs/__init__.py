"""What comes of grading a class, as functions of plain data.

The rows of a class as gradebooks and CSV tables, pages for the instructor and for each student,
and what other systems import: Canvas, Gradescope, nbgrader.  Names, messages and files are a
stranger's: each output escapes them for its own medium.  Its doors:
:mod:`~grader.classroom.outputs.results` and :mod:`~grader.classroom.outputs.files`.
"""
