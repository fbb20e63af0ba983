"""A token with expert −1 comes out as it went in. Its result is zeros; the layer around this one
adds the token itself."""
# exercise: expert_parallel
# diagnosis: wrong_value
# or: DETACHED = True

DETACHED = False


def put_back(x, order, back):
    return (x.detach() if DETACHED else x).index_copy(0, order, back)
