"""What the mistakes of this chapter share: the right sizes and times, of which they are made."""


def block(hidden, glu):
    """Return the parameters of a block."""
    return (16 if glu else 12) * hidden**2


def dp_times(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    """Return the seconds of the all-reduce of one gradient, and of its backward pass."""
    communication = bytes_per_element * 2 * (dp - 1) / dp / peak_bandwidth
    return communication, 4 * tokens / peak_flops


def zero3_times(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    """Return the seconds of the all-gather of one weight, and of its forward pass."""
    communication = bytes_per_element * (dp - 1) / dp / peak_bandwidth
    return communication, 2 * seq * micro_batch / peak_flops


def tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    """Return the seconds of the all-gather of a token's activations, and of its matrix."""
    communication = bytes_per_element * hidden * (tp - 1) / tp / peak_bandwidth
    return communication, 2 * hidden**2 / tp / peak_flops


def pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    """Return the seconds of sending a token's activations, and of the next stage's blocks."""
    communication = bytes_per_element * hidden / peak_bandwidth
    return communication, 2 * layers_in_next_stage * 16 * hidden**2 / peak_flops


def ratio(times):
    """Return the seconds of the communication divided by those of the computation."""
    communication, computation = times
    return communication / computation
