"""Verdicts as people and programs read them.

- :mod:`~grader.reports.text` — for a terminal, and as plain text for notebooks.
- :mod:`~grader.reports.html` — for a notebook's output.
- :mod:`~grader.reports.json` — for other programs.

What a student wrote (names, messages, printed text) is data here: every
renderer escapes it for its own medium.
"""
