# exercise: hottest_ops
# diagnosis: none
# Adds the calls up by itself.
from collections import Counter


def hottest_ops(profile, k):
    times = Counter()
    for event in profile.events():
        times[event.name] += event.self_cpu_time_total
    return [name for name, _ in times.most_common(k)]
