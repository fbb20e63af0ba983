"""These are the ranks that have one coordinate in common. A group has the ranks that differ in one
coordinate only, and have both others in common."""
# exercise: build_mesh
# diagnosis: wrong_value


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for plane in ranks.unbind(axis):
            group = dist.new_group(plane.flatten().tolist())
            if dist.get_rank() in plane:
                mesh[name] = group
    return mesh
