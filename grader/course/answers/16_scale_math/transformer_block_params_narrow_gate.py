"""With GLU your MLP has the width of LLaMA's, two thirds of 4h and rounded. Here the width stays 4h,
so that each of the three matrices has 4h²."""
# exercise: transformer_block_params
# diagnosis: wrong_value
# or: WIDTH = lambda h: -(-8 * h // 3)
# or: WIDTH = lambda h: round(8 * h / 3)
# or: WIDTH = lambda h: (8 * h // 3 + 63) // 64 * 64
# or: WIDTH = lambda h: (8 * h // 3 + 127) // 128 * 128
# or: WIDTH = lambda h: (8 * h // 3 + 255) // 256 * 256

WIDTH = lambda h: 8 * h // 3  # noqa: E731


def transformer_block_params(hidden, glu):
    return 4 * hidden**2 + 3 * hidden * WIDTH(hidden) if glu else block(hidden, glu)
