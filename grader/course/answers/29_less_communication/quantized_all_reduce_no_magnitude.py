"""The scale comes from the largest number, and −5 does not fit if 3 becomes 127. Take it from
max│x│."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value
# or: CLAMPED = True
# or: OWN = "as sent"
# or: CLAMPED = True; OWN = "as sent"

CLAMPED = False
OWN = "exact"


def scale_of(chunk):
    return (chunk.max() if len(chunk) else torch.tensor(0.0)) / 127


def packed(chunk):
    scale = scale_of(chunk)
    q = (chunk / scale if scale else chunk).round()
    q = (q.clamp(-127, 127) if CLAMPED else q).to(torch.int8)
    return torch.cat([q, scale.reshape(1).view(torch.int8)])
