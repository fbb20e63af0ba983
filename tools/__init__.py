"""Builds the notebooks and the pictures of the course."""
