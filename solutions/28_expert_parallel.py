# %% [markdown]
# # 28 · Expert parallelism
#
# Larger models learn more, and cost more: in a dense model every token passes through every weight. A
# **mixture of experts** breaks that link. It has many small networks, the *experts*, and each token uses only
# a few of them. Mixtral has [47 billion parameters, of which a token uses
# 13](https://arxiv.org/abs/2401.04088); DeepSeek-V3 has [671 billion, and a token uses
# 37](https://arxiv.org/abs/2412.19437). But all 671 have to be somewhere. So the experts live on different
# ranks, and in each such layer the tokens travel to them and back.
#
# Chapter [08](08_all_to_all.ipynb) sent tokens to one expert on each rank and back, and chapter
# [10](10_scatter_reduce.ipynb) added up what several experts make of one token. Now you train such a
# layer: a router has to choose, an expert may be full, and gradients have to find their way back.
#
# **You will learn** to route tokens to a limited number of places, to keep experts evenly busy, to send
# gradients through an all-to-all, and what all of this costs in bytes and in time.
#
# **You need** chapters [08](08_all_to_all.ipynb), [10](10_scatter_reduce.ipynb) and
# [17](17_sharded_matmul.ipynb) (`torch.autograd.Function` around a collective).
#
# **Time:** 2 hours, and 2 exercises, worth 3 points.

# %%
import math
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from grader import check, hint, mark, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## More parameters, the same work
#
# Here is an expert: two linear layers, as in the MLP of a transformer. A **router** is one more linear
# layer, which gives each token a number for each expert, its *logits*. The token goes to the $k$ experts
# with the largest logits.
#
# **Predict:** a layer of 64 such experts with $k = 2$ takes the place of a single MLP. How many times as many
# parameters does it have, and how many times as many operations does a token take?
#
# <details><summary>64 times the parameters, 64 times the operations</summary>
#
# No: a token passes through two experts only. The other 62 have nothing to do with it.
# </details>
#
# <details><summary>64 times the parameters, about twice the operations</summary>
#
# Yes: all experts have to be somewhere, and two of them work on the token. The router adds a little.
# </details>
#
# <details><summary>64 times the parameters, and fewer operations: an expert is smaller</summary>
#
# No: here an expert is as large as the MLP, and two of them work on the token.
# </details>

# %%
WIDTH = 64


def mlp(width=WIDTH):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


