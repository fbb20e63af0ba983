# exercise: VECTOR_ADD_CPP
# diagnosis: wrong_value
# hint: The shapes have to be compared
# It stretches what does not fit, where torch can.
VECTOR_ADD_CPP = r"""
torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  auto both = torch::broadcast_tensors({a, b});
  auto x = both[0].contiguous(), y = both[1].contiguous(), out = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); i++) {
    out.data_ptr<float>()[i] = x.data_ptr<float>()[i] + y.data_ptr<float>()[i];
  }
  return out;
}
"""
