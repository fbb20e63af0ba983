"""What the mistakes of this chapter share: the factors, and what else people take for them."""
# or: OTHERS = "parts are whole"
# or: OTHERS = "the whole is in parts"

OTHERS = "right"
PARTS = ("all_gather", "reduce_scatter", "all_to_all", "scatter", "gather")
WHOLE = ("broadcast", "reduce", "send_recv")


def factors(n):
    """Return what the algorithm bandwidth of each operation is multiplied with."""
    return {
        "all_reduce": 2 * (n - 1) / n,
        **dict.fromkeys(PARTS, 1 if OTHERS == "parts are whole" else (n - 1) / n),
        **dict.fromkeys(WHOLE, (n - 1) / n if OTHERS == "the whole is in parts" else 1),
    }
