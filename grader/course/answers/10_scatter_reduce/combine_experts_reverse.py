"""The result still has one row for each row of `rows`. Add up those that belong to one token, so
that each token has one.
"""
# exercise: combine_experts
# diagnosis: wrong_shape
# The way out to the experts gives every row what its token has.
# or: WAY = "only weighed"

WAY = "out to the experts"


def combine_experts(rows, token_index, weight, num_tokens):
    return weight[:, None] * (rows if WAY == "only weighed" else rows[token_index])
