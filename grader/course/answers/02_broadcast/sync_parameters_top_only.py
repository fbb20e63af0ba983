"""Only what belongs to the module itself is broadcast, and not what the modules in it have: with
recurse=False, and in _buffers and _parameters, there is nothing of those. module.buffers() and
module.parameters() give all of it."""
# exercise: sync_parameters
# diagnosis: wrong_value
# or: OF_ITSELF = "parameters"
# or: OF_ITSELF = "all"
import torch
import torch.distributed as dist

OF_ITSELF = "buffers"


def sync_parameters(module, src):
    with torch.no_grad():
        for parameter in module.parameters(recurse=OF_ITSELF == "buffers"):
            dist.broadcast(parameter, src)
        for buffer in module.buffers(recurse=OF_ITSELF == "parameters"):
            dist.broadcast(buffer, src)
