"""Your own chunk is missing from the list. It does not travel, but it belongs to the result: put a
copy into the place of your own rank."""
# exercise: all_to_all
# diagnosis: wrong_shape


def all_to_all(chunks):
    received = exchanged(chunks)
    del received[dist.get_rank()]
    return received
