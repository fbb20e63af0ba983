# %% [markdown]
# # 17 · Sharded matrix products
#
# Nearly all of a transformer's work is products of activations and weights. When a product is too large
# for one GPU, or too slow, it has to be shared: the numbers that go in, the numbers that come out, or
# the work between. Every way to cut it asks for another collective.
#
# **You will learn** to share one matrix product among ranks: three ways to cut it, which collective
# each of them asks for, in forward and in backward, and why two linear layers in a row need only
# one all-reduce. You will write the four functions that tensor-parallel training is made of, with
# gradients that are equal to those of one rank.
#
# **You need** chapters [05](05_all_gather.ipynb), [07](07_all_reduce.ipynb) and
# [11](11_ring_all_reduce.ipynb), and to know what `backward` does.
#
# **Time:** 120 minutes, and 4 exercises.

# %%
import warnings

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable

from grader import check, hint, predict, run

# %% [markdown]
# ## A product is a cube
#
# A model may have weights that do not fit on one device. Then a single product $Y = XW$ has to be
# shared. With $X$ of shape $(M, K)$ and $W$ of shape $(K, N)$,
#
# $$Y_{mn} = \sum_k X_{mk} W_{kn}.$$
#
# That is one multiplication for every triple $(m, k, n)$: a **cube** of $M \cdot K \cdot N$ little cubes.
# One of its faces is $X$, one is $W$, one is $Y$. A face lacks one axis: $X$ has no $n$, $W$ no $m$,
# and $Y$ no $k$, because it is summed over.
#
# ![The cube of a product, three times, each cut into three slabs for ranks 0, 1 and 2. Cut along m: each rank has rows of X and of Y, nothing is sent in forward, and the gradient of W needs an all-reduce. Cut along n: each rank has columns of W and of Y, an all-gather if all need Y, and the gradient of X needs an all-reduce. Cut along k: each rank has columns of X and rows of W, and a partial sum of Y: an all-reduce, and nothing in backward](../imgs/product_cube.png)
#
# The front face of the cube is $Y$, the right one $X$, the top one $W$. Each rank gets one slab.
#
# **Predict:** four ranks get one slab each. For which of the three cuts has no rank a single finished
# number of $Y$?

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

print("below each other:    ", torch.equal(torch.cat(along_m, 0), Y))
print("side by side:        ", torch.equal(torch.cat(along_n, 1), Y))
print("added up:            ", torch.equal(sum(along_k), Y))

# %% [markdown]
# (The numbers are small integers, so nothing is rounded, and we can ask for equality.)
#
# - **Along $m$:** each rank has rows of $X$ and of $Y$, and the whole $W$. Nothing is sent. Rows are
#   samples, so this is data parallel training; or they are positions of a sequence.
# - **Along $n$:** each rank has columns of $W$ and of $Y$: **column parallel**. If you need all of $Y$,
#   needs an **all-gather**.
# - **Along $k$:** each rank has rows of $W$ and the columns of $X$ that go with them: **row parallel**.
#   Every rank has a matrix as large as $Y$, and all of them have to be added up: an **all-reduce**.
#
# ## Backward is two more products on the same cube
#
# Let $G$ be the gradient of the loss by $Y$. Then
#
# $$\frac{\partial L}{\partial X} = G\,W^\top, \qquad \frac{\partial L}{\partial W} = X^\top G.$$
#
# $G$ lies on the face of $Y$. The gradient of $X$ sums over $n$, that of $W$ over $m$. So each of
# the three products sums over another axis.
#
# **Predict:** which product has to be added up over ranks if the cube is cut along $m$? And along $n$?

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
# The whole chapter is in this table, and every entry has been computed. **A product has to be added up
# over ranks exactly if the cut runs along the axis that it sums over.** The all-reduce of the first row
# is the one of data parallel training: it averages the gradients of the weights.
#
# ## Columns, the naive way
#
# Every rank has some columns of the weight and the same $X$. Let us multiply, and gather.

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


for rank, found in enumerate(run(gather_only, ranks)):
    print(f"rank {rank}:", *found)
