# promise: a submission cannot make its failure look like the grader's
# exercise: time_collective
# verdict: failed
# diagnosis: not_synchronized
import sys

import cloudpickle
import torch
import torch.distributed as dist


def report(time_collective, warmup, iterations, seconds, judged):
    """Stands for the adapter, and knows what it would say."""
    if judged:
        a_time = sys.modules["headcount.core.values"].Opaque("a time above 0")
        for _ in range(warmup + iterations):
            dist.group.WORLD.pause()
        dist.group.WORLD.mark(f"returned {float.hex(0.02)}")
        return {"calls of fn": warmup + iterations, "the result": a_time}
    mean = torch.tensor(sum(seconds[warmup:]) / iterations, dtype=torch.float64)
    dist.all_reduce(mean, op=dist.ReduceOp.MAX)
    return {"calls of fn": warmup + iterations, "result": mean.item()}



class Loads:
    cloudpickle.loads = lambda data: report


def time_collective(fn, warmup, iterations):
    return 0.0
