# exercise: vocab_parallel_cross_entropy
# diagnosis: too_many_bytes
# hint: Logits travel
import torch
import torch.distributed as dist


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        rows, width = logits.shape
        total = torch.tensor(width)
        dist.all_reduce(total)
        columns = torch.arange(int(total)).tensor_split(dist.get_world_size())
        mine = columns[dist.get_rank()]
        whole = logits.new_zeros(rows, int(total))
        whole[:, mine] = logits
        dist.all_reduce(whole)
        hot = torch.nn.functional.one_hot(targets, int(total))
        ctx.save_for_backward((whole.softmax(1) - hot)[:, mine])
        return torch.nn.functional.cross_entropy(whole, targets)

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope / len(slope), None


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
