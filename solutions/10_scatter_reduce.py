# %% [markdown]
# # 10 · scatter_reduce
#
# A node of a graph network adds up what its neighbours send. The gradient of an embedding adds up the
# gradients of all tokens that are the same word. A mixture-of-experts layer adds each expert's output
# back to the token that it belongs to. These are all the same operation: many numbers, and an index that
# says where each of them belongs. Several may belong to one place, and there they are combined.
#
# **You will learn** to reduce numbers into the places that an index names, inside one tensor; how
# gradients flow back through it; and to tell apart three things whose names are nearly the same.
#
# **You need** chapters [03](03_scatter_gather.ipynb), which explains the name, and [04](04_reduce.ipynb),
# which explains the reductions. Nothing is sent in the exercises: one process is enough.
#
# **Time:** 105 minutes, with 3 exercises. Only chapter [28](28_expert_parallel.ipynb) builds on them: if you
# would rather go on with messages between ranks, take chapter [11](11_ring_all_reduce.ipynb) first.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## What it does
#
# `torch.scatter_reduce` is *not* a collective. It has no ranks and sends nothing. It takes the numbers of
# one tensor, `src`, and combines each of them with what another tensor, `input`, holds at some place. A
# third tensor, `index`, names the places: number `src[j]` goes to place `index[j]`.
#
# ![Six cells of src, 1 to 6, over their index 0, 1, 0, 1, 2, 1. Arrows lead from 1 and 3 to place 0 of input, from 2, 4 and 6 to place 1, from 5 to place 2. Below: 1+1+3=5, 2+2+4+6=14, 3+5=8, and place 3 keeps its 4](../imgs/scatter_reduce.png)
#
# The dashed row is what was there before. Follow the colours: 1 and 3 go to place 0, where `input` has a 1.
# So place 0 ends with $1 + 1 + 3 = 5$. No index names place 3, and it keeps its 4. Does torch agree with
# the picture?

# %%
input = torch.tensor([1.0, 2.0, 3.0, 4.0])
index = torch.tensor([0, 1, 0, 1, 2, 1])
src = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

print(input.scatter_reduce(0, index, src, "sum").tolist())

# %% [markdown]
# The first argument, 0, is the dimension. In this chapter `scatter_reduce` is only used on
# one-dimensional tensors, so the dimension is always 0. The
# [documentation](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html)
# describes what happens with more dimensions.
#
# ## A mean
#
# There are five reductions: `sum`, `mean`, `prod`, `amax` and `amin`. A mean is a sum divided by the
# count of the numbers in it, and the number already in `input` counts as one of them:
#
# | place | numbers | sum | count | mean |
# |---|---|---|---|---|
# | 0 | 1 and 1, 3 | 5 | 3 | 1.6667 |
# | 1 | 2 and 2, 4, 6 | 14 | 4 | 3.5 |
# | 2 | 3 and 5 | 8 | 2 | 4 |
# | 3 | 4 | 4 | 1 | 4 |

# %%
means = input.scatter_reduce(0, index, src, "mean")
print([round(x, 4) for x in means.tolist()])

# %% [markdown]
# ## Without what was there before
#
# Often what `input` holds means nothing, and should not be counted. For that there is
# `include_self=False`.
#
# **Predict:** what is the mean now, at places 0 to 3?
#
# <details><summary>2, 4, 5 and 0</summary>
#
# No: nothing arrives at place 3, so nothing is reduced there, and it keeps its 4.
# </details>
#
# <details><summary>2, 4, 5 and 4</summary>
#
# Yes: the means of 1 and 3, of 2, 4 and 6, and of 5. Nothing arrives at place 3.
# </details>
#
# <details><summary>1.67, 3.5, 4 and 4</summary>
#
# No: these are the means with the numbers of <code>input</code> among them.
# </details>

# %%
for name in ("sum", "mean", "prod", "amax", "amin"):
    with_self = input.scatter_reduce(0, index, src, name, include_self=True)
    without = input.scatter_reduce(0, index, src, name, include_self=False)
    print(f"{name:5} with: {[round(x, 4) for x in with_self.tolist()]}  without: {without.tolist()}")

