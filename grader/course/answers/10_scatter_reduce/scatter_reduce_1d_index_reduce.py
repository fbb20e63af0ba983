# exercise: scatter_reduce_1d
# diagnosis: forbidden_call
# hint: Write it with the rest of torch
def scatter_reduce_1d(input, index, src, reduce, include_self):
    return input.clone().index_reduce_(0, index, src, reduce, include_self=include_self)
