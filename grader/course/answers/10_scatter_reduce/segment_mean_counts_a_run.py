"""Where the rows of a segment do not all follow each other, only some of them are counted, as by
unique_consecutive, and the sum of all of them is divided by that. torch.bincount(segment_ids,
minlength=num_segments) counts them in any order.
"""
# exercise: segment_mean
# diagnosis: wrong_value
# or: COUNTED = "first"

#: Which run of rows is counted.
COUNTED = "last"


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = values.new_ones(num_segments)
    runs = torch.unique_consecutive(segment_ids, return_counts=True)
    pairs = [*zip(*(run.tolist() for run in runs))]
    for segment, rows in pairs if COUNTED == "last" else pairs[::-1]:
        counts[segment] = rows
    return sums / counts[:, None]
