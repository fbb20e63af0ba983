# %% [markdown]
# # 00 · Ranks and groups
#
# ![Four ranks around a ring, each with a tensor of four numbers. In three steps a packet of every number moves on from rank to rank, and each rank adds its own; in three more steps the four sums are passed on, until every rank has 1111, 2222, 3333, 4444](../imgs/ring_all_reduce.svg)
#
# Four processes add up their tensors. Each sends only to its right neighbour, yet in the end every one of
# them has the whole sum. In chapter [11](11_ring_all_reduce.ipynb) you write this yourself, in about
# twenty lines.
#
# Llama 3 405B was trained on [up to 16,000 GPUs at once](https://arxiv.org/abs/2407.21783). Its weights
# alone fill the memory of ten of them, and a single GPU would have needed 3,000 years for the training. So
# the work is divided among many processes, which tell each other in every step what they have computed.
# This course is about that conversation.
#
# **You will learn** what a rank is, how one program becomes many processes, how they find each other,
# and how this course checks what you write.
#
# **You need** some Python and a little PyTorch: what a tensor is. Nothing about networks or GPUs.
#
# **Time:** 40 minutes, with 2 short exercises. The first is three minutes away.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline, torchrun

# %% [markdown]
# ## One program, many processes
#
# All the processes of a training run execute the *same program*. What tells them apart is a
# number that each gets at start-up: its **rank**. If there are $n$ processes, the ranks are
# $0, 1, \dots, n-1$, and $n$ is called the **world size**.
#
# ![One program at the top, with an arrow to each of four processes; each process holds its own variable x, equal to its rank](../imgs/ranks.png)
#
# `run(function, n)` starts $n$ processes, calls the function in each of them, and shows what they
# print.
#
# **Predict:** the next cell runs `hello` on 4 ranks. What will it print? Click on your guess, then run
# the cell.
#
# <details><summary>One line: it is one program</summary>
#
# No: the program runs four times, once in each process.
# </details>
#
# <details><summary>Four lines, each with a different rank</summary>
#
# Yes: each process asks for its own rank, and all get the same world size.
# </details>
#
# <details><summary>The same line four times</summary>
#
# No: the program is the same, but <code>get_rank()</code> returns a different number in each process.
# </details>

# %%
def hello():
    print(f"hello, I am rank {dist.get_rank()} of {dist.get_world_size()}")


run(hello, 4)

# %% [markdown]
# Four processes ran `hello`, all at the same time. Any of them may have been the first to print; `run`
# collects the lines and shows them in the order of the ranks.
#
# ## Your first exercise
#
# Write `who_am_i`. It returns a tensor of two numbers: the rank of this process and the world
# size. Every rank runs it, and none of them needs to ask another: **no messages**.
#
# Replace the line that raises with your own, and run the cell. (Before you do, it says *not written yet*.)

# %%
def who_am_i() -> torch.Tensor:
    """An int64 tensor [rank, world_size]."""
    ### BEGIN SOLUTION
    return torch.tensor([dist.get_rank(), dist.get_world_size()])
    ### END SOLUTION


check(who_am_i)

# %% [markdown]
# If you are stuck, open the hints below the verdict, one after the other. `hint("who_am_i")` gives the same.
#
# The verdict counts *cases*. Your function was run in worlds of 1, 2, 3, 4, 5 and 8 processes. In
# each world its result is one case, and the number of messages sent is another. Here that number
# has to be 0.
#
# Every chapter works like this: you read a little, make a guess, run a cell, and compare. Then you write a
# function yourself, and `check` runs it on real processes that talk to each other. It tells you what is
# right, what is wrong, and on which process.
#
# ### Put it to use
#
# Two numbers are all that a rank needs to find its place. In the next cell five ranks use your `who_am_i` to
# form a line: each waits for the sum so far from the rank before it, adds its own number, and passes the new
# sum on. `replay` shows the messages as they travel. Press *Play* to see it again. (How to send messages is
# the next chapter.)

