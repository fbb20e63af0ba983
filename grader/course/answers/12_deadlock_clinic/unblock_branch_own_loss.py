"""Every rank returns its own loss, as if there were no all-reduce. Without one there is no
deadlock, but no mean either: let every rank call it, and return its result divided by n."""
# exercise: unblock_branch
# diagnosis: wrong_value
# not: Only the rank that logs
def unblock_branch(loss, log):
    if log:
        print(f"loss {loss.item():.4f}")
    return loss.clone()
