# exercise: pp_overlap_ratio
# diagnosis: none
def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    operations = sum(2 * 16 * hidden * hidden for _ in range(layers_in_next_stage))
    return (bytes_per_element * hidden / peak_bandwidth) / (operations / peak_flops)
