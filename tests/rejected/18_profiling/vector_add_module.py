# exercise: VECTOR_ADD_CPP
# diagnosis: wrong_type
# hint: -
import torch

VECTOR_ADD_CPP = torch.add
