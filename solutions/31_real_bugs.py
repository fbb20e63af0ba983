# %% [markdown]
# # 31 · Real bugs
#
# In the deadlock clinic of chapter [12](12_deadlock_clinic.ipynb) the patients were made up. These eight were not.
# People met each of these bugs at work and reported it in public: in PyTorch, in libraries on top of it, and in
# PyTorch's own tutorial. Some made a job hang until a watchdog ended it. Others were silent, which is worse: the job
# ran on, with wrong numbers.
#
# For each patient you first read the symptom, as people described it. You guess, you run the smallest program that has
# the same bug, you read the verdict, and you fix the bug. The programs are our own; the reports are linked.
#
# **You will learn** to get from a symptom to the line: which question to ask first when a job hangs or a loss drifts,
# which tool answers it, and what eight mistakes that look different have in common.
#
# **You need** chapters [12](12_deadlock_clinic.ipynb) and [15](15_data_parallel.ipynb), and what an all-gather does
# (chapter [05](05_all_gather.ipynb)).
#
# **Time:** 3 hours, and 8 exercises.

# %%
import torch
import torch.distributed as dist
from torch import nn

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## How to read a hang in production
#
# There is no grader on a cluster. Every job that hangs looks the same from outside: the log stops, and all processes
# are alive. After ten minutes
# ([NCCL's default in PyTorch](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group))
# a watchdog thread ends it. By then there is little left to look at, so prepare in advance what you will want to read:
#
# - **The flight recorder.** With `TORCH_FR_BUFFER_SIZE=2000` and `TORCH_NCCL_DUMP_ON_TIMEOUT=1` each rank writes its
#   last calls to a [file](https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html) when one of them
#   takes too long: which call, in which group, with which sizes, from which line. (The page has the first variable's
#   older name, `TORCH_NCCL_TRACE_BUFFER_SIZE`.) `torchfrtrace` compares the files, and so does
#   `python -m grader explain`. You have searched such records in chapter [22](22_failures.ipynb).
# - **Stacks.** While the job still hangs, [`py-spy dump --pid …`](https://github.com/benfred/py-spy) shows which line
#   of Python each thread of a process is at. It needs no restart. Most ranks will show the same line; look for the one
#   that does not.
# - **NCCL RAS.** Since version 2.24, a thread in each process keeps in touch with those of the others. The program
#   [`ncclras`](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html), started on a node
#   of the job, asks them how many collectives each rank has called, and lists the ranks that are behind or do not
#   answer.
# - **`TORCH_DISTRIBUTED_DEBUG=DETAIL`** makes every collective
#   [compare the calls of all ranks](https://docs.pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications)
#   first: their kind, shapes and dtypes. That is too slow for every day, and just right for the second run.
# - **A small run.** Most of these bugs need neither a GPU nor many ranks. `python -m grader run train.py` runs a script
#   on your own machine, and says why it hangs.
#
# | symptom | first look | what it often is |
# |---|---|---|
# | hangs at the end of an epoch | the number of batches of each rank | a loop over each rank's own data |
# | hangs at the start, before any step | which groups each rank has made, in which order | a group made by its members only |
# | hangs when it saves or logs | what is under `if rank == 0` | a collective on one rank |
# | hangs, but only sometimes | what the number of calls depends on | a decision by a rank's own value |
# | a collective passes, and the next one hangs | shapes, rank by rank | sizes that differ |
# | no hang, wrong numbers on *some* ranks | the order of names, rank by rank | a set, a dictionary, a folder |
# | no hang, wrong numbers on *all* ranks | the result on three ranks, by hand | the wrong buffer |
#
# For the last two there is no watchdog. Only a check of your own finds them: compare checksums of what should be equal on
# all ranks, and now and then compare the result with what one process computes.
#
# ## Patient 1: the epoch that does not end
#
# The log stops near the end of an epoch. In 2020 PyTorch's developers wrote
# [a proposal](https://github.com/pytorch/pytorch/issues/38174) about it: data-parallel training fails when ranks have
# different numbers of inputs, and samplers that deal them out evenly do not cover all the cases that users have.
#
# Here three ranks train a model, and rank 1 has one batch fewer than the others. Each rank returns how many steps it
# has taken.
#
# **Predict:** what happens after rank 1's last batch?
#
# <details><summary>Rank 1 waits until the others have finished</summary>
#
# No: its loop is over, so it makes no further call in which it could wait.
# </details>
#
# <details><summary>Ranks 0 and 2 wait in the first all-reduce of their third step</summary>
#
# Yes: an all-reduce needs all ranks, and rank 1 has returned.
# </details>
#
# <details><summary>Ranks 0 and 2 finish, and their mean is over two ranks</summary>
#
# No: nothing tells an all-reduce that a rank has nothing more to add.
# </details>


# %%
def train_over_own_batches(module, batches, lr):
    for batch in batches:
        module.zero_grad()
        module(batch).sum().backward()
        for p in module.parameters():
            dist.all_reduce(p.grad)
            with torch.no_grad():
                p -= lr * p.grad / dist.get_world_size()
    return len(batches)


def epoch(train, counts):
    """Train with ``train`` where rank r has counts[r] batches; return its steps and the weights."""
    torch.manual_seed(0)  # the same weights everywhere
    module = nn.Linear(3, 1)
    batches = [torch.full((2, 3), 1.0 + dist.get_rank())] * counts[dist.get_rank()]
    steps = train(module, batches, 0.25)
    return steps, [round(w, 3) for w in module.weight.flatten().tolist()]


