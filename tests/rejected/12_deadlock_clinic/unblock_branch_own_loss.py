# exercise: unblock_branch
# diagnosis: wrong_value
# hint: Every rank returns its own loss
# not: Only the rank that logs
def unblock_branch(loss, log):
    if log:
        print(f"loss {loss.item():.4f}")
    return loss.clone()
