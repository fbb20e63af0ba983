"""A whole class: many submissions as they really arrive, judged and kept.

``arrivals`` finds out which student handed in which files, ``engines`` have them judged in
sandboxes (``grading``), and a ``store`` keeps every verdict.  ``results`` holds a graded class as
plain data, which ``pages`` and ``exports`` write; each escapes text for its own medium.
Its doors: :func:`grader.classroom.command.grade` and :func:`grader.classroom.exports.export`.
"""
