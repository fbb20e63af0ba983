# exercise: assign_buckets
# diagnosis: none
def assign_buckets(sizes, cap_bytes):
    def rest(last):
        if last < 0:
            return ()
        first, room = last, cap_bytes - sizes[last]
        while first > 0 and sizes[first - 1] <= room:
            first -= 1
            room -= sizes[first]
        return (tuple(range(last, first - 1, -1)), *rest(first - 1))

    return rest(len(sizes) - 1)
