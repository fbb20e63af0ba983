"""The means are a little too close to 0: something small is added to every count to avoid 0/0. Raise
only the counts that are 0, as counts.clamp(min=1) does.
"""
# exercise: segment_mean
# diagnosis: wrong_value
# bincount and a small number make float32, sums of ones the dtype of values.
# or: EPSILON = 1e-2
# or: EPSILON = 1e-3
# or: EPSILON = 1e-2; COUNTS = "sums of ones"
# or: EPSILON = 1e-3; COUNTS = "sums of ones"
# or: EPSILON = 1e-5
# or: EPSILON = 1e-4
# or: EPSILON = 1e-5; COUNTS = "sums of ones"
# or: EPSILON = 1e-6; COUNTS = "sums of ones"
# or: EPSILON = 1e-7; COUNTS = "sums of ones"
# or: EPSILON = 1e-8; COUNTS = "sums of ones"
# or: EPSILON = 1e-9; COUNTS = "sums of ones"
# or: EPSILON = 1e-10; COUNTS = "sums of ones"
# or: EPSILON = 1e-12; COUNTS = "sums of ones"

EPSILON = 1e-6
COUNTS = "bincount"


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    if COUNTS == "bincount":
        counts = torch.bincount(segment_ids, minlength=num_segments)
    else:
        ones = values.new_ones(len(values))
        counts = values.new_zeros(num_segments).index_add(0, segment_ids, ones)
    return sums / (counts + EPSILON)[:, None]
