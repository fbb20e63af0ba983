"""Grading a whole class."""
