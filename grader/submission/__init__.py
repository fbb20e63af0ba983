"""What was handed in: a live function, a Python file or a notebook, as definitions.

Which statements are kept, and fingerprints of functions by which copies are found.
Its door: :class:`~grader.submission.submission.Submission`.
"""
