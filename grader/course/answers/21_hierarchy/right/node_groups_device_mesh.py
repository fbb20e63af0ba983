# exercise: node_groups
# diagnosis: none
# A device mesh of two dimensions has both groups.
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def node_groups(ranks_per_node):
    shape = (dist.get_world_size() // ranks_per_node, ranks_per_node)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("across", "node"))
    return mesh.get_group("node"), mesh.get_group("across")
