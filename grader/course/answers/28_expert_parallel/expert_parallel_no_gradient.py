"""No gradient comes back at all, of x or of the experts: what they make is cut off from the
result. dist.all_to_all_single fills a tensor that autograd knows nothing about, so call it in the
forward of a torch.autograd.Function, whose backward sends the gradients the other way. And
.detach(), .data and torch.no_grad() cut as well."""
# exercise: expert_parallel
# diagnosis: wrong_gradient


class AllToAll:
    @staticmethod
    def apply(rows, sends, receives):
        out = rows.new_empty(sum(receives), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), receives, sends)
        return out