run(epoch, 3, train_over_own_batches, [3, 2, 3], may_fail=True)

# %% [markdown]
# The line that the verdict names is right, and innocent. So are the ranks that complain in production: they are the
# ones with **more** data. Do not ask why this all-reduce hangs. Ask how often each rank has called it.
#
# The program above ends after the epoch, so the verdict is clear. In a real one rank 1 would go on to the evaluation,
# whose first collective would then meet the others' third step. If the sizes agree, nobody notices.
#
# There are three ways out:
#
# - **Stop at the shortest.** All ranks agree beforehand on the smallest number of batches. Simple, and some of the data
#   is never seen.
# - **Fill up.** `DistributedSampler` [repeats samples](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
#   until all ranks have the same number. Simple, and some of the data is seen twice.
# - **Go on without them.** A rank that has run out still makes all the calls, with zeros. In PyTorch,
#   [`Join`](https://docs.pytorch.org/tutorials/advanced/generic_join.html) does that.
#
# The third leaves two questions, and you can get either wrong without a hang. *What is the mean?* If three ranks have
# gradients 6, 0 and 6, where the 0 means "nothing left", the mean over all is 4, and over those that still have data it
# is 6. And *who takes the step?* A rank that has run out of data has the same weights as the others, and must keep them
# the same.
#
# **Predict:** `DistributedDataParallel.join` has an argument for the first question. Which of the two means is its
# [default](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.join)?
#
# <details><summary>Over all ranks that the training began with</summary>
#
# Yes: <code>divide_by_initial_world_size=True</code>. Each batch then counts as much as any other, and the last steps are
# smaller.
# </details>
#
# <details><summary>Over the ranks that still have data</summary>
#
# No: that is <code>divide_by_initial_world_size=False</code>. It is what you will write below.
# </details>
#
# ## Exercise: ranks with different numbers of batches
#
# Write `train_uneven`. Every rank has a list of batches; the lists differ in length, and some may be empty. The loss of a
# batch is `module(batch).sum()`. In each step every rank applies SGD, `p -= lr * mean`, where `mean` is the mean of the
# gradients over the ranks that **still have a batch**. The weights are equal on all ranks at the start, and equal
# after every step. Return the number of steps, which is the largest number of batches that any rank has.
#
# A batch may have no rows. It is still a batch, and its gradients are zeros. `p.grad` may be `None`: on a rank without
# a batch, and where a batch does not use a parameter. A frozen parameter stays as it is. `dist.all_reduce` is allowed.


# %%
def train_uneven(module: nn.Module, batches: list[torch.Tensor], lr: float) -> int:
    """The number of steps; all ranks take part in each of them, with a batch or without."""
    ### BEGIN SOLUTION
    steps = 0
    while True:
        have = steps < len(batches)
        count = torch.tensor([1.0 if have else 0.0])
        dist.all_reduce(count)
        if count.item() == 0:
            return steps
        module.zero_grad()
        if have:
            module(batches[steps]).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / count.item()
        steps += 1
    ### END SOLUTION


check(train_uneven)

# %% [markdown]
# Here is the same epoch with yours. All ranks take three steps, and end with the same weights:

# %%
if check(train_uneven):
    print(run(epoch, 3, train_uneven, [3, 2, 3]))

# %% [markdown]
# **What would have found it?** Before training: all-reduce `len(loader)` with MIN and with MAX, and complain if they
# differ. While it hangs: `ncclras`, which lists the rank that has called fewer all-reduces than the others. Afterwards: the
# flight recorder, whose files show the same.
#
# ## Patient 2: pairs of ranks
#
# A user on four GPUs wanted two groups: ranks 0 and 3, and ranks 1 and 2. Each rank made the group that it belongs to,
# and called a barrier in it. [The report](https://github.com/pytorch/pytorch/issues/130102) shows the output of two
# runs. In one, ranks 0 and 3 got through. In the other, ranks 0 and **2** did, which are not a pair at all. The rest
# hung.
#
# **Predict:** what does PyTorch need in order to make a group of ranks 0 and 3?
#
# <details><summary>That ranks 0 and 3 call new_group</summary>
#
# No: that would be natural, and it is what the user thought.
# </details>
#
# <details><summary>That rank 0 calls it; the others learn of it</summary>
#
# No: nothing is sent to a rank that does not take part.
# </details>
#
# <details><summary>That all four ranks call it, for this group and in the same order as for others</summary>
#
# Yes. If they do not, groups with different members get mixed up.
# </details>


# %%
def own_pair_only(pairs):
    rank = dist.get_rank()
    for pair in pairs:
        if rank in pair:
            group = dist.new_group(pair)
            total = torch.tensor([10**rank])
            dist.all_reduce(total, group=group)
            return total.item()


run(own_pair_only, 4, [(0, 3), (1, 2)], may_fail=True)

