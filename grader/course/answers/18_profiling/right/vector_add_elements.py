# exercise: VECTOR_ADD_CPP
# diagnosis: none
# A loop over elements that are tensors themselves.
VECTOR_ADD_CPP = r"""
torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.sizes() == b.sizes() && a.dtype() == b.dtype(), "these do not fit");
  TORCH_CHECK(a.dtype() == torch::kFloat32, "float32 is needed");
  auto x = a.reshape({-1}), y = b.reshape({-1}), sum = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) sum[i] = x[i] + y[i];
  return sum.view(a.sizes());
}
"""
