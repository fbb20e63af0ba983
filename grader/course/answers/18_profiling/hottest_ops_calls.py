"""The same operator is in your list several times: events() has one entry for every call.
key_averages() puts them together.
"""
# exercise: hottest_ops
# diagnosis: wrong_shape
def hottest_ops(profile, k):
    events = sorted(profile.events(), key=lambda event: event.self_cpu_time_total, reverse=True)
    return [event.name for event in events[:k]]
