# exercise: VECTOR_ADD_CPP
# diagnosis: wrong_value
# hint: The memory of a transposed tensor
# The result has a's strides, and is filled in the order of elements.
VECTOR_ADD_CPP = r"""
#include <torch/extension.h>

torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ");
  TORCH_CHECK(a.scalar_type() == torch::kFloat32, "a must be float32");
  TORCH_CHECK(b.scalar_type() == torch::kFloat32, "b must be float32");
  auto out = torch::empty_like(a);
  auto ac = a.contiguous();
  auto bc = b.contiguous();
  const float* pa = ac.data_ptr<float>();
  const float* pb = bc.data_ptr<float>();
  float* po = out.data_ptr<float>();
  for (int64_t i = 0; i < ac.numel(); ++i) {
    po[i] = pa[i] + pb[i];
  }
  return out;
}
"""
