# exercise: assign_buckets
# diagnosis: wrong_type
# hint: never returns anything
def assign_buckets(sizes, cap_bytes):
    for index in reversed(range(len(sizes))):
        print(index, sizes[index], cap_bytes)
