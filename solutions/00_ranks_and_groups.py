# %% [markdown]
# # 00 · Ranks and groups
#
# **You will learn** what a rank is, how one program becomes many processes, how these
# processes find each other, and how this course checks what you write.
#
# **You need** some Python and a little PyTorch: what a tensor is. Nothing about networks or GPUs.
#
# **Time:** 30 minutes, and 2 short exercises.
#
# How every chapter works: you read a little, *predict* what a cell will print, run it, and see.
# Then you write a function yourself and call `check`. It runs your function on real processes
# that talk to each other, and says what is right, what is wrong, and on which process.

# %%
import torch
import torch.distributed as dist

from grader import check, hint, progress, run

# %% [markdown]
# ## One program, many processes
#
# Training a large model is the work of many processes, often thousands. All of them run the
# *same program*. What makes them different is a number that each is given when it starts: its
# **rank**. If there are $n$ processes, the ranks are $0, 1, \dots, n-1$, and $n$ is called the
# **world size**.
#
# ![One program at the top, with an arrow to each of four processes; each process holds its own variable x, equal to its rank](../imgs/ranks.png)
#
# `run(function, n)` starts $n$ processes, calls the function in each of them, and shows what they
# print, in the order of the ranks.
#
# **Predict:** what will this print, and how many lines?

# %%
def hello():
    print(f"hello, I am rank {dist.get_rank()} of {dist.get_world_size()}")


run(hello, 4)

# %% [markdown]
# Four processes ran `hello`. They ran at the same time, so on another day rank 2 may have printed
# before rank 0; `run` collects the lines and shows them in order.
#
# What a function returns comes back too: one value per rank.

# %%
def square_of_rank():
    return dist.get_rank() ** 2


squares = run(square_of_rank, 4)
print(list(squares))
print("rank 3 returned", squares[3])

# %% [markdown]
# ## Every process has its own memory
#
# This is the point that surprises people first. A variable exists once *per process*. If rank 1
# changes its copy, nobody else notices, not even the notebook you are reading.
#
# **Predict:** which numbers will this print?

# %%
counter = 100


def count_up():
    global counter
    counter += dist.get_rank()
    return counter


print("in the ranks:   ", list(run(count_up, 4)))
print("in the notebook:", counter)

# %% [markdown]
# Each rank started with its own copy, 100, and added its own rank. The notebook's copy is still
# 100. To move a value from one process to another, somebody has to *send* it and somebody has to
# *receive* it. That is what this whole course is about.
#
# ## Different work, by asking for the rank
#
# Since all ranks run the same program, they do different things by looking at their rank. This
# style is called **SPMD**: single program, multiple data.

# %%
def divide_the_work():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = list(range(rank, 10, n))  # every n-th number, beginning with my rank
    return mine


for rank, numbers in enumerate(run(divide_the_work, 3)):
    print(f"rank {rank} works on {numbers}")

# %% [markdown]
# A name that is not defined is not defined on any rank. Much sample code on the web uses a
# variable `rank` that nobody has set; it cannot run. Here is what that looks like. (We expect this
# run to fail, so we say `may_fail=True`.)

# %%
def copied_from_a_web_page():
    print("hello from rank", rank_of_this_process)


run(copied_from_a_web_page, 2, may_fail=True)

# %% [markdown]
# The cure is one line, `rank = dist.get_rank()`, *inside* the function, where each process asks for
# its own.
#
# ## How the processes find each other
#
# Before processes can talk, they have to meet. In a program of your own you write
#
# ```python
# dist.init_process_group("gloo")
# ```
#
# and each process needs to know three things: its rank, the world size, and a place where all can
# leave a message on how to reach them (a file, or a port on one machine). That meeting is called
# the **rendezvous**. Afterwards the processes are a **process group**.
#
# Usually a launcher starts the processes and passes these three in environment variables.
# PyTorch's launcher is `torchrun`. The next cell writes a small script to a file and launches it
# twice on this machine, just as you would in a terminal with
#
# ```
# torchrun --standalone --nproc_per_node=2 hello.py
# ```
#
# It takes a few seconds: every process is a fresh Python that imports PyTorch.

# %%
import pathlib
import subprocess
import sys
import tempfile

script = """
import os
import sys
import torch.distributed as dist

dist.init_process_group("gloo")
given = f"RANK={os.environ['RANK']} WORLD_SIZE={os.environ['WORLD_SIZE']}"
told = f"I am rank {dist.get_rank()} of {dist.get_world_size()}"
sys.stdout.write(f"{given}: {told}\\n")  # one write a line: two ranks cannot mix theirs
dist.barrier()  # neither rank leaves while the other is still connecting
dist.destroy_process_group()
"""

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "hello.py")
    path.write_text(script)
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    done = subprocess.run(
        [*torchrun, "--standalone", "--nproc_per_node=2", str(path)],
        capture_output=True,
        text=True,
    )
print(*sorted(done.stdout.splitlines()), sep="\n")
if done.returncode:
    print(done.stderr)

