"""As many chunks arrive as should, but not the right ones: what is meant for rank dst is
chunks[dst], and you send it another one."""
# exercise: all_to_all
# diagnosis: wrong_value
# or: CHUNK = "step"

#: The chunk that is sent: of the rank that one comes from, or of the step.
CHUNK = "source"


def all_to_all(chunks):
    result = [chunk.clone() for chunk in chunks]
    for step, (dst, src) in enumerate(others(), 1):
        swap(chunks[src if CHUNK == "source" else step], dst, result[src], src)
    return result
