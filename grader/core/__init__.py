"""The data that all other rooms share: verdicts, errors, values, events, and how they travel.

The wire between the judge and a rank has messages in frames, and a codec of values that runs no
code.  This room imports from no other.  Its door: :mod:`~grader.core.verdict`.
"""

__all__ = ["__version__"]

#: The version of the grader, which the package's metadata reads from here.
__version__ = "1.0.0"
