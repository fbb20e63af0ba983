"""The built-in collectives of simulated ranks, by the algorithms of the literature.

Each collective has a module with a function for every algorithm, written over a
:class:`~grader.simulation.communicator.Communicator`; what is combined or moved is always
a flat tensor, or blocks of one.  :mod:`~grader.simulation.algorithms.catalogue` names them.

A source that is named briefly is one of
:data:`~grader.simulation.algorithms.catalogue.SOURCES`.
"""
