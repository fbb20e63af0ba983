# %% [markdown]
# # 29 · Less communication
#
# Data parallelism sends all gradients in every step. Inside a machine, or between machines of one cluster,
# that can hide behind the computation. But your GPUs may be in two buildings, with an ordinary cable in
# between. Then a step waits for the cable, and exact sums do not help much: the ring of chapter 11 already
# sends as few bytes from each rank as an exact sum allows, and two levels as in chapter 21 save less than
# half of what crosses the cable.
#
# So the exact sum in every step has to go. This chapter sends fewer bits for each number, then fewer
# numbers, and finally nothing at all in most steps, and sees how training copes.
#
# **You will learn** to quantize a sum without ranks drifting apart, why error feedback lets a network train
# on a few thousandths of each gradient, what low rank can do that the others cannot, and how DiLoCo trains
# with one synchronisation in hundreds of steps.
#
# **You need** chapters [11](11_ring_all_reduce.ipynb), [13](13_cost_models.ipynb),
# [15](15_data_parallel.ipynb) and [16](16_scale_math.ipynb).
#
# **Time:** 3 hours, and 3 exercises.

# %%
import time

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline
from headcount.simulation.clusters import Nodes

# %% [markdown]
# ## When the link is the bound
#
# Chapter [16](16_scale_math.ipynb) compared two times: that of sending the gradients, and that of the backward pass
# behind which they can hide. The number of parameters cancelled, and this remained:
#
# $$\text{ratio} = \frac{e}{2 \cdot \text{tokens}} \cdot \frac{n-1}{n} \cdot \frac{F}{B}$$
#
# with $e$ bytes for a gradient, $F$ operations and $B$ bytes a second, and the tokens of *one* of the $n$ replicas in a step.
#
# On a link of 450 GB/s, 8 replicas hide their gradients if each has about 1,900 tokens in a step. How many
# does each need over an ordinary cable of 1 Gbit/s? (A gigabit is an eighth of a gigabyte.)

# %%
PEAK = 989e12  # operations a second, an H100 in bfloat16
LINKS = {
    "inside a machine, 450 GB/s": 450e9,
    "between machines, 50 GB/s": 50e9,
    "Ethernet, 10 Gbit/s": 10e9 / 8,
    "Ethernet, 1 Gbit/s": 1e9 / 8,
}
n, e = 8, 2  # replicas, and bytes of a bfloat16
for name, bandwidth in LINKS.items():
    tokens = e / 2 * (n - 1) / n * PEAK / bandwidth
    seconds = 2 * (n - 1) / n * e * 7e9 / bandwidth  # the ring of chapter 13, without its latencies
    print(f"{name:27} hidden with {tokens:9,.0f} tokens or more; 7 billion gradients take {seconds:6.2f} s")

# %% [markdown]
# Seven million tokens *on each replica, in each step*: GPT-3 had [3.2 million](https://arxiv.org/abs/2005.14165) (table 2.1)
# in a step, over all replicas. With fewer, each step waits for the cable, and with 7 billion parameters it waits for minutes.
#
# The ratio also says what can be done:
#
# - make $e$ smaller: **fewer bits for each number** (quantization);
# - send **fewer numbers** (the largest ones, or a low rank);
# - send **less often**, so that more tokens pass between two exchanges (local steps, DiLoCo).
#
# ## Fewer bits: quantization
#
# An int8 holds a whole number from −128 to 127 in one byte. To send floats in int8, divide them by a
# **scale** that makes the largest of them 127, and round. The receiver multiplies by the same scale, so the
# scale has to travel with them: one float32 for a whole chunk.

# %%
def through_int8(t):
    """What is left of a tensor after a journey in int8."""
    scale = t.abs().max() / 127
    return (t / scale).round().to(torch.int8).float() * scale


torch.manual_seed(0)
t = torch.randn(1000)
error = (through_int8(t) - t).abs().max()
print(f"largest number {t.abs().max():.2f}, largest error {error:.4f}")
print("the error is at most half a scale:", bool(error <= t.abs().max() / 127 / 2 * (1 + 1e-4)))

# %% [markdown]
# Rounding to the nearest makes an error of at most half a scale, $\max|t| / 254$. (Rounding up or down *at random*, with the
# probabilities that make the mean right, doubles that bound, but in a sum of many the errors then tend to cancel:
# [QSGD](https://arxiv.org/abs/1610.02132) proves convergence for this **stochastic rounding**.)
#
# Now let $n$ ranks add up such numbers. int8 numbers with different scales cannot be added, and sums of int8 overflow; so a
# rank turns what it receives into floats, adds, and quantizes again. How often that happens depends on the algorithm:
#
# ![Two ways to add up a chunk of four ranks. Above, along a ring: the chunk of rank 0 is quantized, sent to rank 1,
# turned into floats and added, quantized again, and so on through ranks 2 and 3, and the sum is quantized once more
# before it goes to all: four quantizations, of ever larger numbers. Below, directly: ranks 1, 2 and 3 each quantize
# their own chunk and send it to rank 0, which adds them up and quantizes the sum: each number is quantized once on its
# way there, and the sum once on its way back.](../imgs/quantized_ways.png)
#
# **Predict:** no rank has a number larger than $M$ in magnitude. What is the largest error that the sum of 8 ranks can have,
# each way, in units of $M/254$?
#
# <details><summary>8 and 8: one for each rank</summary>
#
# No: a partial sum of $k$ ranks may be as large as $kM$. Then its scale is $k$ times as large, and so is its
# error.
# </details>
#
# <details><summary>36 along the ring, 15 directly</summary>
#
# Yes: along the ring $1 + 2 + \dots + 8$, since each partial sum is quantized. Directly 7 ranks make one unit
# each, and the sum 8.
# </details>
#
# <details><summary>15 along the ring, 36 directly</summary>
#
# No: directly each number is quantized once on its way there. It is the ring that quantizes sums again and
# again.
# </details>

