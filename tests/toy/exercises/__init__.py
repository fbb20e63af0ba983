"""The exercises of the toy course."""
