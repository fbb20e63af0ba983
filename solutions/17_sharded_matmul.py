# %% [markdown]
# # 17 · Sharded matrix products
#
# The MLP of a large language model multiplies by two matrices of a hundred million numbers or more, in
# every layer. When such a product is too large for one GPU, or too slow, several GPUs have to share it.
# But which part does each of them take: some of the inputs, some of the outputs, or some of the work
# between? Each choice needs a different collective. Choose well, and two layers in a row need only one.
#
# **You will learn** to share a matrix product among ranks: three ways to cut it, the collective that
# each of them needs in forward and in backward, and what each rank keeps and sends. You will write
# the four functions that tensor-parallel training is made of, with gradients equal to those of one
# rank.
#
# **You need** chapters [05](05_all_gather.ipynb), [07](07_all_reduce.ipynb) and
# [11](11_ring_all_reduce.ipynb), and to know what `backward` does.
#
# **Time:** 2 hours, with 4 exercises.

# %%
import warnings

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
from torch.autograd.graph import saved_tensors_hooks

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## A product is a cube
#
# Take a product $Y = XW$, with $X$ of shape $(M, K)$ and $W$ of shape $(K, N)$:
#
# $$Y_{mn} = \sum_k X_{mk} W_{kn}.$$
#
# That is one multiplication for every triple $(m, k, n)$: a **cube** of $M \cdot K \cdot N$ little
# cubes. One of its faces is $X$, one is $W$, one is $Y$. Each face lacks one axis: $X$ has no $n$, $W$
# has no $m$, and $Y$ has no $k$, because $k$ is summed over.
#
# Cut the cube into slabs along one of its axes, one slab for each rank. There are three ways to do it:
#
# ![The cube of a product, three times: Y is the front face, X the right one, W the top one. Each cut makes slabs for ranks 0, 1 and 2, and each face shows which rank holds what. Cut along m: X and Y are in rows, all of W is on every rank; nothing is sent in forward, and the gradient of W needs an all-reduce. Cut along n: W and Y are in columns, all of X is on every rank; an all-gather if all need Y, and the gradient of X needs an all-reduce. Cut along k: X is in columns, W in rows, and each number of Y is a sum 0+1+2 over the ranks: an all-reduce, and nothing in backward](../imgs/product_cube.png)
#
# The front face is $Y$, the right one $X$, the top one $W$. A number is the rank that holds this piece.
# Grey is what no rank has to itself: "all" of them have it, or each has one term of 0+1+2.
#
# Here are the three cuts for four ranks, with $M = 6$, $K = 8$ and $N = 10$. Look at the shapes of the
# four parts: in which of the cuts is a part as large as $Y$?

# %%
n = 4
X = torch.arange(48.0).view(6, 8) % 7 - 3  # M = 6, K = 8
W = torch.arange(80.0).view(8, 10) % 5 - 2  # N = 10
Y = X @ W

along_m = [x @ W for x in X.tensor_split(n, 0)]
along_n = [X @ w for w in W.tensor_split(n, 1)]
along_k = [x @ w for x, w in zip(X.tensor_split(n, 1), W.tensor_split(n, 0))]

for axis, parts in (("m", along_m), ("n", along_n), ("k", along_k)):
    print(f"cut along {axis}: parts of shapes", *[tuple(part.shape) for part in parts])

print("one below another:", torch.equal(torch.cat(along_m, 0), Y))
print("side by side:     ", torch.equal(torch.cat(along_n, 1), Y))
print("added up:         ", torch.equal(sum(along_k), Y))

# %% [markdown]
# (The numbers are small integers, so nothing is rounded, and the parts must be equal to the last bit.)
#
# - **Along $m$:** each rank has some rows of $X$ and of $Y$, and all of $W$. Nothing is sent. If the
#   rows are samples, this is data parallelism; if they are positions of a sequence, context
#   parallelism.
# - **Along $n$:** each rank has some columns of $W$ and of $Y$: **column parallel**. If you need all of
#   $Y$, you need an **all-gather**.
# - **Along $k$:** each rank has some rows of $W$ and the columns of $X$ that go with them: **row
#   parallel**. Every rank gets a matrix as large as $Y$, and all of these have to be added up: an
#   **all-reduce**.
#
# ## Backward is two more products on the same cube
#
# Let $G$ be the gradient of the loss with respect to $Y$. Then
#
# $$\frac{\partial L}{\partial X} = G\,W^\top, \qquad \frac{\partial L}{\partial W} = X^\top G.$$
#
# $G$ lies on the face of $Y$. The gradient of $X$ sums over $n$, and that of $W$ over $m$. So the three
# products sum over three different axes.
#
# The picture has already said which products have to be added up over ranks.
#
# **Predict:** when does a cut make it necessary to add up a product over ranks? The cell below tries
# all nine cases.
#
# <details><summary>When it runs along an axis that the product keeps</summary>
#
# No: then each rank has some rows or columns of the product, and they are complete.
# </details>
#
# <details><summary>When it runs along the axis that the product sums over</summary>
#
# Yes: then each rank has only some of the terms of every sum.
# </details>
#
# <details><summary>In backward, wherever the cut runs</summary>
#
# No: the gradient of $X$ sums over $n$ and that of $W$ over $m$. A cut along $k$ leaves both in parts.
# </details>

