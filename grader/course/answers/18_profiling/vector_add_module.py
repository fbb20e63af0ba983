# exercise: VECTOR_ADD_CPP
# diagnosis: wrong_type
# hint: VECTOR_ADD_CPP is a str
import torch

VECTOR_ADD_CPP = torch.add
