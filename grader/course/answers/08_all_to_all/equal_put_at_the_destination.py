"""What arrives from rank src is put into the place of rank dst, to which you send in this step.
Entry j of the result belongs to the rank that it comes from."""
# exercise: all_to_all
# diagnosis: wrong_value


def all_to_all(chunks):
    result = [chunk.clone() for chunk in chunks]
    for dst, src in others():
        swap(chunks[dst], dst, result[dst], src)
    return result
