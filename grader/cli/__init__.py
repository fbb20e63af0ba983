"""The command line, ``python -m grader``: its options, and what the commands print.

Its door: :func:`grader.cli.main.main`.
"""