# %% [markdown]
# Why does it matter what ranks 1 and 2 do? The ranks of a new group have to find each other, and they do so in a store,
# under the *name* of the group. PyTorch makes up that name by counting: each process calls its first group 1, its
# second group 2
# ([`_process_group_name`](https://github.com/pytorch/pytorch/blob/main/torch/distributed/distributed_c10d.py)). Here
# all four ranks make their first group, so all four look in the same place, and whoever is there first is taken for the
# partner. That is how ranks 0 and 2 got through.
#
# So the [documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group) asks **all**
# ranks to make **all** groups, in the same order, members or not. On a rank that is not a member, `new_group` returns
# something that is not a group. Or pass `use_local_synchronization=True`: then the name is made from the list of ranks,
# and only the members call. (In many versions not from that list alone: the name also depends on how many groups the
# process already has.
# [Members that have made different numbers of groups](https://github.com/pytorch/pytorch/issues/173608) wait for each
# other forever. When in doubt, make all groups on all ranks.)
#
# ## Exercise: a group for one's own pair
#
# Write `pair_group`. `pairs` is a list of pairs of ranks. It is the same on every rank, and no rank is in two of them.
# Return the group of your own pair, and `None` if you are in none. `dist.new_group` is allowed.


# %%
def pair_group(pairs: list[tuple[int, int]]) -> dist.ProcessGroup | None:
    """The group of one's own pair; None without one."""
    ### BEGIN SOLUTION
    own = None
    for pair in pairs:
        group = dist.new_group(pair)
        if dist.get_rank() in pair:
            own = group
    return own
    ### END SOLUTION


check(pair_group)

# %% [markdown]
# With yours, each pair adds up its own two numbers, and rank 4, which has no partner, adds nothing:


# %%
def sum_of_pair(pairs):
    group = pair_group(pairs)
    if group is None:
        return None
    total = torch.tensor([10 ** dist.get_rank()])
    dist.all_reduce(total, group=group)
    return total.item()


if check(pair_group):
    print(run(sum_of_pair, 5, [(0, 3), (1, 2)]))

# %% [markdown]
# What about a rank that is in no pair: may it return at once? Try it, and `check` has nothing to say, because nothing
# goes wrong in that call. But the rank has counted one group fewer than the others. Rank 1 finds out when all three
# make a group together:

# %%
def next_group():
    if dist.get_rank() != 1:  # rank 1 is in no pair, and leaves the call out
        dist.new_group([0, 2])
    everyone = dist.new_group([0, 1, 2])
    return dist.get_process_group_ranks(everyone)


run(next_group, 3, may_fail=True)

# %% [markdown]
# The verdict puts two calls side by side that have nothing to do with each other, and both lines are right. The call
# that is missing is somewhere before them.
#
# **What would have found it?** Print what each rank passes to `new_group`, in order: the lists have to be the same on
# all ranks. The flight recorder shows the group of each call. And `python -m grader run` compares the groups of all
# ranks, as it did here.
#
# ## Patient 3: the gather that worked
#
# Rank 0 has a tensor of 3 × 4, and each of the other ranks has one number. They call `all_gather`, it returns, and the
# program prints "Gather returned". Then comes a barrier, and
# [there it hangs](https://github.com/pytorch/pytorch/issues/174844). The user asks for a way to find out that an
# *earlier* call has left the connection in a bad state.
#
# It happens in evaluation: each rank gathers the predictions, and one rank's last batch is shorter. Here rank r has
# r + 1 rows, and makes room for as many from every other rank.
#
# **Predict:** rank 0 makes room for one row from each rank, and rank 1 sends two. What can rank 0 count on?
#
# <details><summary>On nothing: it may pass, hang or abort</summary>
#
# Yes: nobody promises to compare the sizes, and what happens depends on the backend, the sizes and luck.
# </details>
#
# <details><summary>On an error, since the sizes differ</summary>
#
# No: each rank's own call is without fault, and they compare no notes.
# </details>
#
# <details><summary>On one row from each, since the rest is cut off</summary>
#
# No: nothing is cut off on purpose. The bytes that do not fit go somewhere, or are waited for.
# </details>


# %%
def gather_without_asking(x):
    everyone = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, x)
    return everyone


def evaluate(gather):
    rank = dist.get_rank()
    x = torch.full((rank + 1, 2), rank)
    return [part.tolist() for part in gather(x)]


run(evaluate, 3, gather_without_asking, may_fail=True)

# %% [markdown]
# The grader compares sizes. NCCL does not always notice that they differ. One of its authors puts it like
# [this](https://github.com/NVIDIA/nccl/issues/1417): it may hang as soon as the sizes differ; it may also happen to
# work, with wrong data; and checking may cost extra communication. So the call that hangs may come later, and be
# innocent. When a barrier hangs, look at the call **before** it.
#
# The cure has two steps, since a rank cannot make room for a tensor whose size it does not know: first gather the
# numbers of rows, one integer from each rank; then gather the rows, in a form in which all tensors have the same size.
#
# ## Exercise: gather tensors with different numbers of rows
#
# Write `gather_ragged`: it returns the `x` of all ranks in rank order. They have the same dtype and differ in their number
# of rows only, the size of dimension 0, which may be 0. The all-gathers are allowed (`all_gather`,
# `all_gather_into_tensor`), and point-to-point calls as always.
#
# A rank may send n − 1 times the bytes of the **longest** `x`, and n − 1 times 8 bytes more. That is what it costs to
# pad every tensor to the longest and to gather one integer. Pickled objects (`all_gather_object`) are larger.


# %%
def gather_ragged(x: torch.Tensor) -> list[torch.Tensor]:
    """All ranks' x in rank order, each with its own number of rows."""
    ### BEGIN SOLUTION
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    longest = max(count.item() for count in counts)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[: len(x)] = x
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part[: count.item()] for part, count in zip(everyone, counts)]
    ### END SOLUTION


