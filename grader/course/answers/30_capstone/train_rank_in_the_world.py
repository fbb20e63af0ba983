"""A rank's number in a group is not its number in the world. src and dst take the one in the
world; group_src and group_dst take the one in the group."""
# exercise: train
# diagnosis: exception


def peer(group, rank):
    return {"src": rank}, {"dst": rank}
