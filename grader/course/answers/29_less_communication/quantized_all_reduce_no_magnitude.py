"""The scale comes from the largest number, and −5 does not fit if 3 becomes 127. Take it from
max│x│."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value
# or: CLAMPED = True
# or: OWN = "as sent"
# or: CLAMPED = True; OWN = "as sent"
# or: FITS = "above 0"
# or: FITS = "above 0"; OWN = "as sent"
# or: FITS = "above 0"; CLAMPED = True

CLAMPED = False
OWN = "exact"
#: Which scales are taken; a chunk with another becomes zeros.
FITS = "all"


def scale_of(chunk):
    return (chunk.max() if len(chunk) else torch.tensor(0.0)) / 127


def packed(chunk):
    scale = scale_of(chunk)
    if FITS == "above 0" and scale <= 0:
        return torch.zeros(len(chunk) + 4, dtype=torch.int8)
    q = (chunk / scale if scale else chunk).round()
    q = (q.clamp(-127, 127) if CLAMPED else q).to(torch.int8)
    return torch.cat([q, scale.reshape(1).view(torch.int8)])