# %% [markdown]
# Look at place 3. "Without self" means: *where something arrives*, what was there does not count. Where
# nothing arrives, nothing is reduced, and `input` stays as it is. A place that no index names is not set to
# zero.
#
# Look at `amin` as well. At place 2 the smaller of 3 and 5 is 3; without the 3 it is 5.
#
# ## The trap: duplicates
#
# In NumPy and PyTorch you can write to the places of an index: `out[index] += src`. That looks like the
# same operation.
#
# **Predict:** what comes out?
#
# <details><summary>5, 14, 8 and 4: the sums, as above</summary>
#
# No: the line reads all places, adds, and writes them all back. It does not see that some are the same.
# </details>
#
# <details><summary>An error: the index has duplicates</summary>
#
# No: an error would be kinder. Numbers are lost, and nothing warns you.
# </details>
#
# <details><summary>4, 8, 8 and 4: some numbers are lost</summary>
#
# Yes: where several numbers go to one place, only one of them is added.
# </details>

# %%
out = input.clone()
out[index] += src
print("out[index] += src:", out.tolist())
print("scatter_reduce:   ", input.scatter_reduce(0, index, src, "sum").tolist())

# %% [markdown]
# Python turns the line into three steps: *read* `out[index]`, *add* `src`, *write* the six sums back. All
# six reads happen before the first write. The three sums for place 1 are $2+2$, $2+4$ and $2+6$. They are
# all written to the same place, and only one of them is left.

# %%
print("read: ", input[index].tolist())
print("added:", (input[index] + src).tolist())
print("places:", index.tolist())

# %% [markdown]
# It is not even promised which one is left. The behaviour of
# [writing to one place twice](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html)
# is undefined, unless you ask for `accumulate=True`. That adds every number, and so do `index_add`,
# `scatter_add` and `scatter_reduce`:

# %%
out = input.clone()
out.index_put_((index,), src, accumulate=True)
print("index_put_, accumulate=True:", out.tolist())
print("index_add:                  ", input.index_add(0, index, src).tolist())
print("scatter_add:                ", input.scatter_add(0, index, src).tolist())

# %% [markdown]
# On a GPU, many threads add at once, in whatever order they arrive. So for floating-point numbers the last
# digits of these sums may change from run to run: chapter [04](04_reduce.ipynb)'s lesson inside one device.
# With
# [`torch.use_deterministic_algorithms(True)`](https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html)
# they do not.
#
# ## Integers
#
# The result has the dtype of `input`, so a mean of integers has to be rounded to an integer.
#
# **Predict:** the mean of $-3$ and $-4$ is $-3.5$. What does torch give?
#
# <details><summary>−3: the fraction is cut off</summary>
#
# No: converting −3.5 to an integer would do that. Here the division rounds down.
# </details>
#
# <details><summary>−4: it is rounded down</summary>
#
# Yes: towards minus infinity, like Python's <code>//</code>.
# </details>

# %%
zeros = torch.zeros(2, dtype=torch.int64)
two_pairs = torch.tensor([-3, -4, 3, 4])
rounded = zeros.scatter_reduce(0, torch.tensor([0, 0, 1, 1]), two_pairs, "mean", include_self=False)
print("mean of -3 and -4:", rounded[0].item())
print("mean of 3 and 4:  ", rounded[1].item())

# %% [markdown]
# It rounds *down*, towards minus infinity, like Python's `//` and like
# `torch.div(..., rounding_mode="floor")`. Converting $-3.5$ to an integer would cut off the fraction
# and give $-3$:

# %%
print("floor:", torch.div(torch.tensor(-7), 2, rounding_mode="floor").item())
print("cut:  ", (torch.tensor(-7) / 2).long().item())

