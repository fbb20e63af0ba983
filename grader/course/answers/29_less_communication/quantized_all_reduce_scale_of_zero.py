"""A chunk of zeros has a scale of 0, and 0/0 is not a number. Such a chunk needs no scale: leave
it as it is, or divide by 1."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value


def rounded(chunk):
    """Round the rank's own part as all others are."""
    return (chunk / scale_of(chunk)).round() * scale_of(chunk)


def summed(chunks):
    sends = [dist.isend(packed(chunks[peer]), peer) for peer in peers()]
    own = chunks[dist.get_rank()]
    total = rounded(own)
    for peer in reversed(peers()):
        message = torch.empty(len(own) + 4, dtype=torch.int8)
        dist.recv(message, peer)
        total += unpacked(message, own)
    for request in sends:
        request.wait()
    return total
