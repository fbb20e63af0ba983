"""Every message goes to dst, which can receive only one at a time. Let other ranks combine pairs
in the same round, and send what they have combined.
"""
# exercise: tree_reduce
# diagnosis: too_many_rounds
# alike: messages
# says: the point of this exercise
# earns: 0.5


def tree_reduce(x, dst, op):
    reduce(x, dst, op)