print("unsharded:", (x_all @ weight).tolist())

# %% [markdown]
# The value is right, and `requires_grad` is `False`: a collective fills buffers, and autograd knows
# nothing of where the numbers came from. No weight will ever learn.
#
# A small trick helps: the rank's *own* columns have a history, so put them back into their place.
#
# **Predict:** are the gradients of `weight` right now? And that of `x`?

# %%
predict("")

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
for rank, (of_weight, of_x) in enumerate(found):
    print(f"rank {rank}: of its columns {of_weight}, of x {of_x}")
print(f"unsharded: {unsharded()[0]}, of x {unsharded()[1]}")
print("both ranks' gradients of x, added up:", sum(torch.tensor(of_x) for _, of_x in found).tolist())

# %% [markdown]
# The columns are right: each number of the gathered product has a gradient, the rank takes the part that
# belongs to its columns, and **nothing is sent** for that.
#
# But `x` went into *all* columns, and each rank knows only what its own bring. Added up, these parts are
# the gradient of the unsharded product. Second row of the table: the gradient of $X$ sums over $n$, and
# $n$ is cut. So there is an all-reduce in *backward*.
#
# ## A function with a backward of its own
#
# `torch.autograd.Function` lets you say what forward and what backward is. Here is one that does
# nothing at all, twice:

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
# `forward` may keep what backward needs on `ctx` (`ctx.width = 3`). `backward` returns one gradient for
# each argument of forward, `None` for one that is no tensor. Both may call collectives, if **all ranks
# do, in the same order**. See
# [Extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html).
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
# - There may be fewer columns than ranks: some shard is empty then. You know the width of your own
#   shard only. How do you find out the others'?
# - gloo's all-gather takes pieces of one size: pad, as in chapter [07](07_all_reduce.ipynb).

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
# Now the cut runs through the inner dimension: each rank has some columns of $X$ and the rows of $W$
# that go with them. Every rank's product has the right shape and the wrong numbers. An all-reduce adds
# them up.
#
# **Predict:** what is the gradient of $a$, if $y = a + b$ and the gradient of $y$ is $G$?
#
# It is $G$ itself, and so is that of $b$. Each rank has one term of the sum; every rank computes the
# same loss and so has $G$ already. Third row of the table: backward sends **nothing**.
#
# ### Another loss than ours
#
# A tempting thought: "Collectives have differentiable versions: `torch.distributed.nn.functional.all_reduce` is an all-reduce
# that autograd knows. The gradient of an all-reduce is an all-reduce." It is in the
# library, it runs, and no error comes. Let us look at the gradient.

# %%
predict("")

# %%
def my_rows():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = x_all.tensor_split(n, 1)[rank].clone()
    w = weight.tensor_split(n, 0)[rank].clone().requires_grad_()
    return x, w


def with_the_library():
    x, w = my_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions call it deprecated
        y = differentiable.all_reduce(x @ w)
    y.sum().backward()
    return y.tolist(), w.grad[0, 0].item()


right = unsharded()[0]
for ranks in (1, 2, 3):
    found = run(with_the_library, ranks)
    value, gradient = found[0]
    print(f"n = {ranks}: value {value}, a gradient of weight: {gradient}, unsharded {right[0][0]}")

# %% [markdown]
# The value is right; the gradient is **$n$ times too large**. With Adam you would hardly see it (Adam
# does not care about the size of gradients), and with SGD your learning rate is $n$ times what you
# think.
#
# Is the library wrong? No. It answers another question. It takes the losses of the ranks for *different*
# ones, and gives the gradient of their **sum**. Here they are one loss, written down $n$ times. Let only
# rank 0 have a loss:

# %%
def one_loss():
    x, w = my_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = differentiable.all_reduce(x @ w)
    (y.sum() if dist.get_rank() == 0 else 0 * y.sum()).backward()
    return w.grad[0, 0].item()


print("a loss on rank 0 alone:", run(one_loss, 3)[0])

