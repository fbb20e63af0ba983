# exercise: segment_mean
# diagnosis: none
# A product with a matrix of zeros and ones.
import torch.nn.functional as F


def segment_mean(values, segment_ids, num_segments):
    members = F.one_hot(segment_ids, num_segments).to(values.dtype)
    sizes = members.sum(0).clamp(min=1)
    return (members / sizes).T @ values
