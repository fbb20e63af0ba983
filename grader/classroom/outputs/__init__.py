"""What comes of grading a class, as functions of plain data.

- :mod:`~grader.classroom.outputs.results` — the data: a class, its rows.
- :mod:`~grader.classroom.outputs.class_page` — what the rows say together.
- :mod:`~grader.classroom.outputs.results` — text in CSV files, which spreadsheets may obey.
- :mod:`~grader.classroom.outputs.results` — ``gradebook.csv``.
- :mod:`~grader.classroom.outputs.pages` — templates, style and script of pages.
- :mod:`~grader.classroom.outputs.class_page` — ``class.html``, for the instructor.
- :mod:`~grader.classroom.outputs.files` — ``feedback/<key>.html``, for a student.
- :mod:`~grader.classroom.outputs.files` — ``similar.html``: who to compare.
- :mod:`~grader.classroom.outputs.canvas`,
  :mod:`~grader.classroom.outputs.gradescope`,
  :mod:`~grader.classroom.outputs.nbgrader` — for other systems.
- :mod:`~grader.classroom.outputs.autograder` — a zip that grades on Gradescope.
- :mod:`~grader.classroom.outputs.files` — all of it, written to a folder.

Names, messages and files are a stranger's: each output escapes them for its own
medium.
"""
