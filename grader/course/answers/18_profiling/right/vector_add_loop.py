# exercise: VECTOR_ADD_CPP
# diagnosis: none
# A plain loop over memory in order.
VECTOR_ADD_CPP = r"""
torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.sizes() == b.sizes() && a.dtype() == b.dtype(), "these do not fit");
  TORCH_CHECK(a.dtype() == torch::kFloat32, "float32 is needed");
  auto x = a.contiguous(), y = b.contiguous();
  auto sum = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i)
    sum.data_ptr<float>()[i] = x.data_ptr<float>()[i] + y.data_ptr<float>()[i];
  return sum;
}
"""
