"""Ranks that share one process and a virtual clock.

A simulated world runs the same function as a real one, on thousands of ranks.  Every rank is a
greenlet; a message takes the time that a description of a cluster gives it, and nothing else
takes any.  Its door: :func:`headcount.simulation.process.simulated`.
"""