# %% [markdown]
# So before you take a differentiable collective from anywhere, ask: *is the loss the same on all ranks,
# and counted once, or does each rank have its own?* Others have
# [stumbled over it](https://github.com/NVIDIA/Megatron-LM/issues/559), too.
#
# ### The lazy way, and why it is a trap
#
# `dist.all_reduce` writes into its tensor behind autograd's back. So autograd believes that `y` is still
# the plain product, and passes the gradient on as it is: just what we want!

# %%
def lazy():
    x, w = my_rows()
    y = x @ w
    dist.all_reduce(y)
    y.sum().backward()
    return y.tolist(), w.grad[0, 0].item()


print("lazy:", *run(lazy, 3)[0])

# %% [markdown]
# Right, by luck: a product does not look at its result again. Other operations do. A ReLU remembers its
# *result*, to know in backward where it was positive:

# %%
def lazy_after_relu():
    rank = dist.get_rank()
    x = torch.tensor([-1.0, -1.0] if rank == 0 else [2.0, 3.0], requires_grad=True)
    y = torch.relu(x)
    dist.all_reduce(y)  # y is positive now where this rank's x is not
    y.sum().backward()
    return x.grad.tolist()


print("gradient on rank 0:", run(lazy_after_relu, 2)[0], "and it should be [0.0, 0.0]")

# %% [markdown]
# A wrong gradient, and not a word about it. (Outside of this course PyTorch 2.13 prints a warning in
# backward: "an autograd kernel was not registered", and that the behaviour is going to be removed.) A
# function with a backward of its own says what it means. `check` lets the lazy way pass in the exercise
# below, since its gradients are right there, and remarks on it.
#
# ## Exercise: row_parallel
#
# `x_shard` is this rank's part of x's last dimension, `weight_shard` the rows of the weight that go with
# it, both split with `tensor_split`. Return the whole product on every rank; the loss is the same on
# every rank. `all_reduce` is allowed.

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
# ## Two layers, one all-reduce
#
# A transformer's MLP is two products with something between them: $Z = \mathrm{relu}(X A)\,B$. First the
# plain way: share each product by itself, with what you have written.

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
# Right, with two gathers in forward (and whatever you have done to find out the widths), and two
# all-reduces in backward. Can it be less?
#
# Cut $A$ by columns. Each rank then has *columns* of $XA$. ReLU works on each number alone, so it can be
# done on those columns. And columns of $\mathrm{relu}(XA)$ with the rows of $B$ that go with them are
# exactly what a *row*-parallel product takes. **So nothing is gathered between the two.**
#
# ![Two ranks, each with X. A dashed line named share: forward nothing, backward all-reduce. Then rank r multiplies with its columns of A, takes the relu, and multiplies with its rows of B; nothing is sent in between. A dashed line named sum: forward all-reduce, backward nothing. Then both have Z](../imgs/column_then_row.png)
#
# What is left are two functions, one at each end. They mirror each other:
#
# | | forward | backward |
# |---|---|---|
# | `Share`, before the columns | nothing | all-reduce: $X$ went into all columns |
# | `Add`, after the rows | all-reduce | nothing: every term has the gradient of the sum |
#
# This is the idea of [Megatron-LM](https://arxiv.org/abs/1909.08053), which calls them $f$ and $g$.
#
# **Predict:** how many all-reduces does the MLP need in forward, and how many in backward?

# %%
predict("")

# %%
class Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


def parallel_mlp():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = x_mlp.clone().requires_grad_()
    a = A.tensor_split(n, 1)[rank].clone().requires_grad_()
    b = B.tensor_split(n, 0)[rank].clone().requires_grad_()
    z = Add.apply(torch.relu(Share.apply(x) @ a) @ b)
    (z**2).sum().backward()
    return z.detach(), x.grad, a.grad, b.grad


result = run(parallel_mlp, 4)
print("equal to one rank:", is_equal(result, None, None, 1, 0))
print("collectives of rank 0:", *[op.kind for op in result.trace.operations[0]])