# %% [markdown]
# ## Exercise: scatter_reduce in one dimension
#
# Write it by hand. A loop over the numbers is fine here. Do everything that torch does:
#
# - all five reductions, with `include_self` true or false;
# - every dtype that torch takes: floating-point numbers, integers, `bool` (no mean), complex numbers
#   (here only `sum` and `prod`). The result has the dtype of `input`;
# - a place that no index names keeps what `input` has there;
# - `index` may be shorter than `src`, and then the rest of `src` is ignored; it may be empty;
# - `amax` and `amin` of numbers with a `nan` among them are `nan`;
# - `input` stays as it is; the result is a new tensor.
#
# `scatter_reduce`, `index_reduce`, `index_add` and `scatter_add` would do the work for you, so they are
# refused. Think about what each reduction starts with.

# %%
def scatter_reduce_1d(
    input: torch.Tensor, index: torch.Tensor, src: torch.Tensor, reduce: str, include_self: bool
) -> torch.Tensor:
    """What input.scatter_reduce(0, index, src, reduce, include_self=include_self) gives."""
    ### BEGIN SOLUTION
    combine = {
        "sum": torch.add,
        "mean": torch.add,
        "prod": torch.mul,
        "amax": torch.maximum,
        "amin": torch.minimum,
    }[reduce]
    out = input.clone()
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = combine(out[i], value) if count[i] else value
        count[i] += 1
    if reduce == "mean":
        count = torch.tensor(count).clamp(min=1)
        rounding = None if out.is_floating_point() else "floor"
        out = torch.div(out, count, rounding_mode=rounding).to(input.dtype)
    return out
    ### END SOLUTION


check(scatter_reduce_1d)

# %% [markdown]
# There are two traps in "start with something and combine". A maximum that starts at 0 is wrong where all
# numbers are negative, and a product that starts at 0 stays 0. Each reduction has a number of its own
# that changes nothing, its *identity*: 0 for a sum, 1 for a product, $-\infty$ for a maximum. Or start
# with the first number itself.

# %%
largest = 0.0
for x in (-3.0, -1.0, -2.0):
    largest = max(largest, x)
print("a maximum that starts at 0:", largest)

largest = float("-inf")
for x in (-3.0, -1.0, -2.0):
    largest = max(largest, x)
print("one that starts at -inf:   ", largest)

# %% [markdown]
# ## Gradients
#
# Suppose a loss depends on the result, and its gradient at the four places is 1, 10, 100, 1000. How
# much does each number of `src` get?
#
# For a **sum** the answer is simple. When `src[j]` grows a little, the place that it went to grows by as
# much. So it gets the gradient of that place: `upstream[index[j]]`. Reading the places that an index names
# is called a *gather*: the backward of a scatter-sum is a gather. (Among ranks, reduce-scatter and
# all-gather are such a pair: chapter [06](06_reduce_scatter.ipynb).)
#
# **Predict:** how much does a number get for a **mean**?
#
# <details><summary>The gradient of its place, divided by the count of numbers there</summary>
#
# Yes: when one of three numbers grows, their mean grows by a third of that.
# </details>
#
# <details><summary>The gradient of its place, divided by the count of all numbers</summary>
#
# No: only the numbers at the same place share a mean. How many go to other places does not matter.
# </details>
#
# <details><summary>The gradient of its place, undivided, as for a sum</summary>
#
# No: when one of three numbers grows, their mean grows by only a third of that.
# </details>

# %%
upstream = torch.tensor([1.0, 10.0, 100.0, 1000.0])


def gradients(reduce, include_self=True, input=input, src=src):
    x, s = input.clone().requires_grad_(), src.clone().requires_grad_()
    out = x.scatter_reduce(0, index, s, reduce, include_self=include_self)
    return torch.autograd.grad(out, (x, s), upstream)


def show(what, tensor):
    print(f"{what:24}", [round(value, 4) for value in tensor.tolist()])


show("upstream", upstream)
show("sum: gradient of src", gradients("sum")[1])
show("upstream[index]", upstream[index])
print()
show("mean: gradient of src", gradients("mean")[1])
count = 1 + torch.bincount(index, minlength=4)
show("(upstream/count)[index]", (upstream / count)[index])

