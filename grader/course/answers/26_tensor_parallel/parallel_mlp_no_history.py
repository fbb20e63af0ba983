"""No gradient comes back: what was reduced has lost its history (.detach(), .data,
torch.no_grad(), a buffer). Reduce in a torch.autograd.Function whose backward passes the gradient
on as it is."""
# exercise: parallel_mlp
# diagnosis: wrong_gradient


def parallel_mlp(x, w_in_shard, w_out_shard):
    return added_up((F.gelu(Enter.apply(x) @ w_in_shard) @ w_out_shard).detach())
