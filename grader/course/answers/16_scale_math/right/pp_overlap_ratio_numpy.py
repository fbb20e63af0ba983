# exercise: pp_overlap_ratio
# diagnosis: none
import numpy as np


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    return float(
        np.divide(
            bytes_per_element * peak_flops, 32.0 * hidden * layers_in_next_stage * peak_bandwidth
        )
    )