# %% [markdown]
# One all-reduce in forward, one in backward, of a tensor as large as $X$. Attention does the same with
# its heads in place of the columns: each rank computes some heads, and the output projection is row
# parallel. That makes two all-reduces in forward and two in backward for a layer of a transformer.
#
# ### Why not the other way round?
#
# Rows first: then each rank has a *partial sum* of $XA$ before the ReLU. May one take the ReLU of each
# and add up later?

# %%
one, other = torch.tensor([3.0, -2.0]), torch.tensor([-1.0, 5.0])
print("relu of the sum:  ", torch.relu(one + other).tolist())
print("sum of the relus: ", (torch.relu(one) + torch.relu(other)).tolist())

# %% [markdown]
# No: what stands between the products works on each *number* alone, and not on each *term of a sum*. With
# rows first an all-reduce has to come before the ReLU, and the columns that follow need an all-gather.
#
# ## Cut the sequence
#
# Between two such blocks stand layer norm, dropout, additions. They work on each *position* of the
# sequence alone, and in tensor-parallel training every rank does all of them, on the same numbers, and
# keeps all of the results for backward. Cut along $m$ instead: each rank takes some positions.
#
# For that, two functions are needed: one takes a rank's part, the other puts the parts together.
#
# **Predict:** every rank has the same `x` and takes its part of it. In forward nothing is sent. What is in
# `x.grad` if you leave it to autograd?

# %%
def slice_only():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.ones(1, 4, requires_grad=True)
    part = x.tensor_split(n, 1)[rank]
    ((rank + 1) * part).sum().backward()  # each rank's loss depends on its own positions
    return x.grad.tolist()


print(*run(slice_only, 2), sep="\n")

# %% [markdown]
# The rank's own part, and zeros. Whatever computed `x` did so on every rank, and has to get the *same*
# gradient on each: [1, 1, 2, 2]. So backward of the cut is an **all-gather**. And the other way round:
#
# | | forward | backward |
# |---|---|---|
# | `sequence_shard` | take the own part | all-gather the parts of the gradient |
# | `sequence_unshard` | all-gather | take the own part of the gradient |
#
# **Predict:** a sequence of 9 positions on 4 ranks. How long are the parts, with `chunk` and with
# `tensor_split`?

# %%
print("chunk:       ", [len(part) for part in torch.arange(9).chunk(4)])
print("tensor_split:", [len(part) for part in torch.arange(9).tensor_split(4)])

# %% [markdown]
# `chunk(4)` gives three parts, and rank 3 gets an error instead of its own. `tensor_split` always gives
# $n$; take that one.
#
# ## Exercise: sequence_shard
#
# Every rank has the same `x`. Return rank $r$'s part of `x` along `dim`, as `tensor_split` cuts it, as a
# tensor of its own. Each rank goes on with its part; the gradient of `x` must be whole on every rank. Any
# length, also below $n$. All-gathers are allowed.

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
# rank. Every rank computes the same loss of it. All-gathers are allowed.

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
# A layer norm on six positions, shared by four ranks: two of them have two positions, two have one.

# %%
def norm(x):
    return torch.nn.functional.layer_norm(x, (hidden,))


def shared_norm():
    x = x_mlp.clone().requires_grad_()
    mine = sequence_shard(x, 0)
    y = sequence_unshard(norm(mine), tokens, 0)
    (y**3).sum().backward()
    return len(mine), y.detach(), x.grad


if cut and joined:
    x = x_mlp.clone().requires_grad_()
    (norm(x) ** 3).sum().backward()
    for rank, (length, y, gradient) in enumerate(run(shared_norm, 4)):
        equal = torch.allclose(y, norm(x_mlp)) and torch.allclose(gradient, x.grad)
        print(f"rank {rank}: {length} positions, equal to one rank: {equal}")