# %%
G = torch.arange(60.0).view(6, 10) % 3 - 1
tensors = {"mk": X, "kn": W, "mn": G}
products = {
    "Y": ("mk,kn->mn", "k"),
    "gradient of X": ("mn,kn->mk", "n"),
    "gradient of W": ("mk,mn->kn", "m"),
}


def parts_of(formula, axis):
    """The parts of one product, if the cube is cut along an axis."""
    left, right = formula.split("->")[0].split(",")
    cut = [
        tensors[face].tensor_split(n, face.index(axis)) if axis in face else [tensors[face]] * n
        for face in (left, right)
    ]
    return [torch.einsum(formula, a, b) for a, b in zip(*cut)]


print(f"{'cut':5}", *[f"{name:15}" for name in products])
for axis in "mnk":
    row = []
    for formula, summed in products.values():
        left, right = formula.split("->")[0].split(",")
        whole = torch.einsum(formula, tensors[left], tensors[right])
        parts = parts_of(formula, axis)
        if axis == summed:
            assert torch.equal(sum(parts), whole)
            row.append("all-reduce")
        else:
            face = formula.split("->")[1]
            assert torch.equal(torch.cat(parts, face.index(axis)), whole)
            row.append("in parts")
    print(f"{axis:5}", *[f"{entry:15}" for entry in row])

# %% [markdown]
# This table holds the whole chapter, and every entry in it has been computed. **A product has to be added
# up over ranks exactly when the cut runs along the axis that it sums over.** The all-reduce in the first
# row is the one of data-parallel training: it averages the gradients of the weights.
#
# ## Columns, the naive way
#
# Every rank has some columns of the weight, and the same $X$. Let us multiply and gather.

# %%
K, N, ranks = 3, 4, 2
weight = torch.arange(12.0).view(K, N)
x_all = torch.tensor([[1.0, 2.0, 3.0]])


def my_columns():
    part = weight.tensor_split(dist.get_world_size(), 1)[dist.get_rank()]
    return part.clone().requires_grad_()


def gather_only():
    x, w = x_all.clone().requires_grad_(), my_columns()
    mine = x @ w
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine.detach())
    y = torch.cat(parts, -1)
    return y.tolist(), y.requires_grad


for r, found in enumerate(run(gather_only, ranks)):
    print(f"rank {r}:", *found)
print("unsharded:", (x_all @ weight).tolist())

# %% [markdown]
# The value is right, but `requires_grad` is `False`. A collective fills buffers, and autograd does not
# know where their numbers came from. No weight would ever learn this way.
#
# A small trick helps: the rank's *own* columns do have a history, so put them back in their place.
#
# **Predict:** does that make the gradients of `weight` and of `x` right?
#
# <details><summary>Both are right</summary>
#
# No: `x` went into the columns of both ranks, and backward on a rank sees only its own.
# </details>
#
# <details><summary>That of <code>weight</code> is right, that of <code>x</code> is not</summary>
#
# Yes: a rank's columns of `weight` went into its own columns of the product and nowhere else; `x` went
# into all of them.
# </details>
#
# <details><summary>That of <code>x</code> is right, that of <code>weight</code> is not</summary>
#
# No: what the rank's columns of `weight` did is all in `mine`, which has a history. `x` also went into
# what came from the other rank, which has none.
# </details>

# %%
def put_mine_back():
    x, w = x_all.clone().requires_grad_(), my_columns()
    mine = x @ w
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine.detach())
    parts[dist.get_rank()] = mine
    torch.cat(parts, -1).sum().backward()  # the same loss on every rank
    return w.grad.tolist(), x.grad.tolist()


def unsharded():
    x, w = x_all.clone().requires_grad_(), weight.clone().requires_grad_()
    (x @ w).sum().backward()
    return w.grad.tolist(), x.grad.tolist()


found = list(run(put_mine_back, ranks))
for r, (of_weight, of_x) in enumerate(found):
    print(f"rank {r}: of its columns {of_weight}, of x {of_x}")
print(f"unsharded: {unsharded()[0]}, of x {unsharded()[1]}")
print("both ranks' gradients of x, added up:", sum(torch.tensor(of_x) for _, of_x in found).tolist())

# %% [markdown]
# Every number of the gathered product has a gradient, the rank takes the part that belongs to its
# columns, and **nothing is sent** for that.
#
# The gradients of `x` are parts: added up, they are the gradient of the unsharded product. That is the
# second row of the table: the gradient of $X$ sums over $n$, and $n$ is cut. So there is an all-reduce
# in *backward*.
#
# ## A function with a backward of its own
#
# With `torch.autograd.Function` you define forward and backward yourself. Here is one that does nothing in
# either:

# %%
class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)  # the same numbers, but another tensor

    @staticmethod
    def backward(ctx, grad):
        print("the gradient passes:", grad.tolist())
        return grad  # one for each argument of forward


