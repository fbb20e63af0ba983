"""pp and tp have each other's ranks. t counts fastest and p slowest: the tp group has consecutive
ranks, and those of pp are dp·tp apart."""
# exercise: build_mesh
# diagnosis: wrong_value
# or: ORDER = ("pp", "dp", "tp"); NAMES = ("tp", "dp", "pp")

ORDER = ("tp", "dp", "pp")
NAMES = ("tp", "dp", "pp")


def build_mesh(dp, tp, pp):
    sizes = {"dp": dp, "tp": tp, "pp": pp}
    ranks = torch.arange(dp * tp * pp).view(*(sizes[name] for name in ORDER))
    return made(ranks, NAMES)
