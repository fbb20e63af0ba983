"""With use_local_synchronization=True new_group returns None on a rank that is not in the group.
Keep a group only where rank is among its members."""
# exercise: build_mesh
# diagnosis: wrong_type


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        for row in ranks.movedim(axis, -1).flatten(0, 1).tolist():
            mesh[name] = dist.new_group(row, use_local_synchronization=True)
    return mesh
