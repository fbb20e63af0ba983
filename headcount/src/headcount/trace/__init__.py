"""What the judge derives from the events of a run.

It matches sends with receives, finds deadlocks in the wait-for graph, explores the orders in
which wildcards can be matched, and counts rounds.
Its door: :class:`~headcount.trace.message_matcher.MessageMatcher`.
"""
