"""The words that every other room speaks: what happened, and how it travels.

Verdicts and errors, values and how they are compared and shown, events, and the wire between
the judge and a rank: frames, a codec that runs no code, and the messages themselves.  This
room imports from no other.  Its door: :mod:`~grader.core.verdict`.
"""

__all__ = ["__version__"]

#: The version of the grader; the package's metadata reads it from here.
__version__ = "0.1.0"
