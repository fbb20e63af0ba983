"""Your dp groups hold ranks of all stages. The ranks of a group differ in one coordinate only: those
of a dp group have the same p and the same t."""
# exercise: build_mesh
# diagnosis: wrong_value


def build_mesh(dp, tp, pp):
    ranks = torch.arange(dp * tp * pp).view(pp, dp, tp)
    lists = {
        "tp": ranks.view(-1, tp),
        "dp": ranks.view(-1, tp).T,
        "pp": ranks.view(pp, -1).T,
    }
    mesh = {}
    for name, rows in lists.items():
        for row in rows.tolist():
            group = dist.new_group(row)
            if dist.get_rank() in row:
                mesh[name] = group
    return mesh
