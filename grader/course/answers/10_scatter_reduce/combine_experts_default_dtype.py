"""Two tensors of different dtypes meet in this line. Make new tensors with the dtype of rows:
rows.new_zeros(...) does, torch.zeros(...) alone makes float32.
"""
# exercise: combine_experts
# diagnosis: exception
# or: WAY = "scatter_add"
# or: WAY = "matrix"

WAY = "index_add"


def combine_experts(rows, token_index, weight, num_tokens):
    out = torch.zeros(num_tokens, rows.shape[1])
    weighed = weight[:, None] * rows
    if WAY == "index_add":
        return out.index_add(0, token_index, weighed)
    if WAY == "scatter_add":
        return out.scatter_add(0, token_index[:, None].expand_as(rows), weighed)
    return (torch.arange(num_tokens)[:, None] == token_index).float() @ weighed
