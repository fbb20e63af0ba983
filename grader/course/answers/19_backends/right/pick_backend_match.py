# exercise: pick_backend
# diagnosis: none
# torch's own class for names of backends is a string, and its exception one of ours.
import torch.distributed as dist


class NoBackend(ValueError):
    pass


def pick_backend(device_type):
    match device_type:
        case "cuda":
            return dist.Backend("NCCL")
        case "cpu":
            return dist.Backend("gloo")
        case _:
            raise NoBackend