x = torch.ones(2, requires_grad=True)
(3 * Nothing.apply(x)).sum().backward()

# %% [markdown]
# On `ctx`, forward may leave what backward needs (`ctx.width = 3`). `backward` returns one gradient for
# each argument of forward, and `None` for arguments that are not tensors. Both may call collectives, if
# **all ranks do so in the same order**. See [Extending
# torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html).
#
# ## Exercise: column_parallel
#
# `weight_shard` is this rank's part of a weight of shape (in, out), split along the columns with
# `tensor_split`. Return the **whole** product on every rank. `x` is the same on every rank, has two or
# three dimensions, and does not always require a gradient. Every rank computes the same loss from the
# result, and calls backward.
#
# - The gradients of `x` and of `weight_shard` equal those of the unsharded product, on every rank.
# - All-gathers and all-reduces are allowed, in backward too.
# - There may be fewer columns than ranks, and then some shards are empty. You know the width of your
#   own shard only. How do you find out the others?
# - gloo's all-gather takes pieces of one size: pad them, as in chapter [07](07_all_reduce.ipynb).

# %%
def column_parallel(x: torch.Tensor, weight_shard: torch.Tensor) -> torch.Tensor:
    """The whole product of x with a weight whose columns are shared out."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if x.requires_grad:
        x = x.view_as(x)
        x.register_hook(summed)
    mine = x @ weight_shard
    total = torch.tensor(weight_shard.shape[1])
    dist.all_reduce(total)
    widths = [len(part) for part in torch.arange(int(total)).tensor_split(n)]
    padded = mine.new_zeros(*mine.shape[:-1], max(widths))
    padded[..., : widths[rank]] = mine.detach()
    parts = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(parts, padded)
    parts = [part[..., :width] for part, width in zip(parts, widths)]
    parts[rank] = mine  # the one with a history: its gradient is a part of the whole one
    return torch.cat(parts, -1)


def summed(grad):
    grad = grad.clone()
    dist.all_reduce(grad)
    return grad
    ### END SOLUTION


columns = check(column_parallel)
columns

# %% [markdown]
# ## Rows
#
# Now the cut runs through the inner dimension. Each rank has some columns of $X$ and the rows of $W$
# that go with them. Every rank's product has the right shape and the wrong numbers, and an all-reduce
# adds them up.
#
# What does backward send? Think of two ranks: if $y = a + b$, and the gradient of $y$ is $G$, what is
# the gradient of $a$? And who knows $G$, if every rank computes the same loss from $y$?
#
# ### A different loss from ours
#
# A tempting thought: "The gradient of an all-reduce is an all-reduce, and the library has it." Indeed,
# `torch.distributed.nn.functional.all_reduce` is an all-reduce that autograd knows. It runs without an
# error.
#
# **Predict:** what gradient does it give on 1, 2 and 3 ranks, if the right one is 1?
#
# <details><summary>1, 1 and 1</summary>
#
# No: that would count the loss once. Backward adds up the gradients of all ranks, and each has a loss.
# </details>
#
# <details><summary>1, ½ and ⅓</summary>
#
# No: an average would divide, and this is a sum.
# </details>
#
# <details><summary>1, 2 and 3</summary>
#
# Yes: backward is an all-reduce too, and adds up a gradient of 1 from every rank.
# </details>

# %%
def my_rows():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = x_all.tensor_split(n, 1)[rank].clone()
    w = weight.tensor_split(n, 0)[rank].clone().requires_grad_()
    return x, w


def with_the_library(ranks_with_a_loss):
    x, w = my_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions call it deprecated
        y = differentiable.all_reduce(x @ w)
    (y.sum() if dist.get_rank() < ranks_with_a_loss else 0 * y.sum()).backward()
    return y.tolist(), w.grad[0, 0].item()


right = unsharded()[0]
for ranks in (1, 2, 3):
    value, gradient = run(with_the_library, ranks, ranks)[0]
    print(f"n = {ranks}: value {value}, a gradient of weight: {gradient}, unsharded {right[0][0]}")
print("n = 3, a loss on rank 0 alone:", run(with_the_library, 3, 1)[0][1])

# %% [markdown]
# The value is right; the gradient is **$n$ times too large**. With SGD, your learning rate is $n$ times what
# you think. With Adam you would hardly notice, since it divides by the size of the gradients, unless you
# clip them by their global norm, as nearly all training of language models does: then the large ones make
# all the others smaller.
#
# Is the library wrong? No, it answers a different question. It takes the losses of the ranks to be
# *different* ones, and gives the gradient of their **sum**. Here they are one loss, written down $n$
# times. If only rank 0 has a loss, as in the last line, the gradient is right.
#
# So before you use a differentiable collective, ask: *is the loss the same on all ranks and counted
# once, or does each rank have its own?* Others have stumbled over it, from either side: [PyTorch issue
# 58005](https://github.com/pytorch/pytorch/issues/58005) finds the library's gradient wrong, and
# [FlashAttention issue 1244](https://github.com/Dao-AILab/flash-attention/issues/1244) that of an
# all-reduce whose backward sends nothing.
#
# ### The lazy way, and why it is a trap
#
# `dist.all_reduce` writes into its tensor behind autograd's back. So autograd believes that `y` is
# still the plain product, and passes the gradient on as it is. Below, `lazy` uses this for a product,
# and `lazy_after_relu` for a ReLU.
#
# **Predict:** which of the two gradients is right?
#
# <details><summary>Both: the gradient of a sum is passed on as it is</summary>
#
# No: that is so of the sum. But the ReLU looks at its result in backward, and finds the sum there.
# </details>
#
# <details><summary>Only that of the product</summary>
#
# Yes: the backward of a product never looks at its result, and that of a ReLU does.
# </details>
#
# <details><summary>Neither: autograd has not seen the all-reduce</summary>
#
# No: every term of a sum has the gradient of the sum, and the product passes on just that.
# </details>

# %%
def lazy():
    x, w = my_rows()
    y = x @ w
    dist.all_reduce(y)
    y.sum().backward()
    return y.tolist(), w.grad[0, 0].item()


def lazy_after_relu():
    rank = dist.get_rank()
    x = torch.tensor([-1.0, -1.0] if rank == 0 else [2.0, 3.0], requires_grad=True)
    y = torch.relu(x)
    dist.all_reduce(y)  # y is positive now where this rank's x is not
    y.sum().backward()
    return x.grad.tolist()


print("a product:", *run(lazy, 3)[0])
print("a ReLU, gradient on rank 0:", run(lazy_after_relu, 2)[0], "and it should be [0.0, 0.0]")

# %% [markdown]
# The first is right only because the backward of a product does not look at its result. That of a ReLU
# does, and the gradient is wrong without an error. All you get is PyTorch's warning in backward:
# `allreduce_` has no autograd kernel, and going back through it is deprecated, since it "may lead to silently
# incorrect behavior". A function with a backward of its own says what it means. In the
# exercise below the lazy way earns half.
#
# ## Exercise: row_parallel
#
# `x_shard` is this rank's part of the last dimension of x, and `weight_shard` has the rows of the
# weight that go with it; both are split with `tensor_split`. Return the whole product on every rank.
# The loss is the same on every rank. `all_reduce` is allowed where autograd sees it.

# %%
def row_parallel(x_shard: torch.Tensor, weight_shard: torch.Tensor) -> torch.Tensor:
    """The whole product of two factors that are cut along the inner dimension."""
    ### BEGIN SOLUTION
    return Sum.apply(x_shard @ weight_shard)


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad
    ### END SOLUTION


check(row_parallel)

# %% [markdown]
# So backward sends **nothing**, as the third row of the table says: $G$ is the gradient of every term, and
# every rank has it already.
#
# ## Two layers, one all-reduce
#
# A transformer's MLP is two products with something between them: $Z = \mathrm{relu}(X A)\,B$. First
# the plain way: share each product by itself, with the function that you have written.

# %%
torch.manual_seed(17)
tokens, hidden = 6, 8
x_mlp = torch.randn(tokens, hidden, dtype=torch.float64)
A = torch.randn(hidden, 4 * hidden, dtype=torch.float64)
B = torch.randn(4 * hidden, hidden, dtype=torch.float64)


def mlp(x, a, b):
    return torch.relu(x @ a) @ b


def mlp_on_one_rank():
    x, a, b = (t.clone().requires_grad_() for t in (x_mlp, A, B))
    z = mlp(x, a, b)
    (z**2).sum().backward()
    return z.detach(), x.grad, a.grad, b.grad


def is_equal(answers, *cuts):
    """Whether every rank's tensors are its parts of those of one rank; a cut of None is the whole."""
    n, whole = len(answers), mlp_on_one_rank()
    return all(
        torch.allclose(got, expected if cut is None else expected.tensor_split(n, cut)[rank])
        for rank, found in enumerate(answers)
        for got, expected, cut in zip(found, whole, cuts)
    )


