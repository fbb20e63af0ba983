"""Submissions: a live function, a Python file or a notebook, as definitions.

This room decides which statements are kept, and makes the fingerprints of functions by which
copies are found.  Its door: :class:`~grader.submission.submission.Submission`.
"""
