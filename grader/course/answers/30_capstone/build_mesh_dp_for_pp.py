"""dp and pp have each other's ranks. p counts slowest: the ranks of a pp group are dp·tp apart,
those of a dp group only tp."""
# exercise: build_mesh
# diagnosis: wrong_value
# or: ORDER = ("pp", "dp", "tp"); NAMES = ("dp", "pp", "tp")

ORDER = ("dp", "pp", "tp")
NAMES = ("dp", "pp", "tp")


def build_mesh(dp, tp, pp):
    sizes = {"dp": dp, "tp": tp, "pp": pp}
    ranks = torch.arange(dp * tp * pp).view(*(sizes[name] for name in ORDER))
    return made(ranks, NAMES)
