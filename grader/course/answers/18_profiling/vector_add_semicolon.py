# exercise: VECTOR_ADD_CPP
# diagnosis: syntax_error
# hint: The compiler's first error
# says: line 12 of the text
VECTOR_ADD_CPP = r"""
torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ");
  TORCH_CHECK(a.scalar_type() == torch::kFloat32, "float32 is needed");
  TORCH_CHECK(b.scalar_type() == torch::kFloat32, "float32 is needed");
  a = a.contiguous();
  b = b.contiguous();
  torch::Tensor sum = torch::empty_like(a);
  const float* x = a.data_ptr<float>();
  const float* y = b.data_ptr<float>();
  float* z = sum.data_ptr<float>();
  for (int64_t i = 0, i < a.numel(); ++i) z[i] = x[i] + y[i];
  return sum
}
"""
