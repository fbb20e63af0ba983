"""Every rank ends with its own chunks. Entry j of the result must come from rank j."""
# exercise: all_to_all
# diagnosis: wrong_value


def all_to_all(chunks):
    exchanged(chunks)
    return [chunk.clone() for chunk in chunks]
