"""Every rank sends its chunks[rank] to all the others. That is the one to keep; what is meant for
rank dst is chunks[dst]."""
# exercise: all_to_all
# diagnosis: wrong_value


def all_to_all(chunks):
    return exchanged([chunks[dist.get_rank()]] * len(chunks))
