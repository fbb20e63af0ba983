# promise: what Python has is there to be read
# exercise: who_am_i
# verdict: passed
import inspect
import random
from pathlib import Path

import torch
import torch.distributed as dist


def who_am_i():
    assert "class Random" in inspect.getsource(random)
    assert Path(torch.__file__).is_file()
    return torch.tensor([dist.get_rank(), dist.get_world_size()])