# %%
def along_a_ring(rows):
    partial = rows[0]
    for row in rows[1:]:
        partial = through_int8(partial) + row
    return through_int8(partial)


def directly(rows):
    return through_int8(rows[0] + sum(through_int8(row) for row in rows[1:]))


print("in units of M/254    ring: bound, seen     direct: bound, seen")
for n in (2, 8, 64, 512):
    torch.manual_seed(n)
    rows = torch.randn(n, 2000).clamp(-3, 3)
    unit = rows.abs().max() / 254
    seen = [((way(rows) - rows.sum(0)).abs().max() / unit).item() for way in (along_a_ring, directly)]
    print(f"{n:4} ranks {n * (n + 1) // 2:19} {seen[0]:8.0f} {2 * n - 1:18} {seen[1]:8.0f}")

# %% [markdown]
# So the bounds are $\frac{n(n+1)}{2}$ units along a ring, and $2n - 1$ directly (up to what float32 itself
# rounds). In random data of many ranks, many errors cancel and sums do not reach $nM$, so both do much
# better than that, but the ring still falls behind more and more. That is why
# [ZeRO++](https://arxiv.org/abs/2306.10209) replaces the ring's reduce-scatter by an all-to-all when it
# sends 4-bit gradients. (A sum in bfloat16 suffers in the same way, at every hop of a ring. Chapter
# [04](04_reduce.ipynb) names FSDP's cure, to add up in float32, which takes twice the bytes.)
#
# Both ways send the same: from each rank, $2(n-1)$ messages of one chunk.
#
# ## Exercise: quantized_all_reduce
#
# `x` becomes the sum of all ranks' `x`, in place, with point-to-point messages only. `x` is float32, contiguous, and of any
# shape and length.
#
# - A rank sends at most $2(n-1)\,(\lceil \text{len}/n \rceil + 8)$ bytes: int8 for each element, and up to
#   8 bytes for anything else you put into a message. (`scale.view(torch.int8)` shows the four bytes of a
#   float32, and `.view(torch.float32)` turns four bytes back into one; of a slice, `clone()` them first.)
# - An element may be off by at most $2n \cdot \max|x| / 127$, where the maximum goes over all ranks.
# - All ranks end with **the same bits**, and with these again if the call is repeated. A model whose ranks disagree about
#   a gradient is no longer one model. Which numbers does the rank that adds up a chunk have to keep, then?
#
# A rank may have nothing but zeros, and there may be fewer elements than ranks.


# %%
def quantized_all_reduce(x: torch.Tensor) -> None:
    """x becomes the sum of all ranks' x; int8 numbers are sent."""
    ### BEGIN SOLUTION
    n, rank = dist.get_world_size(), dist.get_rank()

    def packed(chunk):
        scale = chunk.abs().amax().reshape(1) / 127 if len(chunk) else torch.zeros(1)
        q = (chunk / scale).round() if scale > 0 else chunk
        return torch.cat([q.to(torch.int8), scale.view(torch.int8)])

    def unpacked(message):
        return message[:-4].float() * message[-4:].clone().view(torch.float32)

    def received(size, peer):
        message = torch.empty(size + 4, dtype=torch.int8)
        dist.recv(message, peer)
        return unpacked(message)

    chunks = x.view(-1).tensor_split(n)
    others = [(rank + step) % n for step in range(1, n)]
    there = [dist.isend(packed(chunks[peer]), peer) for peer in others]
    total = chunks[rank].clone()
    for peer in reversed(others):
        total += received(len(total), peer)
    for request in there:
        request.wait()

    done = packed(total)
    back = [dist.isend(done, peer) for peer in others]
    chunks[rank].copy_(unpacked(done))  # what the others get, and not the exact sum
    for peer in reversed(others):
        chunks[peer].copy_(received(len(chunks[peer]), peer))
    for request in back:
        request.wait()
    ### END SOLUTION


quantized_works = check(quantized_all_reduce)
quantized_works

# %% [markdown]
# What does that save? Here your sum is compared with the float32 ring that a library uses, on 8 ranks with
# a million numbers, with a link of 1 Gbit/s for each rank.
#
# What fraction of the bytes does it send, and what fraction of the time does it take?

# %%
def summed_up(all_reduce, length):
    torch.manual_seed(dist.get_rank())
    x = torch.randn(length)
    all_reduce(x)
    return x


if quantized_works:
    million, gigabit = 10**6, {"alpha": 50e-6, "beta": 8 / 1e9, "record": True}
    exact = simulate(summed_up, 8, dist.all_reduce, million, algorithms={"all_reduce": "ring"}, **gigabit)
    yours = simulate(summed_up, 8, quantized_all_reduce, million, **gigabit)
    for name, done in (("float32 ring", exact), ("yours", yours)):
        sent = done.trace.traffic.max_sent
        print(f"{name:12} {sent:9,} bytes by one rank, {1e3 * done.seconds:5.1f} ms of virtual time")
    off = (yours[0] - exact[0]).abs().max()
    print(f"largest error below 2 % of the largest sum: {bool(off < 0.02 * exact[0].abs().max())}")

# %% [markdown]
# Your sum sends a quarter of the bytes, and takes about a quarter of the time. (Here each rank has a link of its
# own; at the end of the chapter, all share one cable.) If the gradients are bfloat16 to begin with, int8
# saves only half. With 4 bits, or a single one, the error has to be dealt with. That is the next idea.
#
# ## Fewer numbers, and nothing lost
#
# Why send small gradients at all? **Top-k** sends the $k$ elements that are largest in magnitude, with their indices.
# Take this gradient of four weights, the same in each step, with $k = 1$:
#
# | | weight 0 | weight 1 | weight 2 | weight 3 |
# |---|---|---|---|---|
# | gradient | 3 | −5 | 1 | 2 |
#
# If each step sends the largest element and forgets the rest, only weight 1 ever moves, and the other
# gradients are lost. Must they be? A message carries $k$ numbers, but a rank can keep as many as it likes.
#
# ## Exercise: TopKFeedback
#
# `compress(grad)` returns two tensors: the indices, into the flattened gradient, of the $k$ elements that are
# sent now, and the numbers sent there, with their signs. Nothing is lost: **what was sent so far and what is
# left always add up to all gradients so far.** Of all that is still due, the $k$ numbers that are largest in
# magnitude are sent; their order does not matter. What does an object of this class have to remember? `grad`
# has any shape, the same in each call, and stays as it is. Nothing is sent here: this is one rank's part.

# %%
class TopKFeedback:
    """Sends the k largest elements, and keeps the rest for later."""

    def __init__(self, k: int):
        ### BEGIN SOLUTION
        self.k = k
        self.left = 0
        ### END SOLUTION

    def compress(self, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ### BEGIN SOLUTION
        whole = grad.flatten() + self.left
        indices = whole.abs().topk(self.k).indices
        self.left = whole.clone()
        self.left[indices] = 0
        return indices, whole[indices]
        ### END SOLUTION


top_k_works = check(TopKFeedback)
top_k_works

# %% [markdown]
# Back to the four weights.
#
# **Predict:** which weights' elements are sent in the first four steps?
#
# <details><summary>1, 1, 1 and 1: its gradient stays the largest</summary>
#
# No: what is sent is not left. Weight 1 begins anew with −5, and weight 0 has piled up 6.
# </details>
#
# <details><summary>1, 0, 3 and 2: each weight has its turn</summary>
#
# No: in the third step weight 1 has piled up −10 again, and weight 3 only 6.
# </details>
#
# <details><summary>1, 0, 1 and 3</summary>
#
# Yes: −5 is sent, and (3, 0, 1, 2) is left. Of (6, −5, 2, 4) then 6 is sent, of (3, −10, 3, 6) it is −10, and
# of (6, −5, 4, 8) it is 8.
# </details>

# %%
if top_k_works:
    largest, same = TopKFeedback(1), torch.tensor([3.0, -5.0, 1.0, 2.0])
    for step in range(1, 5):
        index, value = largest.compress(same)
        print(f"step {step}: weight {index.item()} gets {value.item():g}")

# %% [markdown]
# Sooner or later it is each weight's turn, and it gets everything that has piled up.
#
# This is **error feedback**: what compression leaves out of a step is added to the next gradient. It was introduced with
# [1-bit SGD](https://www.microsoft.com/en-us/research/publication/1-bit-stochastic-gradient-descent-and-application-to-data-parallel-distributed-training-of-speech-dnns/)
# (Seide and others 2014), which sends only signs, and [Karimireddy and others
# 2019](https://arxiv.org/abs/1901.09847) prove, under the usual assumptions on the loss, that SGD with it converges at the
# rate of SGD, however rough the compression.
#
# Watch a gradient of 100 elements that is the same in each step, plus noise, with $k = 5$. After $t$ steps, $t$ times the mean
# gradient should have been sent.
#
# **Predict:** how does the part that is still to be sent, relative to the sum of all gradients so far, change
# from 200 steps to 2000?
#
# <details><summary>It has grown: in each step 95 of 100 elements are left over</summary>
#
# No: an element that waits becomes larger, and its turn comes. What is left stays about the same.
# </details>
#
# <details><summary>It is about the same, since as much is sent as arrives</summary>
#
# No: what is left stays about the same, and the sum of all gradients is ten times as large.
# </details>
#
# <details><summary>It has fallen about tenfold</summary>
#
# Yes: what is left does not grow, and the sum of all gradients does.
# </details>

# %%
if top_k_works:
    torch.manual_seed(0)
    mean, compressor = torch.randn(100), TopKFeedback(5)
    total, sent = torch.zeros(100), torch.zeros(100)
    for step in range(1, 2001):
        gradient = mean + 0.1 * torch.randn(100)
        indices, values = compressor.compress(gradient)
        total += gradient
        sent[indices] += values
        if step in (20, 200, 2000):
            print(f"{step:5} steps: {(total - sent).norm() / total.norm():.3f} of the gradients so far is still to be sent")

# %% [markdown]
# Multiply the share by the number of steps: what is left is worth seven to nine gradients each time. In the long run SGD gets
# all of the gradient, a little late.
#
# ## Does it train?
#
# Here is the network of chapter [23](23_zero.ipynb), which tells two spirals apart, on four ranks. Each rank compresses its
# gradient, an all-gather brings all compressed gradients to every rank, and every rank averages them. A *codec* packs a row of
# numbers into small tensors, and unpacks it; feedback works with any of them.

# %%
def spirals(count=256):
    """Points on two spirals, and which one each is on."""
    generator = torch.Generator().manual_seed(1)
    radius = 0.2 + 0.8 * torch.rand(count, generator=generator)
    which = torch.arange(count) % 2
    angle = torch.pi * (2 * radius + which)
    points = 2 * torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.03 * torch.randn(count, 2, generator=generator), which


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))


class Int8:
    def pack(self, row):
        scale = row.abs().amax().reshape(1) / 127
        return (row / scale).round().to(torch.int8), scale

    def unpack(self, q, scale):
        return q.float() * scale


class OneBit:
    """The signs, eight in a byte, and the mean of all magnitudes."""

    def pack(self, row):
        self.length, self.places = len(row), 2 ** torch.arange(8)
        signs = nn.functional.pad(row >= 0, (0, -len(row) % 8)).view(-1, 8)
        return (signs * self.places).sum(1).to(torch.uint8), row.abs().mean().reshape(1)

    def unpack(self, bits, scale):
        signs = (bits[:, None] & self.places).flatten()[: self.length] > 0
        return torch.where(signs, scale, -scale)


class TopK:
    def __init__(self, k):
        self.k = k

    def pack(self, row):
        self.length = len(row)
        indices = row.abs().topk(self.k).indices
        return indices.int(), row[indices]

    def unpack(self, indices, values):
        row = torch.zeros(self.length)
        row[indices.long()] = values
        return row


def compressed_mean(codec, packed):
    """The mean over ranks of what they have packed."""
    n = dist.get_world_size()
    gathered = []
    for tensor in packed:
        gathered.append([torch.empty_like(tensor) for _ in range(n)])
        dist.all_gather(gathered[-1], tensor)
    return sum(codec.unpack(*parts) for parts in zip(*gathered)) / n


def part_of(tensor):
    """This rank's part of the data: as many rows as any other's, one after the other."""
    return tensor.chunk(dist.get_world_size())[dist.get_rank()]


def losses_of_all(codecs, data, steps=150):
    """Train with each codec, without feedback and with it; return mean losses, and bytes in a step."""
    x, y = map(part_of, data)
    found = {}
    for name, codec in codecs.items():
        found[name] = []
        for feedback in (False, True) if codec else (False,):
            model, losses, left = network(), [], 0
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            for _ in range(steps):
                loss = nn.functional.cross_entropy(model(x), y)
                row = torch.cat([g.flatten() for g in torch.autograd.grad(loss, model.parameters())])
                if codec:
                    whole = row + left
                    packed = codec.pack(whole)
                    if feedback:
                        left = whole - codec.unpack(*packed)
                    row = compressed_mean(codec, packed)
                else:
                    dist.all_reduce(row)
                    row /= dist.get_world_size()
                sizes = [p.numel() for p in model.parameters()]
                for p, part in zip(model.parameters(), row.split(sizes)):
                    p.grad = part.view_as(p)
                optimizer.step()
                losses.append(loss.item())
            mean = torch.tensor(losses)
            dist.all_reduce(mean)
            nbytes = sum(t.nbytes for t in packed) if codec else row.nbytes
            found[name].append((mean / dist.get_world_size(), nbytes))
    return found


data = spirals()
CODECS = {
    "float32": None,
    "int8": Int8(),
    "1 bit": OneBit(),
    "the largest 45": TopK(45),
    "the largest 9": TopK(9),
}

# %% [markdown]
# The loss of a guess is ln 2 ≈ 0.69. After 150 steps with float32 gradients it is below 0.05. (There are 4482 parameters; 45
# are 1 %, and 9 are 0.2 %.)
#
# **Predict:** which of the others get below 0.2, without feedback and with it?
#
# <details><summary>Without it int8 alone, with it all four</summary>
#
# Yes: int8 hardly loses anything. The others lose most of it, and feedback brings it back later.
# </details>
#
# <details><summary>Without it int8 and 1 bit, with it the largest 45 as well</summary>
#
# No: a sign for each number is too little by itself, and 9 numbers are enough once what is left piles up.
# </details>
#
# <details><summary>Without it all but the largest 9, with it all four</summary>
#
# No: signs alone make all elements equally large, and 1 % alone leaves out the other 99 in every step.
# </details>

# %%
trained = run(losses_of_all, 4, CODECS, data, seconds=120)[0]
print("                 bytes of a gradient   below 0.2 without feedback   with")
for name in CODECS:
    below = [str(bool(losses[-1] < 0.2)) for losses, _ in trained[name]] + [""]
    print(f"{name:16} {trained[name][0][1]:19,} {below[0]:>28} {below[1]:>6}")
figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
for feedback, ax in enumerate(axes):
    for name in CODECS:
        ax.plot(trained[name][feedback if CODECS[name] else 0][0], label=name)
    ax.set_title("with error feedback" if feedback else "without")
    ax.set_xlabel("step")
axes[0].set_ylabel("loss")
axes[1].legend(loc="upper right", fontsize="small")  # where no curve runs
plt.show()

# %% tags=["claim"]
assert max((trained[name][0][0][-1], name) for name in CODECS)[1] == "1 bit", "without feedback, one bit is last"
assert all(trained[name][1][0][-1] < 0.1 for name in ("1 bit", "the largest 45")), "with it, both end near float32"
assert trained["the largest 9"][1][0][-1] > 1.5 * trained["float32"][0][0][-1], "9 numbers are well above float32"

# %% [markdown]
# int8 trains like float32, with or without feedback: the three curves coincide. Without feedback the other
# three fall behind, and one bit for each number most of all. With it, 1 bit, a thirty-second of
# the bytes, ends near float32, and so does the largest 1 %, after a slow beginning: most elements have to
# pile up before they are sent. Even with 9 numbers of 4482 the network learns, but more slowly: after 150
# steps its loss is still well above that of float32.
#
# (All of this is SGD. Adam is not linear in the gradient, so what is added late does not make up for what
# was left out. [1-bit Adam](https://arxiv.org/abs/2102.02888) therefore freezes Adam's running mean of
# squares after a warm-up.)
#
# Your `TopKFeedback` does what the codec with feedback does, so it should train just as well:

# %%
class WithYours(TopK):
    """The codec of your class, which has the feedback inside."""

    def __init__(self, k):
        super().__init__(k)
        self.yours = TopKFeedback(k)

    def pack(self, row):
        self.length = len(row)
        indices, values = self.yours.compress(row)
        return indices.int(), values


def losses_with_yours(k, data):
    return losses_of_all({"yours": WithYours(k)}, data)["yours"][0][0]


if top_k_works:
    yours = run(losses_with_yours, 4, 45, data, seconds=60)[0]
    codec = trained["the largest 45"][1][0]
    print("the same losses to 1e-3:", torch.allclose(yours, codec, atol=1e-3))

# %% [markdown]
# ## Gathered, not added up
#
# Top-k has a catch. The largest elements of one rank are not those of another, so compressed gradients cannot be added up on
# the way, as an all-reduce does. They are **gathered**: every rank receives those of all the others, $(n - 1) \cdot 8k$ bytes
# with 4-byte indices.
#
# **Predict:** $k$ is 1 % of $P$. With how many ranks does this begin to send more than the uncompressed
# ring all-reduce in float32?
#
# <details><summary>With about 10 ranks</summary>
#
# No: each rank passes on $8k$ bytes for each of the others, which is 2 % of $4P$. Ten of those are far from
# $8P$.
# </details>
#
# <details><summary>With about 100 ranks</summary>
#
# Yes: with more ranks there is more to gather, and a ring never sends more than $8P$ bytes.
# </details>
#
# <details><summary>Never: it sends 1 % of the numbers</summary>
#
# No: that is what each rank gives. What it passes on grows with the number of ranks, and a sum does not.
# </details>

# %%
def ring_bytes(n, params):
    return 2 * (n - 1) / n * 4 * params


def gathered_bytes(n, k):
    return (n - 1) * 8 * k


for n in (2, 8, 32, 64, 100, 128, 512):
    ring, gathered = ring_bytes(n, 10**8), gathered_bytes(n, 10**6)
    print(f"{n:4} ranks: ring {ring / 1e6:6.1f} MB, top 1 % gathered {gathered / 1e6:8.1f} MB")

# %% [markdown]
# With 100 ranks or more, nothing is saved. That is one reason why papers go to 0.1 % and below: [Deep
# Gradient Compression](https://arxiv.org/abs/1712.01887) (Lin and others 2017) sends 0.1 %, and needs
# momentum correction, clipping and a warm-up for it. (Finding the $k$ largest of a billion numbers also takes
# time.)
#
# ## Low rank: compression that can be added up
#
# The gradient of a layer is a matrix $G$ of $a \times b$. [PowerSGD](https://arxiv.org/abs/1905.13727) (Vogels and others
# 2019) replaces it by a product of two thin ones, $G \approx P Q^\top$ with $r$ columns each: $r(a + b)$ numbers instead of
# $ab$. Such a product is a matrix of *rank* $r$, in the sense of linear algebra. To find $P$ and $Q$, it takes one step of
# the **power iteration**, which turns any few columns towards the directions in which $G$ is largest, by multiplying again
# and again with $G$ and $G^\top$. Each training step begins with the $Q$ of the one before:
#
# $$P = \overline{G_i}\,Q = \overline{G_i Q}, \qquad P \leftarrow \text{orthogonalize}(P), \qquad Q = \overline{G_i^\top P}$$
#
# $G_i$ is the gradient on rank $i$, the bars are means over all ranks, and orthogonalizing makes unit vectors of the columns,
# at right angles to each other. **The products are linear in $G_i$**, so the mean of $G_i Q$ is the product of the mean
# gradient: an ordinary all-reduce adds them up, and what is sent does not grow with $n$. Error feedback keeps
# $G_i - P Q^\top$.
#
# A gradient of 64 × 64 does not change. After how many such steps are two columns nearly as good as the
# best two, those of the singular value decomposition?

# %%
torch.manual_seed(0)
G = torch.randn(64, 8) @ torch.diag(2.0 ** -torch.arange(8)) @ torch.randn(8, 64) + 0.02 * torch.randn(64, 64)
U, S, V = torch.linalg.svd(G)
best = (G - U[:, :2] @ torch.diag(S[:2]) @ V[:2]).norm() / G.norm()
Q = torch.randn(64, 2)
for step in range(1, 6):
    left = torch.linalg.qr(G @ Q).Q
    Q = G.T @ left
    print(f"after {step} steps: {(G - left @ Q.T).norm() / G.norm():.3f} of G is missing; at best {best:.3f}")

# %% [markdown]
# Two steps are enough. PowerSGD takes only one for each gradient, but each goes on where the last one ended, and error
# feedback keeps what is missed.
#
# ### Compared with torch's own
#
# `DistributedDataParallel` lets you replace its all-reduce by a [communication
# hook](https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html). Some come with torch:
# `fp16_compress_hook` casts each bucket to float16 and back, and `powerSGD_hook` is what you have just
# read. They also run on gloo; here on two ranks, with two layers of 64 × 64.
#
# There are 8192 gradients. How many bytes are in the all-reduces of a step with no hook, with float16, and with PowerSGD of
# rank 1?

# %%
def with_hook(kind, steps=5):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Tanh(), nn.Linear(64, 64, bias=False))
    ddp = DistributedDataParallel(model)
    if kind == "float16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if kind == "PowerSGD":
        state = powerSGD_hook.PowerSGDState(
            process_group=None, matrix_approximation_rank=1, start_powerSGD_iter=2
        )
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for step in range(steps):
        torch.manual_seed(dist.get_rank() + 10 * step)
        ddp(torch.randn(8, 64)).square().sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


for kind in ("no hook", "float16", "PowerSGD"):
    done = run(with_hook, 2, kind, seconds=60)
    reductions = [op for op in done.trace.operations[0] if op.kind == "all_reduce" and op.nbytes]
    alike = torch.equal(done[0], done[1])
    last = reductions[-2:] if kind == "PowerSGD" else reductions[-1:]
    print(f"{kind:9} the last step: {[op.nbytes for op in last]} bytes; the same on both ranks: {alike}")

# %% [markdown]
# PowerSGD makes two all-reduces in each step, of the $P$s of both layers and then of their $Q$s:
# $2 \cdot 64$ numbers each, where there were 8192. With its defaults, torch's hook averages the first 1000
# steps in the usual way, since gradients change fast at the beginning, and skips tensors that would not
# shrink to half or less, such as biases.
#
# All ranks have the same gradients again, because each of them gets the *same* $P$ and $Q$ from an
# all-reduce.
#
# ## Less often: local steps
#
# All of this still waits for the network in each step. So let ranks walk alone for a while: each takes $H$
# ordinary steps on its own data with its own optimizer, and only then are their weights averaged. This is
# **local SGD**; [Stich 2018](https://arxiv.org/abs/1805.09767) proves for smooth, strongly convex losses
# that it can keep the rate of SGD, and communicate up to $\sqrt{T}$ times less often in $T$ steps. Torch
# has it as [`PostLocalSGDOptimizer`](https://docs.pytorch.org/docs/stable/distributed.optim.html) with a
# `PeriodicModelAverager` from `torch.distributed.algorithms.model_averaging`.
#
# **DiLoCo** ([Douillard and others 2023](https://arxiv.org/abs/2311.08105)) goes further. Step back: call
# the last common weights $\theta$; after $H$ steps rank $r$ is at $\theta_r$. The mean change of all ranks,
#
# $$\Delta = \frac{1}{n} \sum_r (\theta - \theta_r),$$
#
# points *away* from where everyone went, as a gradient points away from where SGD goes. So treat it as a gradient, and let an
# **outer optimizer** take a step with it: SGD with Nesterov momentum. The optimizers of the $H$ **inner steps** know
# nothing of it.
#
# ![An outer step. From common weights, three ranks walk along crooked paths of inner steps to three different places. The mean
# of these places is marked; the arrow from the common weights to it is minus Delta. The new common weights lie beyond the mean,
# since the velocity of earlier outer steps is added, and all three ranks go on from there.](../imgs/outer_step.png)
#
# ## Exercise: DiLoCo
#
# `DiLoCo(module, inner_steps, outer_lr, momentum)` is made once; at that moment all ranks get rank 0's parameters.
# `after_inner_step()` is called after every step of the inner optimizer. Every `inner_steps` calls it takes an outer step:
# the mean change is a gradient for SGD with Nesterov momentum on the last common weights, with the learning rate
# `outer_lr` and `momentum`; the result goes into the parameters, and it returns `True`. In all other calls it
# returns `False`, changes nothing, and **sends nothing**.
#
# - What one step of that SGD does, [`torch.optim.SGD`](https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html)
#   tells you (`nesterov=True`, no dampening). Write it out, or let an optimizer of your own make it.
# - `dist.all_reduce` and `dist.broadcast` are allowed.
# - The inner optimizer holds the parameters of the module, so write into them.
# - A module may have frozen parameters, and tied ones; all parameters have one dtype.

# %%
class DiLoCo:
    """Ranks train alone, and take an outer step together every inner_steps."""

    def __init__(self, module: nn.Module, inner_steps: int, outer_lr: float, momentum: float):
        ### BEGIN SOLUTION
        self.parameters = list(module.parameters())
        for p in self.parameters:
            dist.broadcast(p.detach(), 0)
        self.common = [p.detach().clone() for p in self.parameters]
        self.velocity = [torch.zeros_like(p) for p in self.common]
        self.inner_steps, self.outer_lr, self.momentum = inner_steps, outer_lr, momentum
        self.count = 0
        ### END SOLUTION

    @torch.no_grad()
    def after_inner_step(self) -> bool:
        ### BEGIN SOLUTION
        self.count += 1
        if self.count % self.inner_steps:
            return False
        for p, common, velocity in zip(self.parameters, self.common, self.velocity):
            change = common - p
            dist.all_reduce(change)
            change /= dist.get_world_size()
            velocity.mul_(self.momentum).add_(change)
            common -= self.outer_lr * (change + self.momentum * velocity)
            p.copy_(common)
        return True
        ### END SOLUTION


diloco_works = check(DiLoCo)
diloco_works

# %% [markdown]
# ### What an outer step is
#
# With $\eta$ for `outer_lr` and $\mu$ for `momentum`, and a velocity $v$ that is 0 in the beginning, you have
# written
#
# $$v \leftarrow \mu v + \Delta, \qquad \theta \leftarrow \theta - \eta\,(\Delta + \mu v)$$
#
# <details><summary>Why Δ + μv, where plain momentum has v?</summary>
#
# Nesterov's idea is to take the gradient not where we are, at $\varphi$, but where momentum is about to carry
# us, at $\theta = \varphi - \eta \mu v$:
#
# $$v' = \mu v + \Delta(\theta), \qquad \varphi' = \varphi - \eta v'$$
#
# A program keeps the weights at which it takes gradients, so write the same step for the points ahead, $\theta$ and
# $\theta' = \varphi' - \eta \mu v'$:
#
# $$\theta' = \underbrace{\theta + \eta \mu v}_{\varphi} - \eta v' - \eta \mu v' = \theta - \eta\,(v' - \mu v) - \eta \mu v'
# = \theta - \eta\,(\Delta + \mu v').$$
#
# </details>
#
# What is an outer step with $\eta = 1$ and $\mu = 0$?
#
# **Predict:** with $\eta = 0.7$ and $\mu = 0.9$, how far does the first outer step go, and how far do late ones, if $\Delta$
# stays the same?
#
# <details><summary>0.7 and 0.7 times Δ</summary>
#
# No: that is without momentum. Nesterov's step takes $\mu v$ on top of $\Delta$, already in the first step.
# </details>
#
# <details><summary>0.7 and 7 times Δ</summary>
#
# No: that would be plain momentum, whose first step is $\eta \Delta$. Nesterov's is $\eta\,(1 +
# \mu)\,\Delta$.
# </details>
#
# <details><summary>1.33 and 7 times Δ</summary>
#
# Yes: the first is $0.7 \cdot 1.9$. And $v$ grows to $1/(1 - \mu) = 10$ times $\Delta$, so late steps are
# $0.7 \cdot (1 + 9)$.
# </details>

# %%
for eta, mu in ((1.0, 0.0), (0.7, 0.9)):
    v, steps = 0.0, []
    for _ in range(60):
        v = mu * v + 1  # in units of Delta
        steps.append(eta * (1 + mu * v))
    print(f"eta {eta}, mu {mu}: first {steps[0]:.2f}, second {steps[1]:.2f}, the 60th {steps[-1]:.2f} Delta")

# %% [markdown]
# With $\eta = 1$ and $\mu = 0$ the new weights are $\theta - \Delta$, the mean of all $\theta_r$: local SGD. With 0.9, steps
# in one direction grow towards $\eta / (1 - \mu) = 7$ times $\Delta$: an outer step then goes seven times as far as the ranks
# did, on average, since the last one.
#
# ## Does that train as well?
#
# The four ranks and the spirals are the same, now with AdamW inside. We compare 200 steps of data parallelism, which
# averages gradients in every step, with two ways to communicate every 20 steps: averaging the weights, as in local SGD,
# and DiLoCo.
#
# Are those two any worse after 200 steps, on all of the data?

# %%
def compare_ways(ways, data, steps=200, one_class_each=False):
    """Train once in each way; return the losses on all of the data, after every 20 steps."""
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (t[rank::n] for t in data) if one_class_each else map(part_of, data)
    found = {}
    for name, options in ways.items():
        model, losses = network(), []
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
        outer = DiLoCo(model, *options) if options else None
        for step in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            if not outer:
                for p in model.parameters():
                    dist.all_reduce(p.grad)
                    p.grad /= n
            optimizer.step()
            if outer:
                outer.after_inner_step()
            if step % 20 == 19:
                with torch.no_grad():
                    losses.append(nn.functional.cross_entropy(model(data[0]), data[1]).item())
        found[name] = losses
    return found


WAYS = {
    "data parallel": None,
    "averages": (20, 1.0, 0.0),
    "DiLoCo": (20, 0.7, 0.9),
}
if diloco_works:
    fair = run(compare_ways, 4, WAYS, data, seconds=120)[0]
    for name, losses in fair.items():
        print(f"{name:14} below 0.01 at the end: {losses[-1] < 0.01}")
    figure, axes = plt.subplots(figsize=(6, 3))
    for name, losses in fair.items():
        axes.semilogy(range(20, 201, 20), losses, marker="o", label=name)
    axes.set_xlabel("inner step")
    axes.set_ylabel("loss on all of the data")
    axes.legend()
    plt.show()

# %% tags=["claim"]
assert fair["DiLoCo"][4] < min(fair["data parallel"][4], fair["averages"][4]) / 2, "DiLoCo is faster than both"
assert fair["averages"][-1] < 3 * fair["data parallel"][-1], "averages keep up with data parallelism"

# %% [markdown]
# Neither is worse, on this small task: averaging every 20 steps keeps up with data parallelism, and at this
# learning rate the outer momentum makes DiLoCo faster than both. (As computed above, its outer steps go up
# to seven times as far as the ranks did. A larger learning rate would also speed up data parallelism.)
# The authors of DiLoCo report that with 8 workers and $H = 500$ it performs as well as synchronous training
# on a language model, while communicating 500 times less. (Outer momentum also helps on a single worker, as
# [later work](https://arxiv.org/abs/2510.15830) found.)
#
# But there is a condition in the experiment that is easy to miss: each rank's data is a fair sample of all. Look at how the
# points were shared out, `tensor.chunk(n)[rank]`. In `spirals()`, even points are on one spiral and odd ones on the other.
#
# **Predict:** which of the three get below 0.1 if rank $r$ takes points $r, r + n, r + 2n, \dots$ instead, with $n = 4$?
#
# <details><summary>All three: each rank still has a quarter of the points</summary>
#
# No: 4 is even, so each rank has points of one spiral only. What it learns alone is to answer with that one.
# </details>
#
# <details><summary>Data parallelism alone</summary>
#
# Yes: the mean of the gradients is that of all points, however they are shared out. Ranks that walk alone
# know one spiral only.
# </details>
#
# <details><summary>None: no rank sees both spirals</summary>
#
# No: with data parallelism that does not matter. The gradients are averaged before any weight moves.
# </details>

# %%
if diloco_works:
    unfair = run(compare_ways, 4, WAYS, data, 200, True, seconds=120)[0]
    for name, losses in unfair.items():
        print(f"{name:14} below 0.1 at the end: {losses[-1] < 0.1}")

# %% [markdown]
# A rank that walks alone for 20 steps learns to answer with its own spiral, whatever the point, and four
# such ranks have no common direction to average. The authors of DiLoCo report great robustness to how data
# are distributed among workers. One class for each rank is the extreme case, and it is an easy accident:
# stride and data had a common period.
#
# ## Bytes for each token
#
# A model of $P$ parameters in float32 on $n$ ranks, with $T$ tokens on each rank in a step:
#
# | | bytes that a rank sends for each of its tokens |
# |---|---|
# | data parallel | $\frac{2(n-1)}{n} \cdot 4P \,/\, T$ |
# | DiLoCo | $\frac{2(n-1)}{n} \cdot 4P \,/\, (H \cdot T)$ |
#
# With $P$ = 1 billion, $n = 8$, $T$ = 65,536 and $H$ = 500, how many bytes is that for each token, in either case?

# %%
def traffic_of(options, steps):
    """Count what is sent in some steps; ranks do not compute anything."""
    module = nn.Linear(1000, 1, bias=False)
    outer = DiLoCo(module, *options) if options else None
    for _ in range(steps):
        if outer:
            outer.after_inner_step()
        else:
            dist.all_reduce(torch.ones(1000))


if diloco_works:
    T, H = 65536, 500
    ring = {"algorithms": {"all_reduce": "ring"}, "record": True, "seed": 0}
    for name, options, steps in (("data parallel", None, 1), ("DiLoCo", (H, 0.7, 0.9), H)):
        once = simulate(traffic_of, 8, options, 0, **ring).trace.traffic.max_sent  # the broadcast
        sent = simulate(traffic_of, 8, options, steps, **ring).trace.traffic.max_sent - once
        per_token = sent * 10**6 / steps / T  # of a million times as many parameters
        print(f"{name:14} {sent:5,} bytes for 1000 parameters in {steps:3} steps; for a billion {per_token:9,.1f} a token")

# %% [markdown]
# (The first broadcast is left out; it happens once.)
#
# ## Two buildings and a cable
#
# Finally, time. Eight ranks are in two buildings, four in each, with 50 GB/s inside and one cable in
# between. A step computes for one second, and there are a billion float32 parameters. The simulation takes
# a millionth of the bytes over links of a millionth of the speed.
#
# With 10 Gbit/s between the buildings, how long does a step of data parallelism take with a ring, if
# nothing overlaps? What do two levels gain, as in chapter [21](21_hierarchy.ipynb), and your int8? And how
# long does a step of DiLoCo with $H = 100$ take, on average?

# %%
SHRINK = 10**6


def buildings(bits):
    """Two buildings of four ranks, and a cable of so many bits a second between them."""
    return Nodes(
        ranks_per_node=4,
        alpha_inside=5e-6,
        beta_inside=SHRINK / 50e9,
        alpha_between=10e-3,
        beta_between=SHRINK * 8 / bits,
    )


def two_levels(x):
    """An exact sum, of which each number crosses the cable once in each direction."""
    rank = dist.get_rank()
    inside = [dist.new_group([0, 1, 2, 3]), dist.new_group([4, 5, 6, 7])][rank // 4]
    across = [dist.new_group([place, place + 4]) for place in range(4)][rank % 4]
    part = x.new_empty(len(x) // 4)
    dist.reduce_scatter_tensor(part, x, group=inside)
    dist.all_reduce(part, group=across)
    dist.all_gather_into_tensor(x, part, group=inside)


def timed_steps(all_reduce, H):
    """Seconds that a step takes on average: one of computing, and the time for what is sent."""
    steps = H or 1
    module = nn.Linear(1000, 1, bias=False)
    outer = DiLoCo(module, H, 0.7, 0.9) if H else None
    dist.barrier()
    started = time.perf_counter()
    for _ in range(steps):
        time.sleep(1.0)
        if outer:
            outer.after_inner_step()
        else:
            all_reduce(torch.ones(1000))
    return (time.perf_counter() - started) / steps


if quantized_works and diloco_works:
    ring = {"all_reduce": "ring"}
    print("between the buildings   400 Gbit/s    10 Gbit/s     1 Gbit/s")
    ways = {
        "float32, a ring": (dist.all_reduce, None),
        "float32, two levels": (two_levels, None),
        "your int8": (quantized_all_reduce, None),
        "DiLoCo, H = 10": (None, 10),
        "DiLoCo, H = 100": (None, 100),
    }
    for name, way in ways.items():
        times = [
            max(simulate(timed_steps, 8, *way, cluster=buildings(bits), algorithms=ring, seed=0))
            for bits in (400e9, 10e9, 1e9)
        ]
        print(f"{name:21}" + "".join(f"{seconds:11.2f} s" for seconds in times))

# %% [markdown]
# Over 1 Gbit/s, data parallelism computes for one second and then waits for about a minute, or for half a
# minute with two levels. Your int8 is no faster than that: 32 chunks of an eighth cross the cable in each
# direction, 16 terms and 16 sums, each at a quarter of its size, which is as many bytes as with two exact
# levels. ZeRO++ therefore also works in two levels. DiLoCo with $H = 100$ waits for about half a
# second a step, and could nearly halve that with two levels.
#
# All ranks still wait at the same moment, every $H$ steps, for everything at once. [Streaming
# DiLoCo](https://arxiv.org/abs/2501.18512) (Douillard and others 2025) mends that: it synchronises a part of the layers at a time,
# lets inner steps go on meanwhile, and sends the changes in 4 bits. There the three ideas of this chapter come together.
#
# ## Summary
#
# With messages from rank to rank, an exact sum takes as many bytes from each rank as a ring sends, and over
# a cable between two halves a whole gradient each way. A slow link calls for another kind of step.
#
# - **Fewer bits.** int8 with a scale for each chunk is a quarter of float32. Quantize once on each way; a
#   ring quantizes again at every hop. But sending everything directly crosses a shared cable more often.
#   All ranks keep what was sent, the owner of a chunk included, or they drift apart.
# - **Fewer numbers.** The largest ones, with **error feedback**: what is not sent is added to the next gradient, so nothing is
#   lost, only late. What is gathered grows with $n$; what is linear, such as PowerSGD's factors, can be all-reduced.
# - **Less often.** Ranks take many inner steps alone; the mean change is a gradient for an outer optimizer.
#   The bytes for each token fall by a factor of $H$. Each rank's data should be a fair sample.
# - Compression is worth its error only where the link is the bound, and gradients cannot hide behind the
#   backward pass.
#
# **Where this is used:** [ZeRO++](https://www.deepspeed.ai/tutorials/zeropp/) quantizes weights and
# gradients in DeepSpeed; PowerSGD and float16 are hooks of `DistributedDataParallel`; DiLoCo has trained
# models over the Internet, such as [INTELLECT-1](https://arxiv.org/abs/2412.01152), which sends the changes
# in int8.
#
# ### Check yourself
#
# <details><summary>The owner of a chunk keeps its exact sum, the others have the quantized one. The error bound holds. What goes wrong in training?</summary>
#
# Each rank takes its step with a slightly different gradient, so its weights differ from then on. Nothing ever brings
# the weights back together: the differences add up step after step.
# </details>
#
# <details><summary>Why does each rank have to keep what it left out? Could the rank that adds up not do that?</summary>
#
# Only the sender knows what it has left out. The receiver sees what arrived, and not what should have
# arrived. (For the second quantization, that of the sum, it is the other way round: there the owner knows
# the error.)
# </details>
#
# <details><summary>After an outer step of DiLoCo, AdamW's momentum on each rank belongs to the weights from before. Does that do harm?</summary>
#
# It is a little out of date, as its running means always are. DiLoCo leaves the inner states where they are, and does not send them.
# </details>
#
# <details><summary>You have 64 GPUs in 8 machines, with 50 GB/s between them, and 32,768 tokens for each GPU in a step. Which of these methods do you need?</summary>
#
# None: with about 19,500 tokens or more for each GPU, the gradients hide behind the backward pass. Measure
# first.
# </details>
#
# **To go on:** read [Streaming DiLoCo](https://arxiv.org/abs/2501.18512), and find in it each of the three ways to send less.
#
# **Next:** [30 · Capstone](30_capstone.ipynb), in which your pieces train a transformer together.