# %% [markdown]
# A mean divides by the count, and so does its gradient: here by 3, by 4 and by 2.
#
# It also works the other way round. An embedding *reads* rows of a table at an index, and its backward is
# a scatter-sum: a row that was read three times collects three gradients.

# %%
table = torch.zeros(4, requires_grad=True)
table[index].backward(src)
show("gradient of the table", table.grad)
show("scatter-sum of src", torch.zeros(4).scatter_reduce(0, index, src, "sum"))

# %% [markdown]
# Back to the mean. What does `input` get? With `include_self=True` it is one of the numbers, and gets
# the same share. With `include_self=False` it gets nothing where something arrives, and everything where
# nothing does:

# %%
show("mean, with:    input", gradients("mean", True)[0])
show("mean, without: input", gradients("mean", False)[0])

# %% [markdown]
# A **maximum** depends only on the largest number; the others could change a little, and nothing
# would happen. So the largest gets all the gradient. But what if two are equally large?
#
# **Predict:** 6, 6 and 5 go to place 1, and `input` is smaller. Which of them gets the 10?
#
# <details><summary>The first 6 gets 10</summary>
#
# No: the order does not count, only the size, and the two are equal.
# </details>
#
# <details><summary>Each 6 gets 10</summary>
#
# No: then more would flow back than arrived. They share it.
# </details>
#
# <details><summary>Each 6 gets 5</summary>
#
# Yes: equal maxima share the gradient evenly.
# </details>

# %%
tied = torch.tensor([1.0, 6.0, 3.0, 6.0, 5.0, 5.0])
show("src", tied)
show("amax: gradient of src", gradients("amax", src=tied)[1])
level = torch.tensor([3.0, 2.0, 3.0, 4.0])
x_grad, src_grad = gradients("amax", input=level, src=tied)
show("input, 3 at place 0", level)
show("gradient of input", x_grad)
show("gradient of src", src_grad)

# %% [markdown]
# In the second run `input` has a 3 at place 0, as large as the 3 of `src`, and gets half.
# `torch.amax` [does the same](https://docs.pytorch.org/docs/stable/generated/torch.amax.html).
#
# One more condition from the documentation: the backward pass only exists if `index` and `src` have the
# same shape.
#
# ## Exercise: the mean of each segment
#
# Nodes of a graph and their neighbours, words and their sentences, points and their clusters: rows often
# belong to groups, called *segments*, and you want the average of each group. Row $i$ belongs to
# segment `segment_ids[i]`.
#
# ![Five rows with segment ids 2, 0, 2, 0, 0. The three rows of segment 0 become their mean (2, 2), the two rows of segment 2 become (5, 1). Segment 1 has no row and becomes (0, 0)](../imgs/segment_mean.png)
#
# `values` has shape (rows, columns); the result has shape (`num_segments`, columns) and the same
# dtype. A segment without rows gets zeros. Gradients have to flow from the result back to `values`.
# You may use all of torch.
#
# For an empty segment, a sum divided by a count is zero divided by zero, which is `nan`. So you need a
# plan for empty segments. Here is one: put zeros where `nan` came out. In this version a matrix product
# sums the rows of each segment; its first factor says which row belongs to which segment.
#
# **Predict:** is the result right? And if the loss is the sum of the result, is the gradient of each row
# right?
#
# <details><summary>The result is right, and the gradient too</summary>
#
# No: the <code>nan</code> is gone from the result, but it returns in the backward pass.
# </details>
#
# <details><summary>The result is right, and the gradient is nan</summary>
#
# Yes: the backward pass divides zero by zero again, and the matrix product spreads it to each row.
# </details>
#
# <details><summary>The result has a nan, and so has the gradient</summary>
#
# No: there is one on the way, but <code>where</code> puts a zero in its place.
# </details>

# %%
values = torch.tensor([[4.0, 0.0], [1.0, 1.0], [6.0, 2.0], [2.0, 3.0], [3.0, 2.0]])
segment_ids = torch.tensor([2, 0, 2, 0, 0])


