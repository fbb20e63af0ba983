# exercise: sync_parameters
# diagnosis: wrong_value
# hint: a float64 up to 2**53
# float64 holds most counters, but not all.
import torch
import torch.distributed as dist


def sync_parameters(module, src):
    tensors = [*module.parameters(), *module.buffers()]
    with torch.no_grad():
        for tensor in tensors:
            sent = tensor.double()
            dist.broadcast(sent, src)
            if dist.get_rank() != src:
                tensor.copy_(sent)