check(gather_ragged)

# %%
if check(gather_ragged):
    print(run(evaluate, 3, gather_ragged)[0])

# %% [markdown]
# **What would have found it?** `TORCH_DISTRIBUTED_DEBUG=DETAIL` compares the shapes of each call, and names the first
# two ranks that differ. The flight recorder has the sizes of every call; compare them rank by rank, and not only in the
# last entry. And a rule for reviews: where a collective takes what data or a mask has produced, such as the last batch,
# a list of matches or the tokens of an expert, ask what makes sure that all ranks have equally many.
#
# ## Patient 4: the checkpoint
#
# This patient has two illnesses. With the first, training works, and the job hangs when it saves.
# [A user of FSDP](https://github.com/pytorch/pytorch/issues/122903), which keeps only a part of each weight, a *shard*,
# on a rank, wanted the full weights on rank 0, for which there is an option, `rank0_only=True`; the process hung in
# `state_dict()`, on rank 0.
# [Two and a half years later](https://github.com/huggingface/transformers/pull/48569) it happened in a trainer under tensor
# parallelism: it saved on rank 0 only, and saving gathers the shards of all ranks. Rank 0 waited for ranks that never
# came, until the watchdog fired after 600 s.
#
# Here each rank has a shard of every tensor, and rank `dst` wants the whole.


# %%
def state_on_one_rank(shards, dst):
    if dist.get_rank() != dst:
        return None  # nothing to save here
    whole = {}
    for name, shard in shards.items():
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts)
    return whole


def save(state, names):
    """Save shards under names; those of embed and head hold 100 and 200, plus the rank."""
    mark = {"embed": 100, "head": 200}
    shards = {name: torch.tensor([mark[name] + dist.get_rank()]) for name in names[dist.get_rank()]}
    whole = state(shards, 0)
    return whole and {name: whole[name].tolist() for name in sorted(whole)}


same_order = [["embed", "head"]] * 3
run(save, 3, state_on_one_rank, same_order, may_fail=True)

# %% [markdown]
# "On rank 0 only" is about the *result*. The *call* is everyone's: each rank has a part that rank 0 lacks. So let all of
# them gather, and only rank 0 keep the result.
#
# **Predict:** now all ranks take part, and go through their dictionaries. All have the same names, but rank 1 has them
# in another order: `head` before `embed`. Both tensors have the same shape and dtype. What happens?
#
# <details><summary>It hangs: rank 1 waits for another name</summary>
#
# No: a collective knows no names. Rank 1's first call meets the first call of the others.
# </details>
#
# <details><summary>An error says that the names differ</summary>
#
# No: the names are never sent. Neither are the keys of a state dict, the fields of a class, or what you mean.
# </details>
#
# <details><summary>It works, and the two tensors have exchanged their rows from rank 1</summary>
#
# Yes: shapes and dtypes agree, so no check can see it.
# </details>


# %%
def state_in_own_order(shards, dst):
    whole = {}
    for name, shard in shards.items():
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts)
    return whole if dist.get_rank() == dst else None


other_order = [["embed", "head"], ["head", "embed"], ["embed", "head"]]
print(run(save, 3, state_in_own_order, other_order))

# %% [markdown]
# No tool complains, because nothing is wrong with any call. How can two processes that run the same code have different
# orders? In August 2026 [someone trained](https://github.com/huggingface/transformers/pull/48162) a Gemma 3 model on
# four GPUs. In each run some ranks produced garbage, and which ones changed from run to run. The model registered its
# buffers in a loop over a `set` of strings. Python draws a new seed for the hashes of strings in every process, so a
# set can have another order on every rank; and `DistributedDataParallel` synchronises buffers by their *place* in the
# list. Two buffers of the same shape were exchanged.
#
# The grader knows this trap: your answer's ranks take the values of a set in different orders, as processes that
# `torchrun` starts may.
#
# ## Exercise: the whole state on one rank
#
# Write `full_state`. `shards` maps names to tensors. All ranks have the same names, in any order; of each name all ranks
# have a tensor of the same shape and dtype. On rank `dst` return a dictionary with every tensor whole: the ranks' shards
# joined along dimension 0, in rank order. On all other ranks return `None`. `dist.gather` and the all-gathers are
# allowed.


# %%
def full_state(shards: dict[str, torch.Tensor], dst: int) -> dict[str, torch.Tensor] | None:
    """Every tensor whole on dst; None elsewhere."""
    ### BEGIN SOLUTION
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())] if here else None
        dist.gather(shard, parts, dst=dst)
        if here:
            whole[name] = torch.cat(parts)
    return whole if here else None
    ### END SOLUTION


check(full_state)

# %%
if check(full_state):
    print(run(save, 3, full_state, other_order))

# %% [markdown]
# **What would have found it?** The hang: `py-spy dump` on rank 0 shows a collective below a function that is called
# `save`, and on the other ranks anything else. The exchange: only a comparison. Load the checkpoint and compare its
# loss with that of the running model; or let every rank compute a checksum of what should be equal everywhere, and
# compare those, as in chapter [22](22_failures.ipynb).

