"""All three kinds of groups have consecutive ranks. Only those of tp do; along dp ranks are tp
apart, and along pp dp·tp."""
# exercise: build_mesh
# diagnosis: wrong_value


def build_mesh(dp, tp, pp):
    mesh = {}
    for name, size in (("dp", dp), ("tp", tp), ("pp", pp)):
        for row in torch.arange(dp * tp * pp).view(-1, size).tolist():
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh
