"""x has rows and columns here, and there are fewer rows than pieces: len(x) counts rows. Cut
elements, x.view(-1).tensor_split(k), with k = max(1, min(pieces, x.numel()))."""
# exercise: pipelined_broadcast
# diagnosis: too_few_messages
# earns: 0.5
# or: CUTS = "elements"

CUTS = "rows"


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    sends = []
    whole = x if CUTS == "rows" else x.view(-1)
    for piece in whole.tensor_split(max(1, min(pieces, len(x)))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            sends.append(dist.isend(piece, (rank + 1) % n))
    for send in sends:
        send.wait()