# %% [markdown]
# ## Patient 5: one metric too many
#
# Training stops in the middle of an epoch, with nothing in the log.
# [The report](https://github.com/Lightning-AI/pytorch-lightning/issues/19106) calls it "NCCL silently dying". Its
# program logs a dictionary of metrics, to be averaged over the ranks, and each rank adds another name at random. The
# user expects each name to be averaged over the ranks that have it.
#
# Here all three ranks log their loss, and rank 1, which has clipped its gradients in this step, logs that too.
#
# **Predict:** which ranks are stuck?
#
# <details><summary>All three: they log different things</summary>
#
# No: the first name is the same everywhere, and its call ends on all ranks.
# </details>
#
# <details><summary>Rank 1, in the call for its second name</summary>
#
# Yes: the others have no second name, and have returned.
# </details>
#
# <details><summary>Ranks 0 and 2: they lack a name</summary>
#
# No: they make one call, it ends, and they go on with the training.
# </details>


# %%
def mean_of_own_metrics(metrics):
    means = {}
    for name, value in metrics.items():
        mean = torch.tensor(value)
        dist.all_reduce(mean)
        means[name] = mean.item() / dist.get_world_size()
    return means


def log_step(average, logged):
    return average(logged[dist.get_rank()])


a_name_more = [{"loss": 2.0}, {"loss": 4.0, "clipped": 1.0}, {"loss": 3.0}]
run(log_step, 3, mean_of_own_metrics, a_name_more, may_fail=True)

# %% [markdown]
# In a real program the other ranks go on: their next all-reduce, of gradients perhaps, meets rank 1's metric, and what
# happens then depends on the sizes. The job stops somewhere else, later, or not at all.
#
# That last case is the worst. Now each of two ranks logs *two* names, and the second differs.
#
# **Predict:** rank 0 logs an accuracy of 0.5, and rank 1 a perplexity of 20. What do they return?
#
# <details><summary>Both hang: the second names differ</summary>
#
# No: an all-reduce does not know names. There are two calls on each rank, and all of them end.
# </details>
#
# <details><summary>Rank 0 an accuracy of 0.25, rank 1 a perplexity of 10</summary>
#
# No: that would be so if each name met a zero. It meets the other rank's number.
# </details>
#
# <details><summary>Rank 0 an accuracy of 10.25, rank 1 a perplexity of 10.25</summary>
#
# Yes: the second call of one meets the second of the other, and the mean is of both.
# </details>

# %%
other_names = [{"loss": 2.0, "accuracy": 0.5}, {"loss": 4.0, "perplexity": 20.0}]
for r, means in enumerate(run(log_step, 2, mean_of_own_metrics, other_names)):
    print(f"rank {r}: {means}")

# %% [markdown]
# An accuracy of 10.25 looks wrong to anyone who sees it. A loss that is the mean of two different losses does not. A
# [later pull request](https://github.com/Lightning-AI/pytorch-lightning/pull/21434) in the same library calls this
# silent data corruption, and proposes a check: gather the names, and refuse to go on if they differ.
#
# The same happens where all ranks log the same names in different **orders**, as they do if the names come from a set.
#
# ## Exercise: the mean of each metric
#
# Write `mean_metrics`. Every rank has logged some metrics, or none. Return a dictionary that is the same on all ranks: each
# name that **any** rank has logged, with the mean over the ranks that have logged **it**. `dist.all_reduce` and
# `dist.all_gather_object`, which gathers any Python object that can be pickled, are allowed.


# %%
def mean_metrics(metrics: dict[str, float]) -> dict[str, float]:
    """The mean of each metric over the ranks that have logged it."""
    ### BEGIN SOLUTION
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for name in dict.fromkeys(name for logged in everyone for name in logged):
        values = [logged[name] for logged in everyone if name in logged]
        means[name] = sum(values) / len(values)
    return means
    ### END SOLUTION


check(mean_metrics)

# %%
if check(mean_metrics):
    for r, means in enumerate(run(log_step, 2, mean_metrics, other_names)):
        print(f"rank {r}: {means}")

# %% [markdown]
# **What would have found it?** The hang: the flight recorder, which has one more all-reduce on the rank that logs more,
# or `python -m grader run train.py`. The wrong numbers: neither, and not `DETAIL` either, since the calls are alike in
# kind, size and dtype. So compare what was *meant*: send the names along now and then, and assert that they are the
# same. And log how many ranks each mean is over: a reader sees at once if the number is not what it should be.
#
# ## Patient 6: it passed on the CPU
#
# A pipeline over four stages hangs in its first step. In a
# [report on Megatron-LM](https://github.com/NVIDIA/Megatron-LM/issues/5100) all ranks are stuck while the stages tell
# each other the shapes of their tensors. The user blames a list of sends and receives that has the same order on every
# rank, and points out that another function of the library has odd ranks begin with the receive. (There, the list is
# one batch, in which its order should not matter, and [a proposed fix](https://github.com/NVIDIA/Megatron-LM/pull/5271)
# finds another fault.) [One on PiPPy](https://github.com/pytorch/PiPPy/issues/969) has another cause: a stage puts two
# receives into one batch, and gets neither message until both senders are there.
#
# NCCL runs what you start as *kernels*, programs on the GPU, which queue up in a *stream*. A send is a kernel that ends
# when its receive runs, `isend` or not: the letter *i* only says that Python does not wait. A second kernel between the
# same two ranks waits for the first.
#
# Here each stage swaps a tensor with the stage before it, and then one with the stage after it. It starts all
# messages, one by one, and then waits for all of them.
#
# **Predict:** does it hang, by gloo's rules and then by NCCL's?
#
# <details><summary>It hangs by both: two sends meet</summary>
#
# No: with gloo a receive that is posted lets a send end, in whatever order they were posted.
# </details>
#
# <details><summary>It passes by both: all messages are started before any wait</summary>
#
# No: they are *issued* before any wait, but NCCL starts the second between two ranks when the first has ended.
# </details>
#
# <details><summary>It passes by gloo's, and hangs by NCCL's</summary>
#
# Yes: rank 0's kernel for its send waits for rank 1's receive, which is in line behind rank 1's own send.
# </details>