# %%
def pass_it_on():
    rank, n = who_am_i().tolist()
    total, received = torch.tensor([rank]), torch.tensor([0])
    if rank > 0:
        dist.recv(received, rank - 1)
        total += received
    if rank < n - 1:
        dist.send(total, rank + 1)
    return total


replay(pass_it_on, 5) if check(who_am_i) else None

# %% [markdown]
# ## Every process has its own memory
#
# What a function returns comes back from every rank: `run(f, 4)[3]` is what rank 3 returned. And what a
# function *changes*?
#
# **Predict:** `counter` is 100. Four ranks run `count_up`, and each adds its own rank to `counter`.
# What do ranks 0 to 3 return, and what is `counter` in the notebook afterwards?
#
# <details><summary>100, 101, 103 and 106; in the notebook 106</summary>
#
# No: that would be one counter for all. Each rank adds to a counter of its own.
# </details>
#
# <details><summary>100, 101, 102 and 103; in the notebook 103</summary>
#
# No: the notebook is a process as well, and no rank has written to its memory.
# </details>
#
# <details><summary>100, 101, 102 and 103; in the notebook 100</summary>
#
# Yes: there are five counters, one in each rank and one in the notebook.
# </details>
#
# (To guess in your own words, write `predict("your guess")` in a cell of its own: the next run shows it
# again, beside what happened.)

# %%
counter = 100


def count_up():
    global counter
    counter += dist.get_rank()
    return counter


print("in the ranks:   ", list(run(count_up, 4)))
print("in the notebook:", counter)

# %% [markdown]
# A variable exists once *per process*. Each rank started with a copy of its own, 100, and added its rank.
# The notebook's copy is still 100. To move a value from one process to another, one of them has to *send*
# it and the other has to *receive* it.
#
# ## Same program, different work
#
# Since all ranks run the same program, each looks at its rank to decide what to do. This style is
# called **SPMD**: single program, multiple data. Here three ranks share out the numbers 0 to 9. Each takes
# every third number, and begins with its own rank.
#
# **Predict:** which numbers does rank 1 work on?
#
# <details><summary>1, 4 and 7</summary>
#
# Yes: it begins with 1 and goes on in steps of 3. Rank 0 has one more: 0, 3, 6 and 9.
# </details>
#
# <details><summary>3, 4 and 5</summary>
#
# No: that would be rank 1's share if each rank took a block of three.
# </details>
#
# <details><summary>All ten: it runs the same program</summary>
#
# No: the program is the same, but each rank starts counting at its own number.
# </details>

# %%
def divide_the_work():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = list(range(rank, 10, n))
    return mine


run(divide_the_work, 3)

# %% [markdown]
# A rank does not come with a variable that holds its number: it has to ask. If you forget, the run
# fails, and says on which rank and on which line. (We expect that here, so we say `may_fail=True`.)

# %%
def forgets_to_ask():
    print("hello from rank", my_rank)


run(forgets_to_ask, 2, may_fail=True)

# %% [markdown]
# The fix is one line, `my_rank = dist.get_rank()`, *inside* the function, where each process asks
# for its own.
#
# ## How the processes find each other
#
# Before processes can talk, they have to meet. In a program of your own you write
#
# ```python
# dist.init_process_group("gloo")
# ```
#
# and each process needs to know three things: its rank, the world size, and a meeting place where it
# can leave its address and read those of the others (a file, or a port on one machine). This start-up
# is called the **rendezvous**. Once it is over, the processes form a **process group**.
#
# Usually a launcher starts the processes and tells them these three things in environment variables.
# It also sets `LOCAL_RANK`, which counts the processes of *one machine* from 0: with 8 GPUs in each
# machine, rank 11 is local rank 3 of the second machine, and works on that machine's GPU number 3. (How it
# tells PyTorch so, with `set_device` and `device_id`, is in chapter [19](19_backends.ipynb).)
#
# PyTorch's launcher is [`torchrun`](https://docs.pytorch.org/docs/stable/elastic/run.html). The next
# cell hands it a small script, and launches two processes on this machine. The first line that it prints
# is what you would type in a terminal. It takes a few seconds: every process is a fresh Python that
# imports PyTorch.

