"""What the judge makes of the events of a run.

Sends matched with receives, the wait-for graph and who can never go on, the orders in which
wildcards can be matched, rounds, and GOAL schedules.
Its door: :class:`~grader.trace.message_matcher.MessageMatcher`.
"""