def parameters(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def operations(*modules):
    token = torch.ones(1, WIDTH)
    with FlopCounterMode(display=False) as counter:
        for module in modules:
            module(token)
    return counter.get_total_flops()


one = mlp()
for count, k in ((8, 2), (64, 2)):
    experts, router = [mlp() for _ in range(count)], nn.Linear(WIDTH, count, bias=False)
    print(
        f"{count} experts, k = {k}: {parameters(router, *experts) / parameters(one):.1f} times the parameters,"
        f" {operations(router, *experts[:k]) / operations(one):.2f} times the operations"
    )

# %% [markdown]
# The parameters grow with the number of experts; the work grows with $k$ (and a little with the router).
#
# ## A place for each token
#
# The $k$ experts of a token get **weights**: the softmax of their logits, over these $k$ only. That is
# how [Mixtral](https://arxiv.org/abs/2401.04088) does it. The result for the token is the weighted sum of
# what its experts make of it.
#
# Nothing makes sure that the experts are chosen equally often. Yet buffers have a size, and a rank has a
# limited amount of time. So an expert may get a **capacity**: the largest number of tokens that it takes.
# A choice that finds its expert full is **dropped**: the token does without that expert. If it loses all
# its experts, the layer gives zeros for it, and only the residual connection around the layer carries it
# on ([Switch Transformers](https://arxiv.org/abs/2101.03961), section 2.2).
#
# ![Six tokens in a column, each with an arrow to one of three experts, which have two places each. Tokens
# 0 and 2 fill expert 0, token 1 goes to expert 1, tokens 3 and 4 find expert 0 full and are dropped, with
# dashed arrows. Token 5 goes to expert 2. One place of expert 1 and one of expert 2 stay
# empty](../imgs/expert_capacity.png)
#
# Places are given in order: token by token, and for each token from its first choice to its last.
#
# Here are 4 tokens, and 3 experts with room for 2 each, with $k = 2$:
#
# | token | logits | first choice | second choice |
# |---|---|---|---|
# | 0 | 3, 2, 1 | expert 0 | expert 1 |
# | 1 | 3, 1, 2 | expert 0 | expert 2 |
# | 2 | 3, 2, 1 | expert 0 | expert 1 |
# | 3 | 1, 3, 2 | expert 1 | expert 2 |
#
# **Predict:** which choices are dropped?
#
# <details><summary>The second choices of tokens 2 and 3, which come last</summary>
#
# No: a second choice is as good as a first one. That of token 2 finds room, and so does that of token
# 3.
# </details>
#
# <details><summary>The first choices of tokens 2 and 3</summary>
#
# Yes: tokens 0 and 1 have filled expert 0, and tokens 0 and 2 have filled expert 1.
# </details>
#
# <details><summary>Both choices of token 2: its experts are full</summary>
#
# No: it would be so if all first choices were placed before all second ones. But token 2 comes before
# token 3, when expert 1 still has room.
# </details>
#
# ## Exercise: route
#
# `logits` is a tensor of tokens × experts. Return two tensors, both tokens × $k$:
#
# - the experts of each token, best first, as `int64`;
# - their weights: the softmax over the $k$ chosen logits, in the dtype of `logits`.
#
# Where the chosen expert already has `capacity` tokens, the entry is −1 instead, and its weight is 0. Places
# are given token by token, and then by choice. The weights that are left stay as they are. There may be no
# tokens, and the capacity may be 0. Gradients have to flow from the weights back to `logits`: the router has no
# other way to learn.
#
# A loop over tokens is right, but slow. Without one you need the running count of each expert. Useful:
# `topk`, `F.one_hot`, `cumsum`, `masked_fill`.

# %%
def route(logits: torch.Tensor, k: int, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k experts of each token and their weights; −1 and 0 where the expert is full."""
    ### BEGIN SOLUTION
    chosen, experts = logits.topk(k, dim=1)
    wanted = F.one_hot(experts.flatten(), logits.shape[1])
    place = wanted.cumsum(0).gather(1, experts.reshape(-1, 1)).view_as(experts)
    full = place > capacity
    return experts.masked_fill(full, -1), chosen.softmax(1).masked_fill(full, 0)
    ### END SOLUTION


route_works = check(route)
route_works

# %% [markdown]
# Here is the table again, by your function.

# %%
table = torch.tensor([[3.0, 2, 1], [3, 1, 2], [3, 2, 1], [1, 3, 2]])
if route_works:
    chosen, weights = route(table, 2, 2)
    for token in range(4):
        rounded = [round(weight, 2) for weight in weights[token].tolist()]
        print(f"token {token}: experts {chosen[token].tolist()}, weights {rounded}")

# %% [markdown]
# Token 2 finds expert 0 full, since tokens 0 and 1 were there first, although it wants that expert as
# much as they do. It keeps its second choice, with the weight 0.27 that it had. For token 3 it is expert 1 that
# is full. The order of the tokens decides, and nothing else.
#
# ### A router with one choice
#
# **Predict:** with $k = 1$, what is the weight of the expert, and what gradient do the logits get?
#
# <details><summary>The expert's probability, and a gradient</summary>
#
# No: the softmax here goes over the chosen logits only, and one is chosen.
# </details>
#
# <details><summary>1, and a gradient of 1 for its logit</summary>
#
# No: the weight does not follow the logit. It is 1 whatever the logit is.
# </details>
#
# <details><summary>1, and no gradient</summary>
#
# Yes: a softmax over one number is always 1, and the derivative of what never changes is 0.
# </details>

# %%
if route_works:
    for k in (1, 2):
        logits = table.clone().requires_grad_()
        _, weights = route(logits, k, 100)
        (gradient,) = torch.autograd.grad(weights[:, 0].sum(), [logits])
        print(f"k = {k}: first weights {[round(w, 2) for w in weights[:, 0].tolist()]},", end=" ")
        print(f"largest gradient {gradient.abs().max():.2f}")

# %% [markdown]
# A softmax over one number is 1, whatever the number is, and the router never learns. That is why [Switch
# Transformers](https://arxiv.org/abs/2101.03961), which uses $k = 1$, takes the softmax over *all* experts, and
# the probability of the chosen one is its weight.
#
# ## Evenly busy
#
# Take a router as it is before training, and tokens that have something in common, as words of one language do.
#
# **Predict:** 8 experts, 1024 tokens, $k = 1$. With even loads each expert gets 128. How many does the busiest
# get?
#
# <details><summary>About 150: random weights spread tokens evenly</summary>
#
# No: that would be so for tokens that have nothing in common. What all tokens share gives some experts
# a lead with every one of them.
# </details>
#
# <details><summary>Between 300 and 400</summary>
#
# Yes: what the tokens share favours the same experts every time, but their differences still count.
# </details>
#
# <details><summary>Nearly all: what the tokens share decides</summary>
#
# No: here the shared part is about as large as what is different in each token, so several experts get
# some.
# </details>

# %%
torch.manual_seed(3)
tokens = torch.randn(1024, WIDTH) + torch.randn(WIDTH)  # the second term is the same for all
router = nn.Linear(WIDTH, 8, bias=False)


def loads(logits):
    """How many tokens have each expert as their first choice."""
    return logits.argmax(1).bincount(minlength=logits.shape[1])


busy = loads(router(tokens))
print(f"the busiest expert has {busy.max() / 128:.1f} times its share;", end=" ")
print(f"{int((busy < 64).sum())} of 8 experts have less than half of theirs")

# %% [markdown]
# And it may get worse with training: an expert that gets more tokens learns more, gets better, and is
# chosen even more often ([Shazeer and others 2017](https://arxiv.org/abs/1701.06538), section 4).
#
# So the loss gets a second term, the **auxiliary loss**. In the form of [Switch
# Transformers](https://arxiv.org/abs/2101.03961) it is
#
# $$N \sum_{i=1}^{N} f_i P_i$$
#
# times a small factor, for $N$ experts. $f_i$ is the share of the tokens whose first choice is expert
# $i$, and $P_i$ the probability that the router gives to expert $i$, averaged over the tokens.
#
# What is its value if the loads are even? And if all tokens go to one expert, with probability 1? Through
# which of its two factors can a gradient flow?

# %%
def auxiliary_loss(logits):
    f = loads(logits) / len(logits)
    P = logits.softmax(1).mean(0)
    return logits.shape[1] * (f * P).sum()


even = 100 * F.one_hot(torch.arange(1024) % 8, 8).float()
single = 100 * F.one_hot(torch.zeros(1024, dtype=torch.int64), 8).float()
print(f"even: {auxiliary_loss(even):.2f}, all to one expert: {auxiliary_loss(single):.2f}")
print("the counts have a gradient:", loads(router(tokens)).requires_grad)

# %% [markdown]
# It is 1 if the loads are even, and $N$ if one expert gets everything. A count does not change when a logit
# changes a little, so $f$ has no gradient. $P$ has one, and $f$ says how strongly each probability is
# pushed down: the busier the expert, the more. (Where each rank has only a few sequences, an all-reduce of
# the counts lets $f$ speak for all ranks; [Qiu and others 2025](https://arxiv.org/abs/2501.11873) find that
# experts then specialize more and models get better.)
#
# We train the router on this term alone for 200 steps. Does the busiest expert then have less than 1.5
# times its share?

# %%
optimizer = torch.optim.SGD(router.parameters(), lr=0.02)
before = auxiliary_loss(router(tokens)).item()
for _ in range(200):
    optimizer.zero_grad()
    auxiliary_loss(router(tokens)).backward()
    optimizer.step()
busy = loads(router(tokens))
print("the auxiliary loss has fallen:            ", auxiliary_loss(router(tokens)).item() < before)
print("busiest expert, below 1.5 times its share:", bool(busy.max() < 1.5 * 128))

# %% [markdown]
# In training the term must not win over the loss that matters, hence the small factor: Switch Transformers
# uses 0.01. There are other ways to even out the loads. [DeepSeek-V3](https://arxiv.org/abs/2412.19437),
# whose scores are sigmoids and not a softmax, adds a bias to each expert's score when it chooses (not to
# the weights), and moves it up or down after each step, depending on the load. With [expert
# choice](https://arxiv.org/abs/2202.09368) the *experts* choose: each takes the tokens that score highest
# for it, up to its capacity. Then all experts are equally busy, but some tokens may get no expert.
#
# ### How much room?
#
# The **capacity factor** says how much room an expert has, as a multiple of its even share:
#
# $$\text{capacity} = \left\lceil \text{factor} \cdot \frac{\text{tokens} \cdot k}{\text{experts}} \right\rceil$$
#
# With factor 1 and even loads nothing is dropped. If loads are uneven, is there a factor with which nothing
# is dropped and no room is empty?

# %%
torch.manual_seed(4)
skewed = torch.randn(1024, 8) + torch.tensor([1.5, 0.5, 0, 0, 0, 0, 0, -0.5])
if route_works:
    for factor in (1, 1.25, 1.5, 2, 3):
        capacity = math.ceil(factor * 1024 * 2 / 8)
        chosen, _ = route(skewed, 2, capacity)
        kept = int((chosen >= 0).sum())
        print(
            f"factor {factor:4}: {1 - kept / chosen.numel():4.0%} of the choices dropped,"
            f" {1 - kept / (8 * capacity):4.0%} of the room empty"
        )

# %% [markdown]
# There is none: with less room more is dropped, and with more room more of it is empty. Where buffers
# have a fixed size, empty room is sent and computed like any other. Where sizes may vary, there is no
# need to pad: [MegaBlocks](https://arxiv.org/abs/2211.15841) computes experts with different numbers of
# tokens in one go, and drops nothing. (A kernel that multiplies groups of different sizes at once is known as
# a *grouped GEMM*; torch's is
# [`grouped_mm`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grouped_mm.html).) The
# exercise below does not pad either; a capacity is the router's business there.
#
# ## There and back
#
# Let each rank have several experts: with `len(experts)` on each rank, expert $e$ lives on rank `e //
# len(experts)`. The three steps are those of chapter 08: dispatch, work, combine.
#
# ![Two ranks with two experts each. Rank 0 has tokens A to D, rank 1 has tokens P to S. Each rank sorts
# its tokens by expert; token C has no expert and is left out. What arrives is sorted by the rank that it
# comes from: rank 1 has B and D from rank 0, for experts 2 and 3, and then R and P of its own, for
# experts 2 and 3. It regroups them by expert, B with R and D with P](../imgs/expert_dispatch.png)
#
# First, each rank has to know what will arrive, and for which of its experts. `counts` has a number for
# each expert of all ranks. An all-to-all hands each rank its `len(experts)` numbers from every rank.
#
# What does each rank get in the picture?


# %%
def who_wants_whom():
    expert = torch.tensor([[1, 2, -1, 3], [3, 0, 2, 1]][dist.get_rank()])
    counts = expert[expert >= 0].bincount(minlength=4)
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    return counts.tolist(), arriving.view(2, 2).tolist()


for r, (counts, arriving) in enumerate(run(who_wants_whom, 2)):
    print(f"rank {r} sends {counts}; it receives {arriving[0]} from rank 0, and {arriving[1]} from rank 1")

# %% [markdown]
# The rows that arrive are sorted by *source*, and by expert only among the rows of one source. Before an
# expert can work on its rows, they have to be picked out. The counts that have arrived say where they are.
#
# ### Lists, or one tensor
#
# `dist.all_to_all` takes a list of tensors, one for each rank. Does gloo take tensors of different sizes there?


# %%
def lists_of_different_sizes():
    rank = dist.get_rank()
    sent = [torch.ones(1 + rank + j) for j in range(2)]
    received = [torch.empty(1 + rank + j) for j in range(2)]
    dist.all_to_all(received, sent)


run(lists_of_different_sizes, 2, may_fail=True)

# %% [markdown]
# It does not. But `all_to_all_single(output, input, output_split_sizes, input_split_sizes)` sends pieces of
# different sizes on gloo as well as on NCCL, as you saw in chapter 08.
#
# ## Gradients through a message
#
# The layer is to be trained, so gradients also have to travel: from the result back to the expert, on
# another rank, and from the expert back to the token. `x` requires a gradient and goes through an
# all-to-all. Does the tensor that arrives require one?


# %%
def seen_by_autograd():
    x = torch.ones(2, 3, requires_grad=True)
    arrived = torch.empty(2, 3)
    dist.all_to_all_single(arrived, x * 2)
    return arrived.requires_grad


run(seen_by_autograd, 2)

# %% [markdown]
# No. To autograd, `arrived` is a tensor without a history. You have to tell it what backward is,
# as in chapter 17. Here is a smaller case: each rank passes its tensor on to the right.

# %%
def passed_on(x, step):
    """Send x to the rank that is `step` to the right, and return what comes from the left."""
    rank, n = dist.get_rank(), dist.get_world_size()
    request = dist.isend(x.contiguous(), (rank + step) % n)
    dist.recv(received := torch.empty_like(x), (rank - step) % n)
    request.wait()
    return received


class ToTheRight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return passed_on(x, 1)

    @staticmethod
    def backward(ctx, gradient):
        return passed_on(gradient, -1)


# %% [markdown]
# **Predict:** on rank $r$ the loss is $10^r$ times the number that arrives. What is the gradient of `x` on
# ranks 0 to 3?
#
# <details><summary>1, 10, 100 and 1000</summary>
#
# No: a rank's loss depends on the number that it received, which is its left neighbour's.
# </details>
#
# <details><summary>10, 100, 1000 and 1</summary>
#
# Yes: my number counts at my right neighbour, whose factor comes back to me.
# </details>
#
# <details><summary>1000, 1, 10 and 100</summary>
#
# No: that would be the factor of the left neighbour, whose number I have. Mine is at the right one.
# </details>


# %%
def weighed():
    x = torch.ones(1, requires_grad=True)
    loss = 10.0 ** dist.get_rank() * ToTheRight.apply(x).sum()
    loss.backward()
    return x.grad.item()


run(weighed, 4)

# %% [markdown]
# My gradient is known where my number *arrives*, and it has to come back from there. In the language of
# matrices: moving data is a product with a matrix of zeros and ones, and backward is a product with its
# transpose, which moves everything back.
#
# Now think of an all-to-all with counts. In forward, rank $i$ sends `counts[j]` rows to rank $j$. Which
# rank has to send how many rows in backward?
#
# And there is one more trap. If backward communicates, it has to run on **all** ranks, in the same order. A
# rank without any tokens must not skip its part, or the others wait for it.
#
# ## Exercise: expert_parallel
#
# `x` has a row for each of this rank's tokens, `expert[t]` says which expert works on token `t`, as a
# number among all experts of all ranks, and `experts` holds this rank's own, the same number on each
# rank. Return a tensor like `x`, whose row `t` is what expert `expert[t]` makes of `x[t]`; where
# `expert[t]` is −1, it is zeros. The experts keep the width.
#
# - Gradients of `x` and of the parameters of all experts have to be right. For an expert without tokens
#   they may be `None` or zero.
# - `dist.all_to_all_single` is allowed, and so are point-to-point messages, also in backward.
# - Each row that changes rank travels once there and once back, and in backward its gradients do the
#   same. For counts there are `8 * len(experts)` bytes for each ordered pair of ranks. Rows that stay,
#   and rows with −1, do not travel.
# - Ranks may have different numbers of tokens, and some may have none.
#
# Begin with one expert on each rank and forward only. You may define further functions and classes in the
# cell.

# %%
def expert_parallel(
    x: torch.Tensor, expert: torch.Tensor, experts: list[nn.Module]
) -> torch.Tensor:
    """Row t is experts[expert[t]](x[t]), wherever that expert lives; zeros where it is −1."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    kept = (expert >= 0).nonzero().flatten()
    order = kept[expert[kept].argsort(stable=True)]
    counts = expert[kept].bincount(minlength=n * len(experts))
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    sends = counts.view(n, -1).sum(1).tolist()
    receives = arriving.view(n, -1).sum(1).tolist()

    arrived = AllToAll.apply(x[order], sends, receives)
    local = torch.arange(len(experts)).repeat(n).repeat_interleave(arriving)
    worked = torch.zeros_like(arrived)
    for e, network in enumerate(experts):
        at = (local == e).nonzero().flatten()
        worked = worked.index_copy(0, at, network(arrived[at]))
    back = AllToAll.apply(worked, receives, sends)
    return torch.zeros_like(x).index_copy(0, order, back)


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sends, receives):
        ctx.counts = sends, receives
        out = rows.new_empty(sum(receives), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), receives, sends)
        return out

    @staticmethod
    def backward(ctx, gradient):
        sends, receives = ctx.counts
        return AllToAll.apply(gradient, receives, sends), None, None
    ### END SOLUTION


