"""uint8 has no sign: −5 becomes 251 in it. Send int8, which holds −128 to 127."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value
# or: OWN = "as sent"

OWN = "exact"


def packed(chunk):
    scale = scale_of(chunk)
    q = (chunk / scale if scale else chunk).round().to(torch.uint8)
    return torch.cat([q, scale.reshape(1).view(torch.uint8)]).view(torch.int8)


def unpacked(message, mine):
    message = message.view(torch.uint8)
    return message[:-4].float() * message[-4:].clone().view(torch.float32)
