"""Ranks that share one process and a virtual clock.

A simulated world runs the same function as a real one, by the thousand: every
rank is a greenlet, a message takes the time that a description of a cluster
says, and nothing else takes any.  :mod:`grader.simulation.scheduler` is the clock
and who runs next, :mod:`grader.simulation.world` what they send each other,
:mod:`grader.simulation.clusters` what may be described,
:mod:`grader.simulation.network` how long a message takes there, and
:mod:`grader.simulation.calls` what ``torch.distributed`` is for the ranks.
"""