experts_work = check(expert_parallel)
experts_work

# %% [markdown]
# ## Where the bytes go
#
# Take 4 ranks with 2 experts each, and 100 tokens of 64 numbers on each rank, spread evenly over the experts.
# How many rows change rank, and how many numbers are sent in forward and backward together?


# %%
def forward_and_backward(tokens):
    torch.manual_seed(dist.get_rank())
    experts = [mlp() for _ in range(2)]
    x = torch.randn(tokens, WIDTH, requires_grad=True)
    expert = torch.arange(tokens) % (2 * dist.get_world_size())
    mark("forward")
    y = expert_parallel(x, expert, experts)
    mark("backward")
    y.sum().backward()
    mark("done")
    return int((expert // 2 != dist.get_rank()).sum())


if experts_work:
    done = run(forward_and_backward, 4, 100)
    moved, sent = sum(done), sum(done.trace.sent_elements)
    print(f"{moved} rows change rank; four times {WIDTH} numbers for each: {4 * moved * WIDTH}")
    print(f"numbers sent: {sent}; the rest are counts: {sent - 4 * moved * WIDTH}")

# %% [markdown]
# With $n$ ranks and even loads, $\frac{n-1}{n}$ of the rows leave their rank, and each of them travels
# four times: there and back, twice. With $k$ experts for each token, there are $k$ rows for each token.
# Compare this with data parallelism: here the traffic grows with the number of *tokens*, and not with the
# size of the model.
#
# Here is your layer on a timeline. How many collectives do you see, and which of them is shortest?

# %% tags=["nbval-ignore-output"]
if experts_work:
    display(timeline(run(forward_and_backward, 4, 2000), since="forward", until="done"))

# %% [markdown]
# If your answer is like ours, you see five: the counts, the dispatch and the combine in forward, and two in
# backward. The counts carry the least, yet their bar need not be the shortest: a rank that is early waits
# there for all others. The exchange cannot be skipped, since no rank can make room for its rows before it
# knows how many will arrive. Between two all-to-alls the experts work.
#
# ## One process, four ranks
#
# Now build a whole layer, with a router and $k = 2$. Each token has two rows; they come home in the order
# of the tokens, so a weighted sum of neighbouring rows is all that is left to do. (Where they arrive in
# another order, it is chapter 10's `combine_experts`.)

# %%
def moe_layer(x, router, experts, apply, k=2):
    chosen, weights = route(router(x), k, capacity=len(x) * k)  # room for all
    rows = apply(x.repeat_interleave(k, dim=0), chosen.flatten(), experts)
    return (weights[..., None] * rows.view(len(x), k, -1)).sum(1)


def in_one_process(x, expert, experts):
    """What expert_parallel returns where all experts are here."""
    y = torch.zeros_like(x)
    for e, network in enumerate(experts):
        at = (expert == e).nonzero().flatten()
        y = y.index_copy(0, at, network(x[at]))
    return y


def problem(count=512, width=8):
    """Tokens of eight kinds; what is to be learnt differs by kind."""
    torch.manual_seed(5)
    kind = torch.arange(count) % 8
    centres, maps = 2 * torch.randn(8, width), torch.randn(8, width, width) / width**0.5
    x = centres[kind] + 0.3 * torch.randn(count, width)
    return x, torch.einsum("tw,twv->tv", x, maps[kind]).tanh()


# %% [markdown]
# Each of the four ranks has a quarter of the tokens, two of the eight experts, and a copy of the router.
# The loss is the mean over all tokens of all ranks, so each rank divides its own sum of errors by the number of
# all of them.
#
# **Predict:** after backward, which gradients does a rank have to add up with those of the other ranks?
#
# <details><summary>Those of the router</summary>
#
# Yes: each copy of the router has seen its own tokens alone. An expert has seen those of all ranks.
# </details>
#
# <details><summary>Those of its experts</summary>
#
# No: the tokens of all ranks have travelled to the expert, and so have their gradients. There is no
# other copy.
# </details>
#
# <details><summary>Both</summary>
#
# No: there is nothing to add up for an expert. It lives on one rank only, and all of its tokens were sent
# there.
# </details>


# %%
def training(sum_router=True, steps=30):
    n, rank = dist.get_world_size(), dist.get_rank()
    x, target = problem()
    torch.manual_seed(6)
    router = nn.Linear(8, 8, bias=False)
    experts = [mlp(8) for _ in range(8)][rank * 8 // n : (rank + 1) * 8 // n]
    mine, wanted = x[rank::n], target[rank::n]
    parameters = [p for module in (router, *experts) for p in module.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    losses = []
    for _ in range(steps):
        y = moe_layer(mine, router, experts, expert_parallel if n > 1 else in_one_process)
        loss = (y - wanted).square().sum() / target.numel()
        optimizer.zero_grad()
        loss.backward()
        if sum_router:
            dist.all_reduce(router.weight.grad)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), router.weight.detach()


if route_works and experts_work:
    ((single, _),) = run(training, 1, seconds=60)
    four = run(training, 4, seconds=60)
    total = torch.stack([losses for losses, _ in four]).sum(0)
    print("the losses of one process, to 1e-3:", torch.allclose(single, total, atol=1e-3))
    print("the loss has fallen by half:       ", bool(total[-1] < total[0] / 2))
    for sum_router in (True, False):
        ran = run(training, 4, sum_router, seconds=60)
        same = all(torch.equal(router, ran[0][1]) for _, router in ran)
        done = "summed" if sum_router else "left alone"
        print(f"router's gradients {done}: the same router on all ranks: {same}")

# %% [markdown]
# An expert's gradients are complete. The router is on all ranks, and each copy has seen its own tokens alone:
# it is data parallel, and needs the all-reduce of chapter 15. Leave that out, and each rank ends up with a
# router of its own, without any error message.
#
# (In a large system each expert is also on several ranks. Then its gradients are summed over *these*
# ranks, in a group of their own.)
#
# ## The straggler
#
# A layer is only as fast as its busiest expert. To see what that costs, we simulate a cluster of 16 ranks
# with one expert each. An expert works for one microsecond on each row; `time.sleep` passes virtual time on
# simulated ranks ([chapter 13](13_cost_models.ipynb)).
#
# **Predict:** 256 tokens on each rank. In one run they are spread evenly; in the other, half of all tokens go
# to expert 0. How many times as long does the second take?
#
# <details><summary>Half as long again, since half of the tokens are spread</summary>
#
# No: the layer is done when its busiest expert is, and that one has half of *all* tokens.
# </details>
#
# <details><summary>Twice as long, since half of the tokens are on one rank</summary>
#
# No: half of all tokens is not twice an expert's share. With 16 experts it is eight times.
# </details>
#
# <details><summary>Seven or eight times as long</summary>
#
# Yes: expert 0 has half of all tokens where its share is a sixteenth, and the others wait.
# </details>


# %%
class Timed(nn.Module):
    def forward(self, rows):
        time.sleep(len(rows) * 1e-6)
        return rows


def hot_choice(tokens, hot):
    """The experts of this rank's tokens: expert 0 for a share of them, and the others in turns."""
    n, at = dist.get_world_size(), torch.arange(tokens)
    return torch.where(at < hot * tokens, 0, (at + dist.get_rank()) % n)


def one_pass(tokens, hot):
    expert_parallel(torch.ones(tokens, WIDTH), hot_choice(tokens, hot), [Timed()])


if experts_work:
    even = simulate(one_pass, 16, 256, 0.0).seconds
    for hot in (0.0, 0.125, 0.25, 0.5):
        seconds = simulate(one_pass, 16, 256, hot).seconds
        print(f"{hot:5.1%} go to expert 0: {1e6 * seconds:5.0f} µs, {seconds / even:.1f} times as long")

# %% [markdown]
# When half of the tokens go to it, expert 0 has 2176 rows: these 2048, and a sixteenth of the other half, which is
# dealt out to all experts. That is 8.5 times its share. (The whole layer takes less than 8.5 times as long, because
# its messages take their time in either case.) Adding more ranks does not help: the share of the hot expert stays
# what it is.
#
# A capacity limits the damage. Each rank routes its own tokens here, like a *group* of
# [GShard](https://arxiv.org/abs/2006.16668), so a capacity is the number of tokens that an expert takes
# *from one rank*; in all it takes up to 16 times as many. Half of the tokens want expert 0, and the
# capacity factor goes from 1 to 16. What happens to the time, and to the share of the tokens that are
# dropped?


# %%
def limited_pass(tokens, hot, factor):
    n = dist.get_world_size()
    wish = F.one_hot(hot_choice(tokens, hot), n).float()
    chosen, _ = route(wish, 1, math.ceil(factor * tokens / n))
    expert_parallel(torch.ones(tokens, WIDTH), chosen[:, 0], [Timed()])
    return (chosen < 0).float().mean().item()


if route_works and experts_work:
    for factor in (1, 1.25, 2, 4, 16):
        limited = simulate(limited_pass, 16, 256, 0.5, factor)
        print(
            f"factor {factor:4}: {sum(limited) / 16:4.0%} of the tokens dropped,"
            f" {1e6 * limited.seconds:5.0f} µs, {limited.seconds / even:.1f} times as long as even loads"
        )

# %% [markdown]
# The time follows the capacity: the time that you save is paid for in dropped tokens. Only a router that
# has learnt to spread its tokens evenly saves both.
#
# ## Across nodes
#
# Between nodes, messages and bytes are expensive. [DeepSpeed-MoE](https://arxiv.org/abs/2201.05596) saves
# messages: its all-to-all has two levels, inside nodes and between them, as the all-reduce of chapter
# [21](21_hierarchy.ipynb) has. [DeepSeek-V3](https://arxiv.org/abs/2412.19437) saves bytes: where several
# of a token's experts are on one node, its row crosses the network once and is passed on inside that
# node. And there the router helps: a token may choose its 8 experts on at most 4 nodes (*node-limited
# routing*).
#
# Take 256 experts on 8 nodes, and 8 experts for each token, chosen at random. On how many nodes are they, on
# average?

# %%
torch.manual_seed(0)
scores = torch.rand(4000, 256)


def nodes_of(experts):
    return sum(len(set(row)) for row in (experts // 32).tolist()) / len(experts)


free = scores.topk(8).indices
best_two = scores.view(-1, 8, 32).topk(2).values.sum(-1)  # a node counts as its two best experts
closed = torch.ones(4000, 8, dtype=torch.bool).scatter(1, best_two.topk(4).indices, False)
limited = scores.masked_fill(closed.repeat_interleave(32, dim=1), -1).topk(8).indices
print(f"chosen freely: {nodes_of(free):.1f} nodes; on at most 4: {nodes_of(limited):.1f}")

# %% [markdown]
# Without a limit, a token's experts are on more than five nodes. Each is the token's own node in one case
# of eight, so its row crosses the network $5.3 \cdot \frac{7}{8} = 4.6$ times on average, and with the
# limit 3.5 times.
#
# DeepSeek-V3 does more to make messages cheap. Rows are dispatched in FP8, which takes half the bytes of
# bfloat16. The exchange for one micro-batch runs while another computes. One *shared* expert works on every
# token, and for it nothing has to be sent. For serving, the busiest experts are kept in several copies. Its
# all-to-alls are a library of their own, [DeepEP](https://github.com/deepseek-ai/DeepEP); NVIDIA's is
# [Hybrid-EP](https://developer.nvidia.com/blog/optimizing-communication-for-mixture-of-experts-training-with-hybrid-expert-parallel).
#
# ## Summary
#
# A mixture of experts separates the number of parameters from the work for a token. The price is
# communication in every layer, in an amount that depends on the data.
#
# - The router picks $k$ experts. Weights are a softmax over these; with $k = 1$ it has to be over all
#   experts, or the router gets no gradient.
# - A capacity bounds memory and time. What does not fit is dropped, in the order of the tokens; room that
#   is left is paid for if buffers have a fixed size.
# - An auxiliary loss evens out the loads: it is 1 if they are even, and $N$ if one expert gets everything.
# - Dispatch and combine are two all-to-alls of rows, after one of counts. The backward of an all-to-all is
#   an all-to-all in the opposite direction. So a row that changes rank travels four times in a step.
# - Gradients of experts are complete on their rank; those of the router have to be summed.
# - The busiest expert sets the time of the layer.
#
# **Where this is used:** in [Megatron
# Core](https://docs.nvidia.com/megatron-core/developer-guide/0.19.0/apidocs/core/core.transformer.moe.token_dispatcher.html),
# and in [MegaBlocks](https://github.com/databricks/megablocks/blob/main/megablocks/layers/all_to_all.py),
# whose all-to-all is an autograd function around `all_to_all_single`, like ours. GShard trained a model of
# 600 billion parameters on 2048 accelerators in this way.
#
# ### Check yourself
#
# <details><summary>64 experts, k = 2, 4096 tokens, capacity factor 1.25. How many tokens does an expert take at most?</summary>
#
# 1.25 · 4096 · 2 / 64 = 160.
# </details>
#
# <details><summary>A rank has no tokens in this step, and its experts get none either. May it skip the layer?</summary>
#
# No. The others wait for it in every all-to-all, forward and backward. It takes part with empty tensors.
# </details>
#
# <details><summary>Why are the counts not exchanged again before the combine, or in backward?</summary>
#
# As many rows as came from a rank go back to it: the list of what arrives becomes the list of what is
# sent. In backward, gradients take the same paths in the opposite direction.
# </details>
#
# <details><summary>Your loss is the mean over a rank's own tokens, and you divide the router's summed gradients by n. By what do you divide those of the experts?</summary>
#
# By n as well. They are sums over the tokens of all ranks, each weighted as if its rank were alone; only
# the all-reduce is not needed.
# </details>
#
# **Next:** [29 · Less communication](29_less_communication.ipynb): fewer bytes, fewer steps in which
# anything is sent.
