"""Four bytes can be read as a float32 only where their place in the tensor is a multiple of four.
Put the scale in front of the int8 numbers, or clone() its bytes before the view."""
# exercise: quantized_all_reduce
# diagnosis: exception


def unpacked(message, mine):
    return message[:-4].float() * message[-4:].view(torch.float32)
