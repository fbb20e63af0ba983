"""A whole class: many submissions as they really arrive, judged and kept.

What was downloaded is read as one kind of tree, its files are told whose they are, workers judge
them in sandboxes, and a store keeps every verdict; :mod:`~grader.classroom` makes
gradebooks and pages of it.  Its doors: :func:`grader.classroom.arrivals.collect` and
:mod:`grader.classroom.command`.
"""
