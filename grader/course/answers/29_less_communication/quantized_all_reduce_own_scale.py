"""What comes is multiplied by a scale of the rank that receives it. It has been divided by the
sender's: send that along, and multiply by it."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value
# or: IN = "everything"

IN = "the sums alone"


def summed(chunks):
    sends = [dist.isend(packed(chunks[peer]), peer) for peer in peers()]
    own = chunks[dist.get_rank()]
    total = own.clone()
    for peer in reversed(peers()):
        message = torch.empty(len(own) + 4, dtype=torch.int8)
        dist.recv(message, peer)
        total += message[:-4].float() * scale_of(own)
    for request in sends:
        request.wait()
    return total


def unpacked(message, mine):
    scale = message[-4:].clone().view(torch.float32) if IN == "the sums alone" else scale_of(mine)
    return message[:-4].float() * scale
