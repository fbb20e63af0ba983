# exercise: combine_experts
# diagnosis: forbidden_call
# hint: Let torch go over them all at once
def add_row(i, out, rows, token_index, weight):
    if i < len(rows):
        out = out.index_add(0, token_index[i : i + 1], weight[i] * rows[i : i + 1])
        return add_row(i + 1, out, rows, token_index, weight)
    return out


def combine_experts(rows, token_index, weight, num_tokens):
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return add_row(0, out, rows, token_index, weight)