def mlp_by_columns():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = x_mlp.clone().requires_grad_()
    a = A.tensor_split(n, 1)[rank].clone().requires_grad_()
    b = B.tensor_split(n, 1)[rank].clone().requires_grad_()
    z = column_parallel(torch.relu(column_parallel(x, a)), b)
    (z**2).sum().backward()
    return z.detach(), x.grad, a.grad, b.grad


if columns:
    result = run(mlp_by_columns, 4)
    print("equal to one rank:", is_equal(result, None, None, 1, 1))
    print("collectives of rank 0:", *[op.kind for op in result.trace.operations[0]])

# %% [markdown]
# This is right, with two gathers in forward (and whatever you do to find out the widths), and two
# all-reduces in backward. Can it be less?
#
# **Predict:** cut $A$ by columns and $B$ by rows. Which collectives remain, in forward and in backward?
#
# <details><summary>An all-gather between the two products, an all-reduce in backward</summary>
#
# No: the columns of the ReLU that a rank has are just those that its rows of $B$ multiply.
# </details>
#
# <details><summary>An all-reduce in forward, and nothing in backward</summary>
#
# No: $X$ goes into the columns of all ranks, so its gradient is a sum over ranks.
# </details>
#
# <details><summary>An all-reduce in forward, and another in backward</summary>
#
# Yes: forward adds up the products with the rows of $B$, backward the gradients of $X$.
# </details>
#
# Cut $A$ by columns. Then each rank has some *columns* of $XA$. ReLU works on each number alone, so it
# can be done on those columns. And some columns of $\mathrm{relu}(XA)$, with the rows of $B$ that go
# with them, are exactly what a *row*-parallel product takes. **So nothing is gathered between the
# two.**
#
# ![Two ranks, each with X. A line named Share: forward nothing, backward all-reduce. Then rank r multiplies with its columns of A, takes the relu, and multiplies with its rows of B; nothing is sent in between. A line named Add: forward all-reduce, backward nothing. Then both have Z](../imgs/column_then_row.png)
#
# Two functions are left, one at each end. They mirror each other:
#
# | | forward | backward |
# |---|---|---|
# | `Share`, before the columns | nothing | all-reduce: $X$ went into all columns |
# | `Add`, after the rows | all-reduce | nothing: every term has the gradient of the sum |
#
# The idea is [Megatron-LM](https://arxiv.org/abs/1909.08053)'s, which calls them $f$ and $g$.

