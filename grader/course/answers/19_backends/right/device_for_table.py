# exercise: device_for
# diagnosis: none
import torch

DEVICES = {"nccl": "cuda", "gloo": "cpu", "mpi": "cpu"}


def device_for(local_rank: int, backend: str) -> torch.device:
    if backend in DEVICES:
        kind = DEVICES[backend]
        return torch.device(kind, local_rank) if kind == "cuda" else torch.device(kind)
    raise ValueError(f"{backend} is none of {', '.join(DEVICES)}")
