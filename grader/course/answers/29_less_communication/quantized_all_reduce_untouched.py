"""x is as it was. Write the sum into it: x.copy_(...), or into chunks that are views of it."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value

right = quantized_all_reduce


def quantized_all_reduce(x):
    right(x.clone())