# %%
class Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return add_up(grad)


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return add_up(part)

    @staticmethod
    def backward(ctx, grad):
        return grad


def add_up(x):
    total = x.clone()
    dist.all_reduce(total)
    return total


def sharded_mlp():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = x_mlp.clone().requires_grad_()
    a = A.tensor_split(n, 1)[rank].clone().requires_grad_()
    b = B.tensor_split(n, 0)[rank].clone().requires_grad_()
    z = Add.apply(torch.relu(Share.apply(x) @ a) @ b)
    (z**2).sum().backward()
    return z.detach(), x.grad, a.grad, b.grad


result = run(sharded_mlp, 4)
print("equal to one rank:", is_equal(result, None, None, 1, 0))
print("collectives of rank 0:", *[op.kind for op in result.trace.operations[0]])

# %% [markdown]
# One all-reduce in forward and one in backward, of a tensor as large as $X$. Attention does the same,
# with its heads in place of the columns: each rank computes some heads, and the output projection is
# row parallel. That makes two all-reduces in forward and two in backward for each block of a
# transformer.
#
# ### Why not the other way round?
#
# With rows first, each rank has a *partial sum* of $XA$ before the ReLU. May you take the ReLU of each
# and add up later? Try it with two numbers:

# %%
one, other = torch.tensor([3.0, -2.0]), torch.tensor([-1.0, 5.0])
print("relu of the sum:  ", torch.relu(one + other).tolist())
print("sum of the relus: ", (torch.relu(one) + torch.relu(other)).tolist())

# %% [markdown]
# No. A ReLU works on each *number* alone, but not on each *term of a sum*. With rows first, an all-reduce
# has to come before the ReLU, and the columns that follow need an all-gather.
#
# ## Cut the positions, too
#
# Between two such pairs of products there are layer norms, dropouts and additions. In the scheme above
# every rank computes all of them, on the same numbers, and keeps all of their inputs for backward. But
# they work on each *position* of the sequence alone, so they can be cut along $m$: each rank takes some
# positions.
#
# Megatron calls this **sequence parallelism**: between the products, the ranks that split the matrices
# also split the positions. If the *whole* network works on split sequences, attention included, it is
# **context parallelism**, and attention then needs messages of its own. (Both are options of [Megatron
# Core](https://docs.nvidia.com/megatron-core/developer-guide/latest/apidocs/core/core.model_parallel_config.html),
# `sequence_parallel` and `context_parallel_size`.)
#
# It takes two functions: one takes a rank's part, the other puts the parts together. Take the first:
# every rank has the same `x` and takes its part of it. In forward nothing is sent.
#
# **Predict:** what is in `x.grad` if you leave backward to autograd?
#
# <details><summary>The gradients of all positions, on every rank</summary>
#
# No: those of the other parts are on other ranks, and nothing is sent.
# </details>
#
# <details><summary>The gradients of the rank's own part, and zeros elsewhere</summary>
#
# Yes: as far as this rank knows, the other positions went into nothing.
# </details>
#
# <details><summary>Nothing, because the cut ends the history of <code>x</code></summary>
#
# No: `tensor_split` returns views, and autograd knows where they came from.
# </details>

# %%
def slice_only():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.ones(1, 4, requires_grad=True)
    part = x.tensor_split(n, 1)[rank]
    ((rank + 1) * part).sum().backward()  # each rank's loss depends on its own positions
    return x.grad.tolist()


print(*run(slice_only, 2), sep="\n")

