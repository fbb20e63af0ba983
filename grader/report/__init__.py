"""Renders verdicts and runs for people and programs: as text, HTML, JSON and pictures.

Text by students (names, messages, printed output) is untrusted here: every renderer escapes
it for its own medium.  The public entries are :mod:`~grader.report.text`,
:mod:`~grader.report.html` and :mod:`~grader.report.json`.
"""
