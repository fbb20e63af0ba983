"""Right answers in pieces, of which a mistake gives some anew."""
# or: STYLE = "rounded up"
import torch
import torch.distributed as dist

STYLE = "tensor_split"

#: How the owner of a chunk takes its own part.
OWN = "exact"


def cut(x):
    """Cut x into n chunks, which differ where n does not divide the length."""
    n, flat = dist.get_world_size(), x.view(-1)
    if STYLE == "rounded up":
        size = -(-len(flat) // n)
        return [flat[i * size : (i + 1) * size] for i in range(n)]
    return list(flat.tensor_split(n))


def scale_of(chunk):
    return (chunk.abs().max() if len(chunk) else torch.tensor(0.0)) / 127


def packed(chunk):
    scale = scale_of(chunk)
    q = (chunk / scale if scale else chunk).round().to(torch.int8)
    return torch.cat([q, scale.reshape(1).view(torch.int8)])


def unpacked(message, mine):
    """Turn a message into floats; mine is the receiver's part of the same chunk."""
    return message[:-4].float() * message[-4:].clone().view(torch.float32)


def peers():
    rank, n = dist.get_rank(), dist.get_world_size()
    return [(rank + step) % n for step in range(1, n)]


def summed(chunks):
    """Return the sum of the rank's own chunk, of which everybody sends its part."""
    sends = [dist.isend(packed(chunks[peer]), peer) for peer in peers()]
    own = chunks[dist.get_rank()]
    total = own.clone() if OWN == "exact" else unpacked(packed(own), own)
    for peer in reversed(peers()):
        message = torch.empty(len(own) + 4, dtype=torch.int8)
        dist.recv(message, peer)
        total += unpacked(message, own)
    for request in sends:
        request.wait()
    return total


def handed_out(total, chunks):
    done, own = packed(total), chunks[dist.get_rank()]
    sends = [dist.isend(done, peer) for peer in peers()]
    own.copy_(unpacked(done, own))
    for peer in reversed(peers()):
        message = torch.empty(len(chunks[peer]) + 4, dtype=torch.int8)
        dist.recv(message, peer)
        chunks[peer].copy_(unpacked(message, chunks[peer]))
    for request in sends:
        request.wait()


def quantized_all_reduce(x):
    chunks = cut(x)
    handed_out(summed(chunks), chunks)


class TopKFeedback:
    def __init__(self, k):
        self.k, self.left = k, 0

    def compress(self, grad):
        whole = grad.flatten() + self.left
        indices = self.chosen(grad.flatten(), whole)
        values = self.sent(grad.flatten(), whole)[indices]
        self.left = self.rest(grad.flatten(), whole.clone(), indices)
        return indices, values

    def chosen(self, grad, whole):
        return whole.abs().topk(self.k).indices

    def sent(self, grad, whole):
        return whole

    def rest(self, grad, whole, indices):
        whole[indices] = 0
        return whole


class DiLoCo:
    def __init__(self, module, inner_steps, outer_lr, momentum):
        self.inner_steps, self.count = inner_steps, 0
        self.outer_lr, self.momentum = outer_lr, momentum
        self.parameters = self.parameters_of(module)
        self.begin()
        self.common = [p.detach().clone() for p in self.parameters]
        self.velocity = [torch.zeros_like(t) for t in self.common]

    def parameters_of(self, module):
        return list(module.parameters())

    def begin(self):
        for p in self.parameters:
            dist.broadcast(p.detach(), 0)

    def due(self):
        self.count += 1
        return self.count % self.inner_steps == 0

    def averaged(self, change):
        dist.all_reduce(change)
        return change / dist.get_world_size()

    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        common -= self.outer_lr * (gradient + self.momentum * velocity)
        p.copy_(common)

    @torch.no_grad()
    def after_inner_step(self):
        if not self.due():
            return False
        for one in zip(self.parameters, self.common, self.velocity):
            self.outer_step(*one)
        return True
