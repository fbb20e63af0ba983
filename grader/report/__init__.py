"""Verdicts and runs as people and programs read them: text, HTML, JSON and pictures.

What a student wrote (names, messages, printed text) is data here: every renderer escapes it
for its own medium.  Its doors: :mod:`~grader.report.text`, :mod:`~grader.report.html` and
:mod:`~grader.report.json`.
"""
