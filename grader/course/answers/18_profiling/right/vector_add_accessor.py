# exercise: VECTOR_ADD_CPP
# diagnosis: none
# Flattened, by accessors; throws an exception of C++'s own; references; a helper.
HEAD = "#include <torch/extension.h>\n#include <stdexcept>\n"

VECTOR_ADD_CPP: str = (
    HEAD
    + r"""
namespace {
void need(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}
}  // namespace

at::Tensor vector_add(const at::Tensor& a, const at::Tensor& b) {
  need(a.sizes().equals(b.sizes()), "shapes differ");
  need(a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat, "not float32");
  at::Tensor sum = at::zeros(a.sizes(), a.options());
  at::Tensor flat = sum.view({-1}), left = a.reshape({-1}), right = b.reshape({-1});
  auto to = flat.accessor<float, 1>();
  auto x = left.accessor<float, 1>(), y = right.accessor<float, 1>();
  for (int64_t i = 0; i < to.size(0); ++i) to[i] = x[i] + y[i];
  return sum;
}
"""
)
