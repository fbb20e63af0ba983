"""Every rank sends equal shares of its rows, but counts[dst] says how many go to rank dst:
rows.split(counts) cuts them."""
# exercise: all_to_all_uneven
# diagnosis: wrong_shape


def all_to_all_uneven(rows, counts):
    mine = rows.tensor_split(dist.get_world_size())
    return torch.cat(arrived(rows, counts, mine, [len(piece) for piece in mine]))
