"""Ranks are numbered in another order here. rank = (p·dp + d)·tp + t: t counts fastest, then d,
then p."""
# exercise: build_mesh
# diagnosis: wrong_value
# or: ORDER = ("tp", "pp", "dp"); NAMES = ("tp", "pp", "dp")

ORDER = ("dp", "tp", "pp")
NAMES = ("dp", "tp", "pp")


def build_mesh(dp, tp, pp):
    sizes = {"dp": dp, "tp": tp, "pp": pp}
    ranks = torch.arange(dp * tp * pp).view(*(sizes[name] for name in ORDER))
    return made(ranks, NAMES)