# %% [markdown]
# But whatever computed `x` did so on every rank, and needs the *same* gradient on each: [1, 1, 2, 2].
# Which collective makes that out of the two lines above?
#
# ## Exercise: sequence_shard
#
# Every rank has the same `x`. Return rank $r$'s part of `x` along `dim`, as `tensor_split` cuts it, as
# a tensor of its own. Each rank goes on with its part; the gradient of `x` must be whole on every rank.
# The length may be anything, even less than $n$. All-gathers are allowed.

# %%
def sequence_shard(x: torch.Tensor, dim: int = 1) -> torch.Tensor:
    """This rank's part of x; in backward all ranks' gradients are put together."""
    ### BEGIN SOLUTION
    return Cut.apply(x, dim)


def put_together(part, length, dim):
    """All ranks' parts along dim: padded to one size, gathered, cut to their own lengths."""
    lengths = [len(p) for p in torch.arange(length).tensor_split(dist.get_world_size())]
    shape = list(part.shape)
    shape[dim] = max(lengths)
    padded = part.new_zeros(shape)
    padded.narrow(dim, 0, part.shape[dim]).copy_(part)
    parts = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(parts, padded)
    return torch.cat([p.narrow(dim, 0, size) for p, size in zip(parts, lengths)], dim)


class Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.length, ctx.dim = x.shape[dim], dim
        return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        return put_together(grad, ctx.length, ctx.dim), None
    ### END SOLUTION


cut = check(sequence_shard)
cut

# %% [markdown]
# ## Exercise: sequence_unshard
#
# Every rank has its part; `full_length` is the length of the whole along `dim`. Return the whole on every
# rank. Every rank computes the same loss from it: what does that mean for backward?
# All-gathers are allowed.