def repaired_afterwards(values, segment_ids, num_segments):
    belongs = (torch.arange(num_segments)[:, None] == segment_ids).to(values.dtype)
    means = (belongs @ values) / belongs.sum(1, keepdim=True)
    return torch.where(means.isnan(), torch.zeros_like(means), means)


leaf = values.clone().requires_grad_()
result = repaired_afterwards(leaf, segment_ids, 3)
result.sum().backward()
print("means:   ", result.tolist())
print("gradient:", leaf.grad.tolist())

# %% [markdown]
# In the backward pass `where` hands a 0 to the division, which divides it by the count as well: $0/0$ is
# `nan` again. This `nan` belongs to the empty segment alone. But the backward of the matrix product
# multiplies it by the zeros that say "this row is not in that segment", and $0 \cdot$ `nan` is `nan`, for
# each row. You would only notice after the first step of training, when every weight is `nan`.
#
# So it is not enough that the result has no `nan`: none may appear on the way either. `check` also looks
# at the gradient.

# %%
def segment_mean(
    values: torch.Tensor, segment_ids: torch.Tensor, num_segments: int
) -> torch.Tensor:
    """The mean of the rows of each segment; zeros for an empty one."""
    ### BEGIN SOLUTION
    sums = values.new_zeros(num_segments, values.shape[1])
    sums = sums.index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
    ### END SOLUTION


check(segment_mean)

# %% [markdown]
# Here is the picture again, computed by your function:

# %%
if check(segment_mean):
    leaf = values.clone().requires_grad_()
    means = segment_mean(leaf, segment_ids, 3)
    means.sum().backward()
    print("means:   ", means.tolist())
    print("gradient:", [[round(x, 4) for x in row] for row in leaf.grad.tolist()])

# %% [markdown]
# Each row of segment 0 gets a third of the gradient, each row of segment 2 a half.
#
# What was wrong with the plan above: the repair, or the matrix product? Here is the same repair after an
# `index_add`.
#
# **Predict:** what is the gradient now?
#
# <details><summary>nan in each row, as before</summary>
#
# No: the <code>nan</code> is still there, but it stays with the empty segment.
# </details>
#
# <details><summary>Right in each row</summary>
#
# Yes: the <code>nan</code> of the empty segment is still there, but no row reads it.
# </details>

# %%
def repaired_after_index_add(values, segment_ids, num_segments):
    sums = torch.zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    means = sums / torch.bincount(segment_ids, minlength=num_segments)[:, None]
    return torch.where(means.isnan(), torch.zeros_like(means), means)


leaf = values.clone().requires_grad_()
repaired_after_index_add(leaf, segment_ids, 3).sum().backward()
print("gradient:", [[round(x, 4) for x in row] for row in leaf.grad.tolist()])

# %% [markdown]
# The `nan` of the empty segment still appears in the backward pass, but the backward of an `index_add` is a
# gather: it only reads the places that a row went to, and no row went there. That is
# good luck. (And a `nan` that was in `values` would become a zero, where nobody sees it.) Make the *divisor*
# harmless before you divide, with `counts.clamp(min=1)`, and there is no `nan` to spread, whatever comes
# before or after.
#
# ## Exercise: put the experts' answers together
#
# In a *mixture of experts* a small network, the router, sends every token to a few experts, and gives
# each of them a weight ([Shazeer and others, 2017](https://arxiv.org/abs/1701.06538)). The experts work
# on batches of rows, so a token that was sent to two experts has two rows, in two different batches. In
# the end the two must be summed:
#
# $$\text{out}[t] = \sum_{i:\ \text{token\_index}[i] = t} \text{weight}[i] \cdot \text{rows}[i]$$
#
# This is the naive way. It is correct, but it goes through the rows one by one:

# %%
def combine_naive(rows, token_index, weight, num_tokens):
    out = torch.zeros(num_tokens, rows.shape[1], dtype=rows.dtype)
    for i in range(len(rows)):
        out[token_index[i]] = out[token_index[i]] + weight[i] * rows[i]
    return out


# two tokens, two experts: rows 0 and 1 come from expert 0, rows 2 and 3 from expert 1
rows = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 4.0]])
token_index = torch.tensor([0, 1, 1, 0])
weight = torch.tensor([0.75, 0.5, 0.5, 0.25])
print(combine_naive(rows, token_index, weight, 2).tolist())

# %% [markdown]
# Token 0 gets $0.75 \cdot [1, 0] + 0.25 \cdot [0, 4] = [0.75, 1]$.
#
# A layer has thousands of such rows, and for each of them the loop calls torch several times, for a
# handful of numbers. So a Python loop over the rows is refused in this exercise, and so is one over the
# tokens: `check` compares how many lines of your code run for few rows or tokens and for many. Duplicates
# add up, a token without rows gets zeros, and gradients flow back to `rows` (the experts learn) and to
# `weight` (the router learns). Use the weights as the router gives them; do not normalise them.

# %%
def combine_experts(
    rows: torch.Tensor, token_index: torch.Tensor, weight: torch.Tensor, num_tokens: int
) -> torch.Tensor:
    """out[t] is the sum of weight * row over the rows of token t."""
    ### BEGIN SOLUTION
    out = rows.new_zeros(num_tokens, rows.shape[1])
    return out.index_add(0, token_index, weight[:, None] * rows)
    ### END SOLUTION


check(combine_experts)

# %%
if check(combine_experts):
    print(combine_experts(rows, token_index, weight, 2).tolist())

# %% [markdown]
# How many times faster than the loop is yours, for a batch of 5000 rows? Of six runs the
# first only warms up; the best of the other five counts. (Your times will differ from ours.)

# %% tags=["nbval-ignore-output"]
import time

many, half = torch.ones(5000, 64), torch.full((5000,), 0.5)
owner = torch.arange(5000) % 2500


def seconds(combine):
    start = time.perf_counter()
    combine(many, owner, half, 2500)
    return time.perf_counter() - start


best = {}
if check(combine_experts):
    for combine in (combine_naive, combine_experts):
        best[combine.__name__] = min([seconds(combine) for _ in range(6)][1:])
        print(f"{combine.__name__:15} {1000 * best[combine.__name__]:8.2f} ms")

# %% tags=["claim"]
assert best["combine_naive"] > 10 * best["combine_experts"], "a few calls are faster than the loop"

# %% [markdown]
# Every call of torch has a price, however few numbers it works on. The loop pays that price thousands of
# times, and you pay it a few times.
#
# If the experts are spread over many ranks, the rows first travel to them and back. That is the all-to-all
# of chapter [08](08_all_to_all.ipynb). What you wrote is the last step, after the rows have returned.
#
# ## A histogram is also a scatter-sum
#
# To count how often each number occurs, add a 1 to its place each time that it occurs.

# %%
rolls = torch.tensor([3, 1, 6, 3, 3, 6])
ones = torch.ones_like(rolls)
print("scatter_reduce:", torch.zeros(7, dtype=torch.int64).scatter_reduce(0, rolls, ones, "sum").tolist())
print("bincount:      ", torch.bincount(rolls, minlength=7).tolist())