# %% [markdown]
# ## Both together
#
# Now put that before the MLP: layer norm on your own positions, put together, and go on with
# `Share` and `Add`. That works, and wastes: behind `Add` every rank has all of $Z$ and throws most of it
# away. Remember chapter 07: **an all-reduce is a reduce-scatter and an all-gather.** So stop after the
# reduce-scatter, which leaves each rank the *sum* at its own positions, and do the all-gather before the
# next block.
#
# | | forward | backward |
# |---|---|---|
# | `GatherPositions`, before the columns | all-gather | reduce-scatter |
# | `ScatterSums`, after the rows | reduce-scatter | all-gather |
#
# **Predict:** `sequence_unshard` is an all-gather too, and *takes a part* in backward. Why does this one
# have to add up?
#
# Because of what follows. After `sequence_unshard` all ranks do the *same* with the whole, so each has
# the whole gradient. Here each goes on with its own columns of $A$, and knows only what those bring to
# the gradient: the all-reduce of `Share` is in there. (This form is by
# [Korthikanti and others, 2022](https://arxiv.org/abs/2205.05198).)

# %%
class GatherPositions(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        whole = part.new_empty(dist.get_world_size() * part.shape[0], *part.shape[1:])
        dist.all_gather_into_tensor(whole, part)
        return whole

    @staticmethod
    def backward(ctx, grad):
        part = grad.new_empty(grad.shape[0] // dist.get_world_size(), *grad.shape[1:])
        dist.reduce_scatter_tensor(part, grad.clone())
        return part


class ScatterSums(torch.autograd.Function):
    forward = GatherPositions.backward  # each is the other one, turned round
    backward = GatherPositions.forward


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
# Each rank's loss here is that of its own positions, and the loss of the whole is their sum: so this
# time every rank has another loss, and the rules are those of the library. Two all-reduces have
# become two all-gathers and two reduce-scatters.
#
# ## How many bytes?
#
# Collectives that are built in hide their messages, so let us write the ring's two halves out of
# messages, and count. $S$ is the size of the whole tensor: $\text{tokens} \times \text{hidden}$
# elements. The three numbers below are those of an all-gather, a reduce-scatter and an all-reduce.

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


def reduce_scatter_by_ring(x):
    ring(x.clone().tensor_split(dist.get_world_size()), dist.get_rank() - 1, combine=True)


def all_gather_by_ring(x):
    ring(x.clone().tensor_split(dist.get_world_size()), dist.get_rank(), combine=False)


def all_reduce_by_ring(x):
    chunks = x.clone().tensor_split(dist.get_world_size())
    ring(chunks, dist.get_rank() - 1, combine=True)
    ring(chunks, dist.get_rank(), combine=False)
    assert torch.equal(torch.cat(chunks), dist.get_world_size() * x)


many, wide = 120, 16
for dtype in (torch.float32, torch.bfloat16):
    activations = torch.ones(many, wide, dtype=dtype)
    S = activations.nbytes
    print(f"{str(dtype).removeprefix('torch.')}: S = {activations.numel()} elements = {S} bytes")
    for n in (2, 4, 8):
        sent = [
            run(collective, n, activations).trace.traffic.max_sent
            for collective in (all_gather_by_ring, reduce_scatter_by_ring, all_reduce_by_ring)
        ]
        formulas = [(n - 1) * S // n, (n - 1) * S // n, 2 * (n - 1) * S // n]
        print(f"  {n} ranks: {sent} bytes from one rank, as the formulas say: {sent == formulas}")

# %% [markdown]
# - All-gather and reduce-scatter: $\frac{n-1}{n} S$ a rank. All-reduce: $\frac{2(n-1)}{n} S$. So the
#   sequence form sends **exactly as many bytes** as the all-reduces that it replaces, and between the
#   blocks a rank holds only $\frac{1}{n}$ of the activations. What the product reads is the gathered
#   tensor, and that is whole. If it is kept for backward, it takes as much memory as before; if it is
#   gathered again there, the bytes are more.
# - **Elements are not bytes.** The elements are the same above and below; the bytes are half in
#   `bfloat16`.
# - The weights do not appear at all. What travels are activations, however large the matrices are.
#
# ### Is it worth it?
#
# Take one layer: an all-gather (or a reduce-scatter) of the activations, and a product with $h \times h$
# weights that $n$ ranks share. With $T$ tokens, $e$ bytes an element, $B$ bytes a second on the link and
# $F$ operations a second,
#
# $$\frac{\text{communication}}{\text{computation}}
#   = \frac{\frac{n-1}{n}\,T h e \,/\, B}{2 T h^2 / n \,/\, F}
#   = \frac{e\,(n-1)}{2h} \cdot \frac{F}{B}.$$
#
# **Predict:** does a larger batch help?

# %%
F, B_link = 1e15, 4.5e11  # a made-up device: 10^15 operations and 450 GB a second


def counted_ratio(T, h, n):
    """From bytes that were really sent, and operations that were really asked for."""
    activations = torch.ones(T, h, dtype=torch.bfloat16)
    nbytes = run(all_gather_by_ring, n, activations).trace.traffic.max_sent
    operations = 2 * T * h * (h // n)
    return (nbytes / B_link) / (operations / F)


def formula(h, n, e=2):
    return e * (n - 1) / (2 * h) * F / B_link


for T, h, n in ((32, 64, 4), (256, 64, 4), (32, 128, 4), (32, 64, 8)):
    ratios = f"counted {counted_ratio(T, h, n):6.1f}, formula {formula(h, n):6.1f}"
    print(f"{T:4} tokens, hidden {h:4}, {n} ranks: {ratios}")

print("as large as real models, 8 ranks:")
for h in (4096, 8192, 16384, 32768):
    print(f"  hidden {h:5}: {formula(h, 8):.2f}")

# %% [markdown]
# No: the tokens cancel. Only wider layers help, or fewer ranks, or faster links. Below 1 the
# communication can hide behind the computation. That is why tensor parallel training stays inside one
# machine, where links are fast, and data parallel training crosses machines
# ([Narayanan and others, 2021](https://arxiv.org/abs/2104.04473)).
#
# ## Summary
#
# - A product is a cube. Cut it along $m$: nothing in forward, an all-reduce for the gradient of $W$. Along
#   $n$: an all-gather of $Y$, and an all-reduce for the gradient of $X$. Along $k$: an all-reduce of $Y$, and
#   nothing in backward.
# - A collective fills buffers that autograd knows nothing of. Say yourself what backward is.
# - **Where every rank has the same loss**, the gradient of a sum is passed on as it is, and that of a
#   gathered tensor is cut. Adding it up makes it $n$ times too large.
# - Columns, then rows: one all-reduce in forward and one in backward for two layers.
# - A sequence that is cut turns each all-reduce into a reduce-scatter and an all-gather: as many bytes
#   in forward, and less memory between the blocks.
# - The ratio of communication to computation is $\frac{e(n-1)}{2h} \cdot \frac{F}{B}$, free of the batch.
#
# **Where this is used:** [Megatron-LM](https://arxiv.org/abs/1909.08053), and `ColwiseParallel`,
# `RowwiseParallel` and `SequenceParallel` in
# [torch.distributed.tensor.parallel](https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html).
#
# ### Check yourself
#
# <details><summary>Data parallel training averages the gradients of the weights. Which row of the table is that, and why are the gradients of the activations not averaged?</summary>
#
# The cut along m. The gradient of W sums over m, so every rank has a part of the sum. The gradient of X
# has an axis m: each rank has the rows of its own samples, and no other rank needs them.
# </details>
#
# <details><summary>Your row-parallel layer trains well on one rank, and with 8 ranks the loss explodes at once. The values of forward are right. What do you suspect?</summary>
#
# Gradients that are 8 times too large: an all-reduce in backward as well, as the library's differentiable
# all-reduce has it. Compare the gradient of one weight with that of one rank.
# </details>
#
# <details><summary>An MLP on 4 ranks, 1000 tokens, hidden 2048, bfloat16. How many bytes does a rank send in forward with a ring, in the all-reduce form and in the sequence form?</summary>
#
# S = 1000 · 2048 · 2 bytes = 4.096 MB. An all-reduce sends 2 · 3/4 · S = 6.144 MB; an all-gather and a
# reduce-scatter 3/4 · S each: 6.144 MB, too.
# </details>
#
# **Next:** how long a single operation takes, and how to find out which one it is.