# %%
def swap_with_both(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None
    requests = []
    if rank > 0:
        requests.append(dist.isend(backward, rank - 1))
        requests.append(dist.irecv(before, rank - 1))
    if rank < n - 1:
        requests.append(dist.isend(forward, rank + 1))
        requests.append(dist.irecv(after, rank + 1))
    for request in requests:
        request.wait()
    return before, after


def step_of_pipeline(exchange):
    rank = dist.get_rank()
    received = exchange(torch.tensor([10.0 + rank]), torch.tensor([20.0 + rank]))
    return [None if x is None else x.item() for x in received]


for r, received in enumerate(run(step_of_pipeline, 4, swap_with_both)):
    print(f"rank {r} has got {received}")

# %%
run(step_of_pipeline, 4, swap_with_both, semantics="nccl", may_fail=True)

# %% [markdown]
# The first run is right, on gloo. The second has the same calls: their record is played again by NCCL's rules, which
# [nccl.md](../headcount/docs/nccl.md) lists, with their sources and with what was seen on a real GPU. Ranks 0 and 1 have
# each issued their send first, and each send waits for a receive that is in line behind the other send. It is the ring
# of chapter [12](12_deadlock_clinic.ipynb) once more, with two ranks.
#
# The verdict says that it *can* hang: a message that is small enough may fit into NCCL's buffers, and then its send
# ends without a receive. So such a program may even pass a first test on GPUs, and hang with real activations.
#
# Two cures are common:
#
# - **One batch.** `dist.batch_isend_irecv` hands a list of messages to NCCL as *one* kernel, in which none waits for
#   another. If the first call on a group is a batch,
#   [all ranks of the group have to take part](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.batch_isend_irecv).
# - **Odd and even.** Odd ranks begin each swap with the receive. Of two neighbours, one is odd and one is even.
#
# There is a second thing to think of. When the grader counts rounds, a rank sends one message at a time and receives
# one at a time. Those of a batch have no order, so the best one counts. All others count in the order of their calls: if
# stages 1 and 2 both serve the neighbour before them first, both send to the left, while stage 0 sends to the right,
# *into* stage 1, where the message from stage 2 is just arriving. If all stages send forward first, and then backward,
# no two messages arrive at a rank in the same round.
#
# ## Exercise: both directions at once
#
# Write `chain_exchange`. Rank r sends `forward` to rank r + 1 and `backward` to rank r − 1, where there are such ranks. It
# returns a pair: what came from r − 1, and what came from r + 1, with `None` for a neighbour that is not there. All ranks'
# `forward` are alike in shape and dtype, and so are their `backward`, but the two may differ.
#
# There are 2(n − 1) messages. They may take two **rounds**, one forward and one backward, and must not hang by NCCL's
# rules. Both are the point of the exercise.


# %%
def chain_exchange(
    forward: torch.Tensor, backward: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """What comes from the stage before, and what comes from the stage after."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None
    operations = []
    if rank < n - 1:
        operations.append(dist.P2POp(dist.isend, forward, rank + 1))
    if rank > 0:
        operations.append(dist.P2POp(dist.irecv, before, rank - 1))
        operations.append(dist.P2POp(dist.isend, backward, rank - 1))
    if rank < n - 1:
        operations.append(dist.P2POp(dist.irecv, after, rank + 1))
    if operations:
        for request in dist.batch_isend_irecv(operations):
            request.wait()
    return before, after
    ### END SOLUTION


check(chain_exchange)

# %%
if check(chain_exchange):
    for r, received in enumerate(run(step_of_pipeline, 4, chain_exchange, semantics="nccl")):
        print(f"rank {r} has got {received}")

# %% [markdown]
# **What would have found it?** Not a test on the CPU: gloo passes it every time. A test on two GPUs would have, if
# large tensors go both ways: two neighbours are enough. So would a record of the run on the CPU, judged by NCCL's
# rules. On the cluster, the flight recorder shows for each rank a send that has started and a receive that has not.
#
# ## Patient 7: half of the ranks have stopped
#
# The validation loss has not improved, so training stops early. Some processes say so and leave. The others train on,
# and [the job hangs](https://github.com/Lightning-AI/pytorch-lightning/issues/379): the condition was met on some ranks
# and not on all. Ranks that leave a loop at different moments are an old problem: PyTorch's
# [request for uneven inputs](https://github.com/pytorch/pytorch/issues/33148) is about the same hang.
#
# Here each rank looks at its own validation loss in every epoch, and stops when it is no better than its best. The
# gradients are one number, which all ranks add up.
#
# **Predict:** rank 0 sees losses of 5, 4, 3, 2 and 1, and rank 1 sees 5, 4, 4, 3 and 2. Where does it hang, if epochs
# count from 0?
#
# <details><summary>In epoch 2, where rank 1 sees the second 4</summary>
#
# No: both have added up the gradients of epoch 2 before they look at its loss.
# </details>
#
# <details><summary>In epoch 3: rank 0 adds up gradients, and rank 1 has left</summary>
#
# Yes: rank 1 leaves at the end of epoch 2, and rank 0 goes on.
# </details>
#
# <details><summary>Nowhere: rank 0 finishes on its own</summary>
#
# No: its all-reduce is over a group of two, one of which has left.
# </details>


# %%
def stops_by_itself(loss, best):
    return loss >= best


def train_until_no_better(decide, losses):
    rank, best = dist.get_rank(), float("inf")
    for epoch in range(len(losses[rank])):
        gradient = torch.ones(1)
        dist.all_reduce(gradient)  # the training of this epoch
        loss = losses[rank][epoch]
        if decide(loss, best):
            return f"stopped after epoch {epoch}"
        best = min(best, loss)
    return "trained to the end"


validation = [[5.0, 4.0, 3.0, 2.0, 1.0], [5.0, 4.0, 4.0, 3.0, 2.0]]
run(train_until_no_better, 2, stops_by_itself, validation, may_fail=True)

# %% [markdown]
# The rule of the clinic again: a decision that leads to different calls has to be **the same on all ranks**. There are many
# ways to agree, and they are not the same decision:
#
# - one rank would stop, so all do (MAX of the flags);
# - all would stop (MIN of the flags);
# - rank 0 decides (a broadcast), though its loss comes from only a part of the data;
# - the ranks compare the **mean** loss, which is the loss over all of the data if all ranks have equally much of it.
#
# The first three agree on a bool, and the last on a number.
#
# **Predict:** four ranks have losses of 1, 6, 6 and 6, and the best so far was 5. What do the first and the last rule say?
#
# <details><summary>Both stop: most ranks are worse than 5</summary>
#
# No: the mean is 4.75. One rank is so much better that it outweighs the others.
# </details>
#
# <details><summary>The first stops, the last goes on</summary>
#
# Yes: three ranks would stop, and the mean, 4.75, is better than 5.
# </details>
#
# <details><summary>The first goes on, the last stops</summary>
#
# No: with MAX one rank that would stop is enough, and here there are three.
# </details>
#
# ## Exercise: stop together
#
# Write `should_stop`: whether the **mean** loss of all ranks is no better than `best`. A smaller loss is better, and one
# that equals `best` is not. `best` is the same on all ranks, and may be infinite. Return a bool, the same on every
# rank. One `dist.all_reduce` is allowed.


# %%
def should_stop(loss: float, best: float) -> bool:
    """Whether the mean loss of all ranks is no better than best."""
    ### BEGIN SOLUTION
    mean = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    return mean.item() >= best
    ### END SOLUTION


check(should_stop)

# %%
def all_losses_but_one(decide):
    return decide([1.0, 6.0, 6.0, 6.0][dist.get_rank()], 5.0)


if check(should_stop):
    print(run(all_losses_but_one, 4, should_stop))

# %% [markdown]
# There is a trap left, and it is not in the function: `best` has to be the same on all ranks. In
# `train_until_no_better` it is the minimum of a rank's *own* losses. With your function in it, it would have to be the
# minimum of the means.
#
# **What would have found it?** Ask of every `if` and `break` in the training loop: can its condition differ between ranks?
# Losses, times, file systems, signals and random numbers can. In the flight recorder one rank's last record is older
# than those of the others, and nothing is in flight there.
#
# ## Patient 8: the tutorial
#
# The last patient hung nowhere and reported nothing. From 2017 to 2020 PyTorch's tutorial
# [Writing Distributed Applications](https://docs.pytorch.org/tutorials/intermediate/dist_tuto.html) had a ring
# all-reduce in it that [did not reduce](https://github.com/pytorch/pytorch/issues/31572), until the reader who had
# reported it fixed it ([#1039](https://github.com/pytorch/tutorials/pull/1039)). The ring has two buffers that take
# turns: one is sent while the other receives. Here is a program of our own with both of the tutorial's mistakes.
#
# **Predict:** three ranks bring 1, 10 and 100. What do they return?
#
# <details><summary>111 on all ranks</summary>
#
# No: look at what the buffers hold before the first message, and at what is added after it.
# </details>
#
# <details><summary>1, 10 and 100: nothing has been added</summary>
#
# No: zeros go round, but something else is added.
# </details>
#
# <details><summary>2, 20 and 200: each rank has added its own</summary>
#
# Yes: in the second step send is added, which is the rank's own; in the first it is recv, which holds 0.
# </details>


# %%
def sum_of_the_wrong_buffers(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    going, coming, total = torch.zeros_like(send), torch.zeros_like(send), send.clone()
    for step in range(n - 1):
        request = dist.isend(going, (rank + 1) % n)
        dist.recv(coming, (rank - 1) % n)
        total += recv if step % 2 == 0 else send
        request.wait()
        going, coming = coming, going
    recv.copy_(total)


def powers_of_ten(reduce):
    send, recv = torch.tensor([10 ** dist.get_rank()]), torch.zeros(1, dtype=torch.int64)
    reduce(send, recv)
    return recv.item()


print(run(powers_of_ten, 3, sum_of_the_wrong_buffers))

# %% [markdown]
# Two lines are wrong, each in a way that the eye corrects. Zeros are sent in place of the rank's own numbers; and what
# has just arrived is in `coming`, but `recv` and `send` are added. The result looks like a sum, and grows with the
# number of ranks. Where `recv` is used again, the result even changes from call to call, because `recv` still holds the
# last one.
#
# A test with ones on every rank finds it, one with a single rank does not. One with powers of ten also tells you what
# has been added: 20 is twice rank 1's number, and nobody else's.
#
# ## Exercise: fix the ring of the tutorial
#
# Write `tutorial_all_reduce`: `recv` holds the sum of all ranks' `send` afterwards, and `send` is what it was. Both
# have the same shape and dtype, whatever their length. What `recv` held before means nothing. Messages go between
# neighbours on the ring only, and of `L` elements no rank sends **more than (n − 1)·L**, as in the tutorial: each rank's
# numbers go round, and stop before they are home again.
#
# The tutorial passes whole tensors on. The ring of chapter [11](11_ring_all_reduce.ipynb), which cuts the tensor into
# chunks and sends fewer bytes in more messages, is as welcome, and may pad the last one.


# %%
def tutorial_all_reduce(send: torch.Tensor, recv: torch.Tensor) -> None:
    """The sum over all ranks in recv; send stays as it is."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    total, passing, coming = send.clone(), send.clone(), torch.empty_like(send)
    for _ in range(n - 1):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv.copy_(total)
    ### END SOLUTION


check(tutorial_all_reduce)

# %%
if check(tutorial_all_reduce):
    print(run(powers_of_ten, 3, tutorial_all_reduce))

# %% [markdown]
# **What would have found it?** Nothing that watches for hangs. A silent error needs an assertion: on a few ranks, with
# small numbers that say whose they are, and a result worked out by hand. Such a test has five lines, and belongs beside
# every collective that you write. What the grader says of this ring, before and after it was fixed, and of others that
# were published, is in [docs/verdicts.md](../docs/verdicts.md).
#
# ## What the eight have in common
#
# | patient | what a rank decided by itself | what came of it | the cure |
# |---|---|---|---|
# | 1 `train_uneven` | how often to call, by its own data | a hang | agree in each step who still has any |
# | 2 `pair_group` | which groups to make | a hang, or the wrong partner | all groups on all ranks |
# | 3 `gather_ragged` | how much to send | a hang in the *next* call, or garbage | tell the sizes first |
# | 4 `full_state` | whether to call, and in which order | a hang, or tensors exchanged | all ranks, in one order |
# | 5 `mean_metrics` | which names to log | a hang, or means of different things | tell the names first |
# | 6 `chain_exchange` | in which order to start its messages | a hang, on GPUs only | one batch, or odd and even |
# | 7 `should_stop` | whether to go on | a hang | one decision, from a number that all know |
# | 8 `tutorial_all_reduce` | nothing: it mixed up its buffers | wrong sums, on all ranks | send what is yours, add what came |
#
# A program on many ranks is written once, and every rank runs it with its own data. In six of the eight, **what a rank does
# depends on what only that rank knows**: its number of batches, its pair, its rows, its keys, its metrics, its loss. The
# code looks harmless, and for one process it is. So when you read such code, stop at each `if`, each loop and each
# shape before a collective, and ask: *do all ranks know this, and do they all know the same?* If they do not, let
# them first agree on it. That takes one more collective, and a small one.
#
# The other two, the chain and the tutorial, do the same on every rank, and are wrong on every rank. NCCL's rules find
# the first. For the second, and for all that is silent, you need a test, and another question: *would it fail if one
# rank's part were missing, or not where it belongs?* If it would not, you have found where a check is missing.
#
# ## Summary
#
# - A hang names the line at which ranks wait. The mistake is usually elsewhere: in a call that one rank did not make, or
#   in the call before.
# - All ranks make the same calls, equally often, in the same order, with the same sizes, in groups that all of them
#   know.
# - What decides about a call has to be known to all ranks. If only one knows it, agree on it first.
# - A collective knows neither names nor meanings: calls are matched by their order, so put names in an order that all
#   ranks share.
# - Prepare the flight recorder before you need it; ask `ncclras` and `py-spy` while the job still hangs.
# - No tool sees wrong numbers in right calls. Compare what should be equal, and compare with one process.
#
# **Where this is used:** wherever a job runs on more than one GPU. To look for such bugs in a script of your own, run
# `python -m grader run train.py`; [run.md](../headcount/docs/run.md) lists what it recognises, with a script for each bug. And if you find a
# new one, report it: this chapter exists because others have.
#
# ### Check yourself
#
# <details><summary>A job hangs at the end of its first epoch, but only on 48 GPUs, never on 32. What do you look at first?</summary>
#
# The number of batches per rank: the data set may divide by 32 and not by 48.
# </details>
#
# <details><summary>rank 0 alone computes a validation loss, by calling the wrapped model. Does that hang?</summary>
#
# It depends on what the wrapper does in its forward pass. With FSDP it gathers weights, and then rank 0 waits. With
# DistributedDataParallel it may broadcast buffers, and then rank 0 may wait there. Call the inner module, if all of its
# weights are there, or let all ranks evaluate.
# </details>
#
# <details><summary>You sort names with sorted(names, key=len) before a loop with collectives. Is that enough?</summary>
#
# No: names of the same length stay in the order in which they came, which may differ from rank to rank. Sort by the
# name itself.
# </details>
