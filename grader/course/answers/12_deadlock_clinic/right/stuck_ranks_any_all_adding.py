# exercise: stuck_ranks_any_all
# diagnosis: none
def stuck_ranks_any_all(waits_for, gone):
    everybody = set(waits_for) | {p for w in waits_for.values() if w for p in w[1]}
    live = {r for r in everybody - gone if waits_for.get(r) is None}
    enough = {"any": any, "all": all}
    while True:
        more = {
            r
            for r in everybody - gone - live
            if enough[waits_for[r][0]](p in live for p in waits_for[r][1])
        }
        if not more:
            return sorted(everybody - gone - live)
        live |= more