# %%
def sequence_unshard(x_shard: torch.Tensor, full_length: int, dim: int = 1) -> torch.Tensor:
    """The whole, made of all ranks' parts; in backward each rank takes its part of the gradient."""
    ### BEGIN SOLUTION
    return Join.apply(x_shard, full_length, dim)


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, length, dim):
        ctx.dim = dim
        return put_together(part, length, dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.tensor_split(dist.get_world_size(), ctx.dim)[dist.get_rank()], None, None
    ### END SOLUTION


joined = check(sequence_unshard)
joined

# %% [markdown]
# Here is a layer norm on six positions, split among four ranks: two of them have two positions, and two
# have one. (Megatron-LM does not take such lengths. There the number of ranks [has to
# divide](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/utils.py) what they share, so nothing is
# padded.)

# %%
def norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def shared_norm():
    x = x_mlp.clone().requires_grad_()
    mine = sequence_shard(x, 0)
    y = sequence_unshard(norm(mine), tokens, 0)
    (y**3).sum().backward()
    return len(mine), y.detach(), x.grad


if cut and joined:
    x = x_mlp.clone().requires_grad_()
    (norm(x) ** 3).sum().backward()
    for r, (length, y, gradient) in enumerate(run(shared_norm, 4)):
        equal = torch.allclose(y, norm(x_mlp)) and torch.allclose(gradient, x.grad)
        print(f"rank {r}: positions: {length}, equal to one rank: {equal}")

# %% [markdown]
# ## Both together
#
# Now put that before the MLP: normalise your own positions, put them together, and go on with `Share` and
# `Add`. It works, but it is wasteful. After `Add` every rank has all of $Z$, and throws most of it away.
# Remember chapter 07: **an all-reduce is a reduce-scatter and an all-gather.** So stop after the
# reduce-scatter, which leaves each rank the *sum* at its own positions, and do the all-gather where the
# next pair of products begins.
#
# | | forward | backward |
# |---|---|---|
# | `GatherPositions`, before the columns | all-gather | reduce-scatter |
# | `ScatterSums`, after the rows | reduce-scatter | all-gather |
#
# `sequence_unshard` is an all-gather too, and in backward it only takes a part. Why does `GatherPositions`
# have to add up? Because of what follows. After `sequence_unshard`, all ranks do the *same* with the whole,
# and each has the whole gradient. Here each goes on with its own columns of $A$, and knows only what
# these contribute: the all-reduce of `Share` is hidden in it. (The form is that of [Korthikanti and
# others 2022](https://arxiv.org/abs/2205.05198).)

# %%
def gather_positions(part):
    whole = part.new_empty(dist.get_world_size() * part.shape[0], *part.shape[1:])
    dist.all_gather_into_tensor(whole, part.contiguous())
    return whole


def scatter_sums(whole):
    part = whole.new_empty(whole.shape[0] // dist.get_world_size(), *whole.shape[1:])
    dist.reduce_scatter_tensor(part, whole.clone())
    return part


class GatherPositions(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return gather_positions(part)

    @staticmethod
    def backward(ctx, grad):
        return scatter_sums(grad)


class ScatterSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return scatter_sums(part)

    @staticmethod
    def backward(ctx, grad):
        return gather_positions(grad)


x_even = torch.randn(8, hidden, dtype=torch.float64)


def sequence_parallel_mlp():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = x_even.tensor_split(n)[rank].clone().requires_grad_()
    a = A.tensor_split(n, 1)[rank].clone().requires_grad_()
    b = B.tensor_split(n, 0)[rank].clone().requires_grad_()
    own = norm(x)  # of the rank's positions only
    z = ScatterSums.apply(torch.relu(GatherPositions.apply(own) @ a) @ b)
    (z**2).sum().backward()
    return z.detach(), x.grad, a.grad, b.grad


def one_rank():
    x, a, b = (t.clone().requires_grad_() for t in (x_even, A, B))
    z = mlp(norm(x), a, b)
    (z**2).sum().backward()
    return z.detach(), x.grad, a.grad, b.grad


result = run(sequence_parallel_mlp, 4)
expected = [t.tensor_split(4, dim) for t, dim in zip(one_rank(), (0, 0, 1, 0))]
equal = [torch.allclose(f, e[r]) for r, found in enumerate(result) for f, e in zip(found, expected)]
print("equal to one rank:", all(equal))
print("collectives of rank 0:", *[op.kind for op in result.trace.operations[0]])

# %% [markdown]
# Each rank's loss here is that of its own positions, and the loss of the whole is their sum. So this
# time every rank has a loss of its own, and the rules are those of the library. Two all-reduces have
# become two all-gathers and two reduce-scatters. (A norm with weights of its own would need one more:
# each rank sees its positions only, so the gradients of those weights have to be added up. The cut runs
# along $m$.)
#
# ## What is sent, and what is kept?
#
# What have we gained? Let us count both: the bytes that a rank sends in a step, and the bytes that it
# keeps for backward. For the first, the collectives have to be written as rings of messages, since the
# built-in ones do not show theirs in the record. For the second, every tensor that autograd keeps
# passes through a hook, as in chapter [16](16_scale_math.ipynb). Three forms compete, each a norm and
# an MLP:
#
# - `replicated`: every rank normalises all positions; `Share` and `Add`.
# - `sharded`: every rank normalises its own positions; `GatherPositions` and `ScatterSums`.
# - `gathered_again`: the same, but the gathered tensor is dropped after the product, and gathered once
#   more in backward, where the gradient of $A$ needs it.
#
# **Predict:** which form sends the most, and which keeps the least?
#
# <details><summary><code>replicated</code> sends the most, <code>gathered_again</code> keeps the least</summary>
#
# No: as rings, an all-reduce sends exactly as much as a reduce-scatter and an all-gather, so
# `replicated` sends no more than `sharded`.
# </details>
#
# <details><summary><code>gathered_again</code> sends the most, <code>sharded</code> keeps the least</summary>
#
# No: `sharded` still keeps what it has gathered, a tensor of all positions.
# </details>
#
# <details><summary><code>gathered_again</code> sends the most and keeps the least</summary>
#
# Yes: it pays for the memory with one more all-gather.
# </details>
#
# The output gives both in units of $S$, the bytes of a tensor of all positions.

# %%
def ring(chunks, first, combine):
    """n − 1 steps: pass a chunk to the right; add, or replace, what comes from the left."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n - 1):
        out, into = (first - step) % n, (first - step - 1) % n
        heard = torch.empty_like(chunks[into])
        request = dist.isend(chunks[out], (rank + 1) % n)
        dist.recv(heard, (rank - 1) % n)
        request.wait()
        chunks[into].copy_(chunks[into] + heard if combine else heard)


# From here on these three are rings; Share, Add and the others call them.
def gather_positions(part):
    whole = part.repeat(dist.get_world_size(), 1)
    ring(whole.chunk(dist.get_world_size()), dist.get_rank(), combine=False)
    return whole


def scatter_sums(whole):
    chunks = whole.clone().chunk(dist.get_world_size())
    ring(chunks, dist.get_rank() - 1, combine=True)
    return chunks[dist.get_rank()].clone()


def add_up(x):
    return gather_positions(scatter_sums(x))


class GatherTwice(torch.autograd.Function):
    """All positions times a matrix; keeps a rank's own positions only."""

    @staticmethod
    def forward(ctx, part, a):
        ctx.save_for_backward(part, a)
        return gather_positions(part) @ a

    @staticmethod
    def backward(ctx, grad):
        part, a = ctx.saved_tensors
        return scatter_sums(grad @ a.T), gather_positions(part).T @ grad


def replicated(x, a, b):
    return Add.apply(torch.relu(Share.apply(norm(x)) @ a) @ b)


def sharded(x, a, b):
    return ScatterSums.apply(torch.relu(GatherPositions.apply(norm(x)) @ a) @ b)


def gathered_again(x, a, b):
    return ScatterSums.apply(torch.relu(GatherTwice.apply(norm(x), a)) @ b)


many, wide = 32, 64


def kept_by(form):
    """Bytes that a rank keeps for backward, parameters aside, and the gradient of its columns."""
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    x, a, b = torch.randn(many, wide), torch.randn(wide, 4 * wide), torch.randn(4 * wide, wide)
    x = x if form is replicated else x.tensor_split(n)[rank].clone()
    a, b = a.tensor_split(n, 1)[rank].clone(), b.tensor_split(n, 0)[rank].clone()
    own, storages = {t.untyped_storage().data_ptr() for t in (a, b)}, {}

    def keep(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        z = form(x.requires_grad_(), a.requires_grad_(), b.requires_grad_())
    z.sum().backward()
    # what the norm notes for each row is small: leave it out
    kept = [size for at, size in storages.items() if at not in own and size >= x[0].nbytes * many // n]
    return sum(kept), a.grad


S = many * wide * 4
for n in (2, 4, 8):
    gradients = []
    for form in (replicated, sharded, gathered_again):
        done = run(kept_by, n, form)
        kept, gradient = done[0]
        gradients.append(gradient)
        sent = done.trace.traffic.max_sent
        print(f"{n} ranks, {form.__name__:14} sent {sent / S:.3f} S, kept {kept / S:.3f} S")
    print("  equal gradients:", all(torch.allclose(g, gradients[0], atol=1e-3) for g in gradients))

# %% [markdown]
# **Sent.** As a ring, an all-reduce sends $\frac{2(n-1)}{n} S$, an all-gather and a reduce-scatter half
# of that. So `sharded` sends **exactly as many bytes** as `replicated`, $\frac{4(n-1)}{n} S$ a step, and
# `gathered_again` one all-gather more. The weights do not appear at all: what travels are activations,
# however large the matrices are.
#
# **Kept.** All three keep $\frac{4}{n} S$ of the ReLU's output. `replicated` also keeps the input and
# the output of the norm on every rank, $2S$. `sharded` cuts the input to $\frac{1}{n} S$, but the
# *gathered* output takes a whole $S$ on each rank, however many there are. Only `gathered_again` gets
# rid of it. It keeps $\frac{6}{n} S$ in all, and pays with that one all-gather.
#
# Megatron takes the third way, and starts the additional all-gather while the gradient of the product's
# input is computed, which does not need it ([the
# code](https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/tensor_parallel/layers.py)).
#
# ### Is it worth it?
#
# Chapter [16](16_scale_math.ipynb) compared the time of one such all-gather with that of one
# $h \times h$ product, $\frac{e(n-1)}{2h} \cdot \frac{F}{B}$: the number of tokens cancels, so only a
# wider layer, fewer ranks or a faster link helps. It also showed that in forward nothing runs beside the
# transfer unless the product is cut into pieces, since the product needs what is being gathered. That
# is why tensor parallelism stays where links are fast, inside one machine or one NVLink domain, while data
# parallelism crosses machines ([Narayanan and others 2021](https://arxiv.org/abs/2104.04473)).
#
# ## Summary
#
# - A product is a cube. Cut along $m$: nothing in forward, an all-reduce for the gradient of $W$. Cut
#   along $n$: an all-gather of $Y$, an all-reduce for the gradient of $X$. Cut along $k$: an all-reduce
#   of $Y$, and nothing in backward.
# - A collective fills buffers that autograd knows nothing about. Define its backward yourself.
# - **Where every rank has the same loss**, the gradient of a sum is passed on as it is, and that of a
#   gathered tensor is cut. Adding it up makes it $n$ times too large.
# - Columns, then rows: one all-reduce in forward and one in backward for two layers.
# - Sequence parallelism turns each all-reduce into a reduce-scatter and an all-gather. It sends as many
#   bytes and keeps less; with one more all-gather in backward, all that is kept shrinks with $n$.
#
# So what does each GPU take of those two large matrices? Columns of the first and rows of the second.
# Then the wide tensor between them never travels, and one all-reduce is enough; or its two halves, with
# the norms split among the ranks. That is how [Megatron-LM](https://arxiv.org/abs/1909.08053) does it,
# and how `ColwiseParallel`, `RowwiseParallel` and `SequenceParallel` do it in
# [torch.distributed.tensor.parallel](https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html).
#
# ### Check yourself
#
# <details><summary>Data-parallel training averages the gradients of the weights. Which row of the table is that, and why are the gradients of the activations not averaged?</summary>
#
# The cut along m. The gradient of W sums over m, so every rank has a part of the sum. The gradient of X
# has an axis m: each rank has the rows of its own samples, and no other rank needs them.
# </details>
#
# <details><summary>Your row-parallel layer trains well on one rank, and with 8 ranks the loss explodes at once. The values of forward are right. What do you suspect?</summary>
#
# Gradients that are 8 times too large: an all-reduce in backward as well, like that of the library's
# differentiable all-reduce. Compare the gradient of one weight with that of one rank.
# </details>
#
# <details><summary>An MLP on 4 ranks, 1000 tokens, hidden 2048, bfloat16. How many bytes does a rank send in forward with a ring, with all-reduces and with sequence parallelism?</summary>
#
# S = 1000 · 2048 · 2 bytes = 4.096 MB. An all-reduce sends 2 · 3/4 · S = 6.144 MB. An all-gather and a
# reduce-scatter send 3/4 · S each: also 6.144 MB.
# </details>
#
# **Next:** [18 · Profiling](18_profiling.ipynb): how long an operation takes, and how to find the one that
# takes too long.
