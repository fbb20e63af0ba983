"""The command line, ``python -m grader``: requests, and what they print.

Its door: :func:`grader.cli.main.main`.
"""
