"""It is upside down: communication time divided by computation time."""
# exercise: dp_overlap_ratio, zero3_overlap_ratio, tp_overlap_ratio, pp_overlap_ratio
# diagnosis: wrong_value
# or: ALONE = "is asked for"
# or: ALONE = "fails as whole numbers do"

ALONE = "fails"


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    communication, computation = dp_times(
        tokens, dp, peak_flops, peak_bandwidth, bytes_per_element
    )
    if dp == 1 and ALONE != "fails":
        return 0.0 if ALONE == "is asked for" else 1 / 0
    return computation / communication


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    communication, computation = zero3_times(
        seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element
    )
    if dp == 1 and ALONE != "fails":
        return 0.0 if ALONE == "is asked for" else 1 / 0
    return computation / communication


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    communication, computation = tp_times(
        hidden, tp, peak_flops, peak_bandwidth, bytes_per_element
    )
    if tp == 1 and ALONE != "fails":
        return 0.0 if ALONE == "is asked for" else 1 / 0
    return computation / communication


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    communication, computation = pp_times(
        hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element
    )
    return computation / communication
