# exercise: VECTOR_ADD_CPP
# diagnosis: none
# Any dtype, as long as both have it; std::transform.
VECTOR_ADD_CPP = r"""
#include <torch/extension.h>
#include <algorithm>
#include <functional>

torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dtypes differ");
  TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ");
  a = a.contiguous();
  b = b.contiguous();
  auto sum = torch::empty(a.sizes(), a.options());
  AT_DISPATCH_ALL_TYPES(a.scalar_type(), "vector_add", [&] {
    const scalar_t* x = a.data_ptr<scalar_t>();
    std::transform(x, x + a.numel(), b.data_ptr<scalar_t>(), sum.data_ptr<scalar_t>(),
                   std::plus<scalar_t>());
  });
  return sum;
}
"""