# %%
script = """
import os
import torch.distributed as dist

dist.init_process_group("gloo")
print({name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")})
print(f"I am rank {dist.get_rank()} of {dist.get_world_size()}")
dist.barrier()  # neither rank leaves while the other is still connecting
dist.destroy_process_group()
"""

torchrun(script, 2)

# %% [markdown]
# On one machine the rank and the local rank are the same.
#
# In this course `run` and `check` do all this for you. They keep a process ready that has already
# imported PyTorch, and make the ranks as copies of it, so you do not wait for the import. Inside your
# functions the group is set up: **do not call `init_process_group` yourself**.
#
# ## Who carries the bytes: the backend
#
# `torch.distributed` is an interface. A *backend* does the work underneath:
#
# | backend | made for | where you meet it |
# |---|---|---|
# | **gloo** | CPU tensors, over ordinary networks | here: it runs on every laptop |
# | **NCCL** | NVIDIA GPUs, over NVLink, PCIe and InfiniBand | training on NVIDIA GPUs |
# | **RCCL** | AMD GPUs | training on AMD GPUs, [under the name `nccl`](https://docs.pytorch.org/docs/stable/notes/hip.html#torch-distributed-backends) |
# | **XCCL** | Intel GPUs | training on Intel GPUs |
# | **MPI** | clusters and supercomputers | PyTorch built from source, on a machine that has MPI |
#
# The patterns are the same for all of them. So is most of the vocabulary: *send*, *receive*, *broadcast*,
# *scatter*, *gather* and *reduce* are also what the [MPI standard](https://www.mpi-forum.org/docs/), first
# published in 1994, calls them. The
# [documentation](https://docs.pytorch.org/docs/stable/distributed.html#backends) lists what each backend can
# do. Any rank can ask which one it has:

# %%
def which_backend():
    return dist.get_backend()


run(which_backend, 2)

# %% [markdown]
# ## Groups inside the world
#
# Sometimes only some ranks should talk: the GPUs of one machine, say. `dist.new_group` makes a
# smaller process group.

# %%
def my_team():
    even = dist.new_group([0, 2])
    odd = dist.new_group([1, 3])
    mine = odd if dist.get_rank() % 2 else even
    return dist.get_process_group_ranks(mine), dist.get_rank(mine)


run(my_team, 4)

# %% [markdown]
# Each rank returns the members of its group, and its own rank *in the group*: rank 2 of the world is rank 1
# of the even ones. Notice that every rank made *both* groups, even the one that it is not in. Unless told
# otherwise, `new_group` is [a call for every rank of the
# world](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group), members or not,
# and all ranks have to make their groups in the same order. (So training code often leaves this to a
# [`DeviceMesh`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.device_mesh.DeviceMesh),
# which arranges the ranks in a grid and makes a group of each row and each column: chapter
# [21](21_hierarchy.ipynb).) Here rank 1 does not call `new_group`:

# %%
def only_rank_0_makes_the_group():
    if dist.get_rank() == 0:
        dist.new_group([0, 1])


run(only_rank_0_makes_the_group, 2, may_fail=True)

# %% [markdown]
# ## Neighbours on a ring
#
# Many algorithms arrange the ranks in a ring. Each rank has a left and a right neighbour, and the
# ring is closed: to the right of the last rank is rank 0. In the picture, "right" is clockwise.
#
# ![Five ranks in a ring; to the left of rank 0 is rank 4 and to its right rank 1](../imgs/ring.png)
#
# The two ends are where mistakes are made. In a world of 5, what are the neighbours of rank 4? And in
# a world of 1, what are those of rank 0? One detail of Python helps: `i % n` lies between 0 and
# $n-1$ for every positive `n`, even if `i` is negative. (In C and with `torch.fmod`, a negative `i` gives
# a remainder that is negative or 0.)

# %%
print([(i, i % 5) for i in range(-2, 7)])

# %% [markdown]
# Write `neighbours`. It returns a pair of ints, `(left, right)`. In a world of one, the only rank
# is its own neighbour on both sides.