# %% [markdown]
# In this course `run` and `check` do all this for you. They keep a process ready that has imported
# PyTorch already, and make the ranks as copies of it, so a world of four is there in about a
# twentieth of a second. Inside your functions the group is set up: **do not call
# `init_process_group` yourself**.
#
# ## Who carries the bytes: the backend
#
# `torch.distributed` is an interface. A *backend* does the work below it:
#
# | backend | made for | where you meet it |
# |---|---|---|
# | **gloo** | CPU tensors, over ordinary networks | here: it runs on every laptop |
# | **NCCL** | GPU tensors, over NVLink, PCIe and InfiniBand | training on NVIDIA GPUs |
# | **MPI** | supercomputers; the standard that the others took their words from | HPC centres |
#
# The patterns are the same for all three, and the words *send*, *receive*, *broadcast*, *scatter*,
# *gather*, *reduce* come from MPI. What each backend can do is listed in the
# [documentation](https://docs.pytorch.org/docs/stable/distributed.html#backends). Which one is
# ours?

# %%
def which_backend():
    return dist.get_backend()


print(list(run(which_backend, 2)))

# %% [markdown]
# ## Your first exercise
#
# Write `who_am_i`. It returns a tensor of two numbers: the rank of this process and the world
# size. Every rank runs it, and none of them has to ask another: **no messages**.
#
# Where it says *Your code here*, replace the line that raises with your own.

# %%
def who_am_i() -> torch.Tensor:
    """An int64 tensor [rank, world_size]."""
    ### BEGIN SOLUTION
    return torch.tensor([dist.get_rank(), dist.get_world_size()])
    ### END SOLUTION


check(who_am_i)

# %% [markdown]
# Run the cell before you have written anything, too: a grey *not written yet* is what an empty exercise
# looks like. If you are stuck, `hint("who_am_i")` gives a hint, and a plainer one each time you
# call it.
#
# The verdict speaks of *cases*. Your function was run in worlds of 1, 2, 3, 4, 5 and 8 processes,
# and in each world the number of messages was counted and judged, as a case of its own. Here the
# number that was asked for is 0.
#
# ## Neighbours on a ring
#
# Many algorithms put the ranks on a circle. Each rank has a neighbour on its left and one on its
# right, and the circle is closed: to the right of the last rank is rank 0.
#
# ![Five ranks on a circle; to the left of rank 0 is rank 4 and to its right rank 1](../imgs/ring.png)
#
# **Predict** before you write: in a world of 5, who is on the left of rank 0? And in a world of 1?
#
# A detail of Python that helps: `%` never gives a negative number.

# %%
print([(i, i % 5) for i in range(-2, 7)])

# %% [markdown]
# Write `neighbours`. It returns a pair of ints, `(left, right)`. In a world of one, the only rank
# is its own neighbour on both sides: `(0, 0)`.

# %%
def neighbours() -> tuple[int, int]:
    """(left, right) on the ring of all ranks."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % n
    ### END SOLUTION


check(neighbours)

# %% [markdown]
# When it passes, look at your own function on five ranks:

# %%
if check(neighbours):
    for rank, (left, right) in enumerate(run(neighbours, 5)):
        print(f"{left} → rank {rank} → {right}")

# %% [markdown]
# ## How far you are
#
# The course remembers which exercises you have passed, and `progress()` shows it; in a terminal,
# `python -m grader progress` does. Every `check` of a function of yours is entered, in this
# notebook or in any other. What passed once stays passed.

# %%
progress()

# %% [markdown]
# It is all in one small file, `.grader/progress.json` in the folder of the course. Delete it to
# begin again. (The *solved* edition of this chapter was made with progress switched off: its
# answers are not yours.)
#
# ## Groups inside the world
#
# Sometimes only some ranks should talk: the GPUs of one machine, say. `dist.new_group` makes a
# smaller process group. *Every* rank of the world has to call it, members or not, and in the same
# order; otherwise some wait for the others for ever. Later chapters use this.

# %%
def my_team():
    even = dist.new_group([0, 2])
    odd = dist.new_group([1, 3])
    mine = odd if dist.get_rank() % 2 else even
    return dist.get_process_group_ranks(mine), dist.get_rank(mine)


for rank, (team, place) in enumerate(run(my_team, 4)):
    print(f"rank {rank} of the world is rank {place} in the group of ranks {team}")

# %% [markdown]
# ## A map of the course
#
# Sending one message is the smallest step. On top of it people have built a handful of patterns
# that nearly all parallel programs consist of. They are called **collectives**, because a whole
# group takes part. You will write every one of them. "All-" in a name means that *everyone* gets
# the result.
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
# ## Summary
#
# - One program runs as $n$ processes. Each knows its **rank** and the **world size**.
# - Every process has its **own memory**. Nothing is shared; values are sent.
# - Processes meet in a **rendezvous** and form a **process group**; a launcher such as `torchrun`
#   tells each of them who it is.
# - A **backend** carries the bytes: gloo on CPUs, NCCL on GPUs, MPI on supercomputers.
# - Ranks on a ring: left is $(r-1) \bmod n$, right is $(r+1) \bmod n$.
#
# ### Check yourself
#
# <details><summary>A script sets <code>x = 5</code>, then rank 0 runs <code>x = 7</code>. What is x on rank 1?</summary>
#
# 5. Every process has its own x.
# </details>
#
# <details><summary>You start 8 processes. Which ranks exist?</summary>
#
# 0 to 7. There is no rank 8.
# </details>
#
# <details><summary>Only rank 0 calls <code>dist.new_group([0, 1])</code>. What happens?</summary>
#
# It waits for rank 1, which never comes. Groups are made by everyone together.
# </details>
#
# **Next:** [01 · Point to point](01_point_to_point.ipynb): the first messages.