# %% [markdown]
# ## Three things with nearly the same name
#
# ![Three panels. Scatter: rank 0 holds A0, A1, A2, afterwards rank r holds Ar. Reduce-scatter: every rank holds three pieces, afterwards rank r holds the sum of all pieces r. scatter_reduce: s0 and s2 are added to place 0 of one tensor, s3 to place 1, s1 to place 2](../imgs/three_names.png)
#
# - **scatter** is a collective. One rank has a list of pieces, and rank $r$ gets piece $r$. Nothing is
#   added.
# - **reduce-scatter** is a collective. Every rank has a piece for every rank, and rank $r$ gets the
#   sum of all pieces $r$.
# - **`scatter_reduce`** is not a collective. One process combines numbers of its own tensors, and an
#   index says which belong together.
#
# (And "scatter-reduce", as some call the first half of a ring all-reduce, is a reduce-scatter: chapter
# [06](06_reduce_scatter.ipynb).)
#
# Here are all three with numbers. Ranks 0, 1 and 2 hold 10, 20, 30; 11, 21, 31; and 12, 22, 32. The scatter
# is from rank 0, and the index is 0, 1, 0.
#
# **Predict:** what does rank 1 get from scatter, reduce-scatter and `scatter_reduce`?
#
# <details><summary>20; 63; and 42, 21</summary>
#
# Yes: piece 1 of rank 0; the sum of all pieces 1; and its own 11 + 31, and 21.
# </details>
#
# <details><summary>21; 63; and 42, 21</summary>
#
# No: a scatter hands out the pieces of one rank, here of rank 0, and its piece 1 is 20.
# </details>
#
# <details><summary>20; 63; and 63</summary>
#
# No: <code>scatter_reduce</code> is not a collective. Rank 1 combines its own 11, 21 and 31.
# </details>

# %%
def the_three():
    rank = dist.get_rank()
    mine = torch.tensor([10.0, 20.0, 30.0]) + rank  # rank 0: 10, 20, 30; rank 1: 11, 21, 31; ...

    scattered = torch.zeros(1)
    dist.scatter(scattered, list(mine.split(1)) if rank == 0 else None, src=0)

    reduced = torch.zeros(1)
    dist.reduce_scatter(reduced, list(mine.split(1)))

    # no messages: the first and the last number meet at place 0
    alone = torch.zeros(2).scatter_reduce(0, torch.tensor([0, 1, 0]), mine, "sum")
    return scattered.tolist(), reduced.tolist(), alone.tolist()


for r, (scattered, reduced, alone) in enumerate(run(the_three, 3)):
    print(f"rank {r}: scatter {scattered}, reduce-scatter {reduced}, scatter_reduce {alone}")

# %% [markdown]
# With `scatter_reduce`, each rank has added its *own* first and last number, and knows nothing of the
# others. The record of the run says the same. Here are rank 0's calls that use the network:

# %%
print([operation.kind for operation in run(the_three, 3).trace.operations[0]])

# %% [markdown]
# ## Summary
#
# - `input.scatter_reduce(0, index, src, reduce)` reduces `src[j]` into place `index[j]`: sum, mean,
#   prod, amax or amin.
# - `include_self=False` leaves out what a place held before, if something arrives there. Places that
#   no index names always keep what they hold.
# - `out[index] += src` loses duplicates. `index_add`, `scatter_add`, `scatter_reduce` and
#   `index_put_(..., accumulate=True)` do not.
# - The backward of a scatter-sum is a gather; a mean divides by the count; equal maxima share.
# - Keep divisors away from zero *before* you divide, or `nan` may come back in the gradient.
# - It is not reduce-scatter, and not the first half of a ring.
#
# You have now seen all three examples from the beginning. A node of a graph network adds up what its
# neighbours send, or averages it with `segment_mean`. An embedding collects the gradients of equal words
# with the scatter-sum that is the backward of its lookup. And `combine_experts` is the last step of a
# mixture-of-experts layer. Each takes a few calls instead of a loop, and each would be wrong with
# `out[index] += ...` as soon as an index occurs twice.
#
# ### Check yourself
#
# <details><summary>input is [0, 0, 7], index [1, 1], src [2, 4]. What is the mean without self?</summary>
#
# [0, 3, 7]. No index names places 0 and 2, so they keep what they have.
# </details>
#
# <details><summary>Why does <code>out[index] += src</code> work in a test where all indices differ?</summary>
#
# Numbers are only lost where two go to the same place. If all indices differ there is no such place,
# so the test cannot show the mistake.
# </details>
#
# <details><summary>The gradient of the result is 1 everywhere. Five numbers of src went to place 2 with <code>mean</code> and <code>include_self=False</code>. What gradient does each get?</summary>
#
# 1/5.
# </details>
#
# **Next:** [11 · Ring all-reduce](11_ring_all_reduce.ipynb): reduce-scatter and all-gather, joined in one
# algorithm.