# %%
def neighbours() -> tuple[int, int]:
    """(left, right) on the ring of all ranks."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % n
    ### END SOLUTION


check(neighbours)

# %% [markdown]
# When it passes, it closes the line into a ring. Rank 0 sends a number to the right, each rank that gets it
# adds its own, and in the end the number is back home:

# %%
def around_the_ring():
    left, right = neighbours()
    token = torch.tensor([0])
    if dist.get_rank() == 0:
        dist.send(token, right)
        dist.recv(token, left)
    else:
        dist.recv(token, left)
        token += dist.get_rank()
        dist.send(token, right)
    return token


replay(around_the_ring, 5) if check(neighbours) else None

# %% [markdown]
# ## How far you are
#
# The course remembers which exercises you have passed. `progress()` shows them, as does
# `python -m grader progress` in a terminal. Every `check` counts, in this notebook or in any other,
# and what has passed once stays passed.

# %%
progress()

# %% [markdown]
# It is all kept in one small file, `.grader/progress.json` in the folder of the course. Delete it to
# begin again. (The *solved* edition of this chapter was made with progress switched off: its
# answers are not yours.)

# %% [markdown]
# ## A map of the course
#
# Sending one message is the smallest step. A handful of patterns built from such messages come up again and
# again. They are called **collectives**, because a whole group takes part. In the chapters to come you will
# write every one of them. "All-" in a name means that every rank gets a result, and that no rank is
# special. (The same is true of reduce-scatter, although its name does not say so.)
#
# | collective | before | after | combines? | copies? | used for |
# |---|---|---|---|---|---|
# | broadcast | one rank has x | everyone has x | no | yes | starting weights, loading a model |
# | scatter | one rank has n pieces | rank r has piece r | no | no | handing out data |
# | gather | rank r has piece r | one rank has all pieces | no | no | collecting logs and metrics |
# | reduce | everyone has an x | one rank has the sum | yes | no | a total on one device |
# | all-gather | rank r has piece r | everyone has all pieces | no | yes | sharded parameters, sequence parallelism |
# | reduce-scatter | everyone has n pieces | rank r has the sum of all pieces r | yes | no | sharded gradients |
# | all-reduce | everyone has an x | everyone has the sum | yes | yes | averaging gradients |
# | all-to-all | rank r has a piece for each rank | rank r has a piece from each rank | no | no | mixture of experts |
#
# The last column says where they are used in training. (Parameters are *sharded* if they are cut up and
# spread over the ranks.) In every step, those 16,000 GPUs add up gradients, gather what is sharded, and pass
# on the outputs of layers. The time of a step depends on how well these few patterns are done, and that is
# why you are going to write them yourself.
#
# (And the 3,000 years? The training took $3.8 \cdot 10^{25}$ operations, and each GPU managed about 400
# trillion of them a second. The weights take 810 GB, at two bytes each, and a GPU had 80 GB of memory.)
#
# ## Summary
#
# - One program runs as $n$ processes. Each can ask for its **rank** and the **world size**.
# - Every process has its **own memory**. Nothing is shared; values are sent.
# - Processes meet in a **rendezvous** and form a **process group**; a launcher such as `torchrun`
#   tells each of them who it is. `LOCAL_RANK` is its number on its own machine.
# - A **backend** carries the bytes: gloo for CPU tensors, NCCL for NVIDIA GPUs (RCCL for AMD's).
# - Ranks on a ring: left is $(r-1) \bmod n$, right is $(r+1) \bmod n$.
#
# ### Check yourself
#
# <details><summary>A script sets <code>x = 5</code>, then rank 0 runs <code>x = 7</code>. What is x on rank 1?</summary>
#
# 5. Every process has its own x.
# </details>
#
# <details><summary>Two machines with 4 GPUs each run one process per GPU. What are the rank and the local rank of the last one?</summary>
#
# Rank 7 of a world of 8, and local rank 3.
# </details>
#
# <details><summary>In a world of 4, ranks 0 and 1 want a group of their own. Which ranks must call <code>dist.new_group([0, 1])</code>?</summary>
#
# All four. If one leaves it out, the others wait for it.
# </details>
#
# **Next:** [01 · Point to point](01_point_to_point.ipynb): the first messages.
