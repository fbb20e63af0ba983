"""The weights are divided by their sum. Use them as the router gives them: do not normalise them.
"""
# exercise: combine_experts
# diagnosis: wrong_value
# or: LEAST = 1e-6
# or: LEAST = 1e-8
# or: LEAST = 1e-9
# or: LEAST = 1e-12

LEAST = None


def combine_experts(rows, token_index, weight, num_tokens):
    sums = weight.new_zeros(num_tokens).index_add(0, token_index, weight)
    if LEAST:
        sums = sums.clamp(min=LEAST)
    weight = weight / sums[token_index]
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight[:, None] * rows)
