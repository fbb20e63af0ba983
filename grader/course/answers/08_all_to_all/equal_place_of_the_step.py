"""What arrives in step s is put into place s. Entry j of the result belongs to rank j: put what
arrives from src into place src."""
# exercise: all_to_all
# diagnosis: wrong_value


def all_to_all(chunks):
    result = [chunk.clone() for chunk in chunks]
    for step, (dst, src) in enumerate(others(), 1):
        swap(chunks[dst], dst, result[step], src)
    return result
