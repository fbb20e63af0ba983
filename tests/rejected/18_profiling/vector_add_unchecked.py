# exercise: VECTOR_ADD_CPP
# diagnosis: wrong_value
# hint: The shapes have to be compared
# torch stretches what does not fit, where it can.
VECTOR_ADD_CPP = r"""
torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  return a + b;
}
"""
