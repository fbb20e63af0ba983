"""The data that all other rooms share: diagnoses, errors, values, events, and how they travel.

The wire between the judge and a rank has messages in frames, and a codec of values that runs no
code.  This room imports from no other.  Its door: :mod:`~headcount.core.verdict`.
"""
