# exercise: quantized_all_reduce
# diagnosis: exception
# hint: as one row
import torch, torch.distributed as dist
def quantized_all_reduce(x):
    n, r = dist.get_world_size(), dist.get_rank()
    def enc(c):
        m = c.abs().max() if c.numel() else torch.tensor(0.)
        s = (m / 127).view(1)
        q = torch.zeros(c.numel(), dtype=torch.int8) if s == 0 else (c / s).round().clamp(-127, 127).to(torch.int8)
        return torch.cat([s.view(torch.int8), q])
    def dec(b):
        return b[4:].float() * b[:4].view(torch.float32)
    flat = x
    chunks = flat.tensor_split(n)
    def swap(out, sizes):
        """Send out[p] to p; return what comes from each."""
        got = [torch.empty(s + 4, dtype=torch.int8) for s in sizes]
        reqs = [dist.isend(out[p], p) for p in range(n) if p != r]
        reqs += [dist.irecv(got[p], p) for p in range(n) if p != r]
        for q in reqs: q.wait()
        return got
    got = swap([enc(c) for c in chunks], [len(chunks[r])] * n)
    total = chunks[r].clone()
    for p in range(n):
        if p != r: total += dec(got[p])
    mine = enc(total)
    got = swap([mine] * n, [len(c) for c in chunks])
    got[r] = mine
    for c, b in zip(chunks, got):
        c.copy_(dec(b))
