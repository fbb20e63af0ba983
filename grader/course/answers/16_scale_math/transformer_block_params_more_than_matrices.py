"""More than the matrices is counted. Biases and norms are of the size of h, small beside h², and
are left out here."""
# exercise: transformer_block_params
# diagnosis: wrong_value
# Biases are 9h, or 13h with a gate; the two norms are 4h, or 2h without biases.
# or: GATED = 13
# or: GATED = 13; PLAIN = 9
# or: PLAIN = 17
# or: GATED = 9; PLAIN = 9
# or: GATED = 4; PLAIN = 4
# or: GATED = 2; PLAIN = 2

GATED = 17
PLAIN = 13


def transformer_block_params(hidden, glu):
    return block(hidden, glu) + (GATED if glu else PLAIN) * hidden
