"""tp and dp have each other's ranks. t counts fastest, rank = (p·dp + d)·tp + t: the tp group has
consecutive ranks, and those of dp are tp apart."""
# exercise: build_mesh
# diagnosis: wrong_value
# or: ORDER = ("pp", "dp", "tp"); NAMES = ("pp", "tp", "dp")

ORDER = ("pp", "tp", "dp")
NAMES = ("pp", "tp", "dp")


def build_mesh(dp, tp, pp):
    sizes = {"dp": dp, "tp": tp, "pp": pp}
    ranks = torch.arange(dp * tp * pp).view(*(sizes[name] for name in ORDER))
    return made(ranks, NAMES)
