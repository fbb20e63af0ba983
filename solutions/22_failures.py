# %% [markdown]
# # 22 · Failures
#
# Llama 3 405B was trained on up to 16,384 GPUs. In 54 days of that run its authors
# [counted 466 interruptions](https://arxiv.org/abs/2407.21783), 419 of them unexpected: one every three hours.
# More than half of those came from the GPUs. A rank dies, and up to 16,383 others wait for it in an all-reduce.
# Six interruptions were of a worse kind: a chip had computed a **wrong** number and said nothing.
#
# **You will learn** what happens to the others when a rank dies, how to put a limit on every wait, how a run starts
# again from a checkpoint, perhaps on another number of ranks, and how checksums find the first wrong number. You will
# write a sum that survives the death of a rank, whichever rank it is and whenever it dies, and a search for the first
# call at which a rank went its own way.
#
# **You need** chapters [07](07_all_reduce.ipynb), [12](12_deadlock_clinic.ipynb) and [15](15_data_parallel.ipynb).
#
# **Time:** 2 hours, and 2 exercises.

# %%
import json
import os
import subprocess
import sys
import tempfile
import zlib
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

# %% [markdown]
# ## Who notices?
#
# Four processes all-reduce a tensor, and then rank 2 is killed. The other three call all-reduce again. They have
# passed `timeout=timedelta(seconds=3)` to `init_process_group`, so no wait lasts longer than that.
#
# These are plain processes without the grader. `torchrun` would spoil the experiment: it stops all ranks as soon as
# one fails.
#
# Gloo's all-reduce is a ring here: each rank sends to the next one and receives from the one before.
#
# **Predict:** when do ranks 0, 1 and 3 get an exception?
#
# <details><summary>All three at once</summary>
#
# No: ranks 1 and 3 have a connection to rank 2, and it breaks. Rank 0 exchanges nothing with it in this
# ring.
# </details>
#
# <details><summary>All three after 3 seconds</summary>
#
# No: the operating system closes the connections of a dead process, and its neighbours notice at once.
# </details>
#
# <details><summary>Ranks 1 and 3 at once, rank 0 after 3 seconds</summary>
#
# Yes: the neighbours lose a connection. Rank 0 waits for a neighbour that is alive and never sends.
# </details>

# %% tags=["nbval-ignore-output"]
def start_ranks(script, ranks=4):
    """Run a script once for each rank, and show what they print, in rank order."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w") as file:
            file.write(script)
        own = {"WORLD_SIZE": str(ranks), "STORE": f"file://{folder}/store"}
        processes = [
            subprocess.Popen(
                [sys.executable, path],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **own, "RANK": str(rank)},
            )
            for rank in range(ranks)
        ]
        said = [process.communicate()[0].strip() for process in processes]
    for rank, process in enumerate(processes):
        print(f"rank {rank}: {said[rank] or f'exit status {process.returncode}'}")
    return said


ONE_IS_KILLED = """
import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist

rank, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["STORE"], rank=rank, world_size=n,
                        timeout=timedelta(seconds=3))
x = torch.ones(4)
dist.all_reduce(x)
if rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
began = time.monotonic()
try:
    dist.all_reduce(x)
except RuntimeError as error:
    took = time.monotonic() - began
    print(f"{took:.1f} s, {str(error).split('] ')[-1][:60]}", flush=True)
time.sleep(max(0, 4 - (time.monotonic() - began)))  # nobody leaves before all have seen it
os._exit(0)
"""

said = start_ranks(ONE_IS_KILLED)

# %% tags=["claim"]
assert max(float(said[r].split()[0]) for r in (1, 3)) < 1.5, "its neighbours notice at once"
assert 2.5 < float(said[0].split()[0]), "only its time limit ends the wait of rank 0"

# %% [markdown]
# ![A ring of four ranks. Rank 2 is killed. Ranks 1 and 3, its neighbours, get an exception at once, because their connection to it breaks. Rank 0 exchanges no messages with rank 2; it waits until its time limit.](../imgs/who_notices.png)
#
# The operating system closes the connections of a dead process, so its neighbours notice at once. Rank 0 waits for a
# neighbour that is alive but will never send, and only its **time limit** ends that. If a switch fails instead of a
# process, nobody closes a connection, and all three wait.
#
# So a wait without a limit may never end, however well the others behave. You can set a limit in three places:
#
# | where | how | if you set none |
# |---|---|---|
# | all calls of a group | `init_process_group(timeout=...)`, `new_group(..., timeout=...)` | [30 minutes, 10 with NCCL](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group) |
# | one call | `dist.all_reduce(x, async_op=True).wait(timedelta(seconds=5))` | the group's |
# | the store | `store.wait([key], timedelta(seconds=5))` | the store's own |
#
# After a failure the group is useless. Some ranks have given up in the middle of an algorithm, and others may hold
# half of the result: what a failed all-reduce leaves in its tensor means nothing.
#
# ### The other backends
#
# - **NCCL** starts a kernel and returns, so when a rank dies there may be no call in Python that could raise an
#   exception. Instead a *watchdog* thread in each process watches the collectives in flight. When one fails, or
#   exceeds the group's limit, the watchdog ends the process, because later kernels would work on garbage.
#   [`TORCH_NCCL_ASYNC_ERROR_HANDLING`](https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html)
#   chooses what it does. By default the whole process goes down, and a launcher can start it again.
# - **MPI** ends the whole job: its error handler
#   [aborts by default](https://docs.open-mpi.org/en/v5.0.1/man-openmpi/man3/MPI_Comm_call_errhandler.3.html). An extension,
#   [ULFM](https://docs.open-mpi.org/en/v5.0.6/features/ulfm.html), turns a death into an error on the ranks that
#   need the dead one. `MPIX_Comm_shrink` then makes a communicator of the survivors.
#
# Neither can be shown here: NCCL needs GPUs, and `mpiexec` ends all ranks.
#
# ## A rank that dies at a moment of your choice
#
# From here on the grader does the killing. `run(..., kill=(2, 0))` kills rank 2 at its step 0, as it enters the
# function. Each later step is something that other ranks could learn of: an operation that begins, one that
# completes, an entry put into the store. So a death at a given step is the same every time. And a death between two
# steps needs no number of its own: nobody could tell it from one right after the first of them.
#
# **Predict:** here is an all-reduce that catches the exception. Four ranks, and rank 2 is killed as it enters. What do
# the survivors return?
#
# <details><summary>Ranks 0, 1 and 3 return that a rank is dead</summary>
#
# No: that would take an exception on each of them, and above, rank 0 got one only from its time limit.
# There is no limit here.
# </details>
#
# <details><summary>Nothing: all three of them wait</summary>
#
# Yes: the grader assumes that *nobody* hears of the death, and this call sets no limit.
# </details>
#
# <details><summary>Ranks 1 and 3 return that a rank is dead, rank 0 waits</summary>
#
# No: it could be so on gloo, but you cannot rely on it. The grader assumes that nobody hears of the
# death.
# </details>

# %%
def careful_sum(x):
    total = x.clone()
    try:
        dist.all_reduce(total)
    except RuntimeError:
        return "a rank is dead"
    return total


run(careful_sum, 4, torch.ones(2), kill=(2, 0), may_fail=True)

# %% [markdown]
# No exception is raised. The grader assumes the worst of every collective that a dead rank has not joined: that all are
# like rank 0 above. You cannot rely on an exception that reaches only some ranks, and only on some networks. With a
# limit, the survivors return:

# %%
def patient_sum(x, seconds):
    total = x.clone()
    work = dist.all_reduce(total, async_op=True)
    try:
        work.wait(timedelta(seconds=seconds))
    except RuntimeError:
        return "a rank is dead"
    return total


run(patient_sum, 4, torch.ones(2), 0.3, kill=(2, 0))

# %% [markdown]
# They know **that** a rank is missing. They do not know **which**, nor whether the others know. To find out they have
# to talk, and the group over which they talked is broken. They need something that outlives any of them.
#
# ## The store
#
# You have used one all along without seeing it. Before a process group exists, the ranks look up each other's
# addresses in a *store*: a table of keys and values that all of them can reach. It stays open afterwards.

# %%
def leave_a_note():
    store = dist.distributed_c10d._get_default_store()
    rank = dist.get_rank()
    store.set(f"note of {rank}", f"I was here, says {rank}")
    try:
        store.wait(["note of 1"], timedelta(seconds=0.3))
    except RuntimeError as error:
        return f"{type(error).__name__}: no note"
    return store.get("note of 1").decode()


print(run(leave_a_note, 3, kill=(1, 0)), end="\n\n")
print(run(leave_a_note, 3, kill=(1, 1)))

# %% [markdown]
# In the second run rank 1 died too, but one step later, and its note is still there. An entry in the store is there
# for everyone or for no one, while a message may have reached one rank and not the next. That is what makes the store
# so useful here.
#
# | call | what it does |
# |---|---|
# | `store.set(key, value)` | puts a text (or bytes) there |
# | `store.get(key)` | waits for the key, up to the store's own limit, and returns bytes |
# | `store.wait([key, ...], limit)` | waits until all keys are there, or raises `DistStoreError`, a `RuntimeError` |
# | `store.check([key, ...])` | says at once whether all are there |
# | `store.add(key, 1)` | adds to a number, and returns the sum |
# | `store.compare_set(key, expected, desired)` | sets the key to `desired` if its value is `expected`, and returns the value that it has now; an `expected` of `""` stands for "not there yet" |
#
# ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#distributed-key-value-store). No public
# function returns the default store, hence the underscore.)
#
# **Who keeps the store?** With `init_method="tcp://..."` it is rank 0, and the store dies with it. Under `torchrun` it
# is [the agent](https://github.com/pytorch/pytorch/pull/128096), the process that has started the ranks; here it is
# the grader. Both outlive the process of rank 0, though not the machine that they run on. And a store is slow: one
# process serves all ranks. It is for addresses, votes and a few numbers, not for gradients.
#
# Four ranks run this line, one after another, in any order:
#
#     store.compare_set("leader", "", str(dist.get_rank()))
#
# **Predict:** what does each of them get?
#
# <details><summary>Each gets its own number</summary>
#
# No: only the first one finds the key empty. The others find a value that is not the expected one, and
# leave it.
# </details>
#
# <details><summary>The first gets its own number, the others an exception</summary>
#
# No: a key that has another value is no error. The call returns that value.
# </details>
#
# <details><summary>All get the number of the first</summary>
#
# Yes: it returns the value that the key has *now*, whoever set it.
# </details>

# %%
def elect():
    store = dist.distributed_c10d._get_default_store()
    return store.compare_set("leader", "", str(dist.get_rank())).decode()


votes = list(run(elect, 4))
print("all agree:", len(set(votes)) == 1)

# %% [markdown]
# All get the same answer: the rank that came first. (It may be another one in the next run.) Every program
# that survives a failure has to *agree* on something, and a classical result says how hard that is. If a message or a
# process may be late by any amount, no deterministic program is sure to reach agreement once even one process may die
# ([Fischer, Lynch and Paterson](https://doi.org/10.1145/3149.214121), 1985): a dead process looks like a slow one. We
# get around that with two assumptions. The store does not die, so it can decide between proposals. And a rank that is
# later than `seconds` may **count** as dead.
#
# ## Exercise: the sum of the survivors
#
# Write `sum_of_survivors`. One rank may be killed at any moment after all have entered. Every survivor returns the
# sum over the survivors' `x`, and the list of their ranks, from the lowest to the highest. All survivors return the same.
#
# - A living rank that is at most `seconds` late has to be counted. One may be later, by up to twice `seconds`: you may
#   then leave it out, but all ranks have to agree on that, the late one included. Survivors that return different
#   lists, or sums that differ in a single bit, earn at most half the points.
# - Every survivor returns within five times `seconds`, counted from when the last rank enters; an answer that takes
#   longer also earns at most half the points.
# - A rank that died after its `x` was known may count as a survivor, if all agree on that and list it.
# - `dist.all_reduce`, `dist.new_group` and the default store are allowed. The store alone is enough.
# - Any rank may be the one that dies, even rank 0.

# %% tags=["nbval-ignore-output"]
def sum_of_survivors(x: torch.Tensor, seconds: float) -> tuple[torch.Tensor, list[int]]:
    """The sum of x over the ranks that survive, and the list of these ranks."""
    ### BEGIN SOLUTION
    store = dist.distributed_c10d._get_default_store()
    store.set(f"x of {dist.get_rank()}", json.dumps(x.tolist()))
    alive = []
    for rank in range(dist.get_world_size()):
        try:
            store.wait([f"x of {rank}"], timedelta(seconds=seconds))
            alive.append(rank)
        except RuntimeError:
            pass
    # another rank may have seen others: the first to propose a list decides
    alive = json.loads(store.compare_set("survivors", "", json.dumps(alive)))
    terms = [json.loads(store.get(f"x of {rank}")) for rank in alive]
    return torch.tensor(terms, dtype=x.dtype).sum(0), alive
    ### END SOLUTION


survives = bool(checked := check(sum_of_survivors))
checked

# %% [markdown]
# The check takes a while, most of it spent waiting for the dead. Watch your own function at work, once with everyone
# alive and once with rank 0 killed as it enters. Which lanes end early, and how long is the longest?

# %% tags=["nbval-ignore-output"]
if survives:
    print(run(sum_of_survivors, 4, torch.ones(2), 0.3))
    lost = run(sum_of_survivors, 4, torch.ones(2), 0.3, kill=(0, 0))
    print(lost)
    display(timeline(lost))

# %% [markdown]
# Only rank 0's lane ends early. If your function waits as ours does, the others last as long as one time limit, 0.3 s:
# that is the wait for rank 0, and afterwards everything else is there.
#
# What is the list good for? In data-parallel training the survivors divide the sum by the length of the list and go
# on: one batch is a little smaller, and that is all. [torchft](https://github.com/meta-pytorch/torchft) trains that way:
# whole *replica groups* may leave and join between two steps, and one that joins copies the weights of another. (With
# NCCL, survivors can make a group of their own by
# [`ncclCommShrink`](https://developer.nvidia.com/blog/enabling-fast-inference-and-resilient-training-with-nccl-2-27),
# in torch `dist.shrink_group`.)
#
# Where each rank holds a part of the model that no other has, as in chapters [16](16_scale_math.ipynb) and
# [17](17_sharded_matmul.ipynb), the survivors do not have a whole model. Then there is only one way: back to what was
# saved.
#
# ## Checkpoints
#
# A checkpoint that rank 0 writes alone is slow, and impossible where rank 0 cannot hold the whole model. With
# [`torch.distributed.checkpoint`](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html) **every rank writes
# its own part**, and a small file says which part is where.
#
# **Predict:** four ranks have written a matrix of ten rows. The job comes back with three ranks. What does each of them
# read?
#
# <details><summary>3 rows of its own file, and the last row is missing</summary>
#
# No: the small file says which row is where, so a rank can read from any file, and none is lost.
# </details>
#
# <details><summary>All ten rows, of which it keeps its own</summary>
#
# No: a rank reads only what its shard needs, and the small file says where that is.
# </details>
#
# <details><summary>4, 4 and 2 rows, each from two of the files</summary>
#
# Yes: the rows are cut anew for three ranks, and the new cuts fall inside the old parts.
# </details>

# %%
def launch(script, ranks, folder, *options, **environment):
    """Run a script with torchrun, and show the lines that its ranks print, sorted."""
    path = os.path.join(folder, "script.py")
    with open(path, "w") as file:
        file.write(script)
    with tempfile.TemporaryDirectory() as logs:
        # each rank prints into a file of its own, or their lines could mix
        torchrun = ["torch.distributed.run", "--standalone", "--redirects=1", f"--log-dir={logs}"]
        done = subprocess.run(
            [sys.executable, "-m", *torchrun, f"--nproc_per_node={ranks}", *options, path],
            capture_output=True,
            text=True,
            env={**os.environ, "FOLDER": folder, **environment},
            timeout=200,
        )
        printed = [line for file in Path(logs).rglob("stdout.log") for line in file.open()]
    print(*sorted(printed), sep="", end="")
    if done.returncode != 0:
        print(done.stderr[-2000:])


SAVE_OR_LOAD = """
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor, zeros

dist.init_process_group("gloo")
rank, n, folder = dist.get_rank(), dist.get_world_size(), os.environ["FOLDER"] + "/saved"
mesh = init_device_mesh("cpu", (n,))
whole = torch.arange(20.0).view(10, 2)
if not os.path.exists(folder + "/.metadata"):
    state = {"weight": distribute_tensor(whole, mesh, [Shard(0)]), "step": 7}
    dcp.save(state, checkpoint_id=folder)
    did = "writes"
else:
    # a tensor of this size and these ranks' shards: dcp.load fills it in place
    state = {"weight": zeros(10, 2, device_mesh=mesh, placements=[Shard(0)]), "step": 0}
    dcp.load(state, checkpoint_id=folder)
    did = "reads"
own = state["weight"].to_local()
right = torch.equal(state["weight"].full_tensor(), whole)
print(f"rank {rank} of {n} {did} {len(own)} rows, step {state['step']}, all right: {right}")
dist.destroy_process_group()
"""

with tempfile.TemporaryDirectory() as folder:
    launch(SAVE_OR_LOAD, 4, folder)
    print(*sorted(os.listdir(os.path.join(folder, "saved"))))
    launch(SAVE_OR_LOAD, 3, folder)

# %% [markdown]
# ![Ten rows of a matrix. Four ranks have written 3, 3, 3 and 1 of them. Three ranks read 4, 4 and 2. An arrow leads from each row as it was written to the same row as it is read.](../imgs/resharded.png)
#
# Rank 0 of three reads rows 0 to 3: three from the first file, one from the second. Nobody had to say how many ranks
# wrote them: that is [load-time resharding](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html).
# `.metadata` is written **last**. A folder without it is a checkpoint that was never finished, and must not be loaded.
#
# ## Restarts
#
# `torchrun --max-restarts=1` watches the ranks. When one fails, it
# [restarts all of them](https://docs.pytorch.org/docs/stable/elastic/run.html), at most once. It has to be all of them,
# because those that live are stuck in a broken group. They run the script again from its first line, so the script has
# to look for a checkpoint. (Large jobs keep spare nodes, one of which takes the place of a broken node.)
#
# Two ranks train for six steps, 0 to 5, and write a checkpoint after every second one: after steps 1, 3 and 5. In the
# first attempt, rank 1 kills itself in step 4.
#
# **Predict:** which steps does each attempt do?
#
# <details><summary>Steps 0 to 4, then step 5</summary>
#
# No: step 4 ends with an all-reduce that rank 1 never joined, so it was not done.
# </details>
#
# <details><summary>Steps 0 to 3, then steps 4 and 5</summary>
#
# Yes: step 4 was never finished, and the checkpoint of step 3 is complete.
# </details>
#
# <details><summary>Steps 0 to 3, then steps 0 to 5</summary>
#
# No: the script starts from its first line, but there it looks for a checkpoint and finds one.
# </details>

# %%
RESTARTED = """
import os
import signal
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

warnings.filterwarnings("ignore")
dist.init_process_group("gloo")
rank, folder = dist.get_rank(), os.environ["FOLDER"]
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
done, first = [], 0
complete = [step for step in range(6) if os.path.exists(f"{folder}/step{step}/.metadata")]
if complete:
    state = {"model": model.state_dict(), "step": 0}
    dcp.load(state, checkpoint_id=f"{folder}/step{complete[-1]}")
    model.load_state_dict(state["model"])
    first = state["step"] + 1

for step in range(first, 6):
    torch.manual_seed(10 * step + rank)  # the data of this step, the same in each attempt
    optimizer.zero_grad()
    model(torch.randn(4, 2)).square().mean().backward()
    if (attempt, rank, str(step)) == (0, 1, os.environ["DIES_IN"]):
        os.kill(os.getpid(), signal.SIGKILL)
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= 2
    optimizer.step()
    done.append(step)
    if rank == 0:
        print(f"attempt {attempt}: step {step} done", flush=True)
    if step % 2:
        dcp.save({"model": model.state_dict(), "step": step}, checkpoint_id=f"{folder}/step{step}")
if rank == 0:
    print("weights at the end:", [round(w, 4) for w in model.weight.flatten().tolist()])
dist.destroy_process_group()
"""

own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
with tempfile.TemporaryDirectory() as folder:
    launch(RESTARTED, 2, folder, "--max-restarts=1", DIES_IN="4", **own_store)
with tempfile.TemporaryDirectory() as folder:
    print("and for comparison, without a death:")
    launch(RESTARTED, 2, folder, DIES_IN="never")

# %% [markdown]
# ![Attempt 0 does steps 0 to 3 and writes a checkpoint after steps 1 and 3. In step 4 a rank dies, and the unfinished step is lost. Attempt 1 loads the checkpoint of step 3, does steps 4 and 5, and writes a checkpoint after step 5.](../imgs/lost_work.png)
#
# The weights at the end are the same as without a death. Had rank 1 died in step 3, before that checkpoint, the second
# attempt would have begun with step 2 and done it again.
#
# The weights and the step number are all that plain SGD needs here, where the data depend on that number alone. Other
# programs also save the state of the optimizer, of its schedule, of random generators and of the data loader.
#
# And why the variable `TORCH_DISABLE_SHARE_RDZV_TCP_STORE`? A store that outlives the ranks also keeps their old
# addresses. Without the variable, a restarted rank sometimes
# [finds those of the first attempt](https://github.com/pytorch/pytorch/issues/135712), and tries to connect to the dead.
# With it, rank 0 keeps a new store in each attempt. (The grader avoids the same trap: what your function puts into the
# store is forgotten before the next case.)
#
# How often should you save? Say that a checkpoint costs $C$ seconds and that a failure happens every $M$ seconds on
# average, with $C$ much smaller than $M$. With $T$ seconds between checkpoints, a share $C/T$ of the time goes into
# writing, and a failure throws away $T/2$ on average, a share $T/(2M)$. (The restart itself also takes time, whatever
# $T$ is.) The sum is least at $T = \sqrt{2CM}$
# ([Young](https://cacm.acm.org/research/a-first-order-approximation-to-the-optimum-checkpoint-interval), 1974). What
# counts is the time for which training stops:
# [`async_save`](https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html) copies the state to
# the host's memory and writes it while training goes on.
#
# What is $T$ for a failure every three hours and a checkpoint that takes 30 seconds, and what share of the time is lost?

# %%
cost, between = 30.0, 3 * 3600.0
best = (2 * cost * between) ** 0.5
for period in (60, 300, best, 3600):
    print(f"every {period:5.0f} s: {cost / period + period / (2 * between):6.1%} lost")

# %% [markdown]
# ## Which call was the first?
#
# A rank that crashes leaves an error. A rank that takes a wrong branch leaves a job that hangs or, worse, one that goes
# on with calls that do not belong together. Every rank has made thousands of calls, and you want the **first** that
# differs. PyTorch can keep the last calls of each rank in its *flight recorder* (`TORCH_FR_BUFFER_SIZE` says how many);
# with NCCL and `TORCH_NCCL_DUMP_ON_TIMEOUT=1` each rank
# [writes them to a file](https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html) when a collective
# takes too long. Gloo's calls are also recorded, so here it is with four real ranks, one of which skips a call. The
# script knows which. Find it in the records instead, as you would have to in a real job.

# %% tags=["nbval-ignore-output"]
ONE_SKIPS_A_CALL = """
import json
import os
import pickle
from datetime import timedelta

os.environ["TORCH_FR_BUFFER_SIZE"] = "100"

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

dist.init_process_group("gloo")
group = dist.new_group(timeout=timedelta(seconds=2))
rank = dist.get_rank()
gathered = [torch.empty(2) for _ in range(4)]
try:
    for step in range(2):
        dist.all_reduce(torch.ones(6), group=group)
        if (rank, step) != (2, 1):
            dist.broadcast(torch.ones(3), src=0, group=group)
        dist.all_gather(gathered, torch.ones(2), group=group)
    dist.all_reduce(torch.ones(1), group=group)
except RuntimeError:
    pass  # the time limit, or a connection that another rank has closed
calls = []
for entry in pickle.loads(_dump_fr_trace())["entries"]:
    sizes = entry["input_sizes"] or [[0]]
    calls.append((entry["profiling_name"].removeprefix("gloo:"), torch.Size(sizes[0]).numel()))
with open(f"{os.environ['FOLDER']}/rank{rank}.json", "w") as file:
    json.dump(calls, file)
os._exit(0)
"""


def recorded(script, ranks):
    """The calls of each rank, as (operation, elements)."""
    with tempfile.TemporaryDirectory() as folder:
        launch(script, ranks, folder)
        records = []
        for rank in range(ranks):
            with open(os.path.join(folder, f"rank{rank}.json")) as file:
                records.append([tuple(call) for call in json.load(file)])
    return records


records = recorded(ONE_SKIPS_A_CALL, 4)
for r, calls in enumerate(records):
    print(f"rank {r}:", *(f"{name} {elements}" for name, elements in calls), sep="  ")

# %% tags=["claim"]
assert [r for r, calls in enumerate(records) if calls[-1][0] == "broadcast"] == [0], (
    "go by the last calls alone, and you suspect rank 0, the only one that is still in a broadcast"
)

# %% [markdown]
# Read it column by column before you write anything: at which position do the records differ first, and which rank is to
# blame? What would you have said if you had seen only the last call of each rank?
#
# (Entries of the recorder have more fields: `state`, times, the stack, and `collective_seq_id`, the position among the
# calls of a group. The [tutorial](https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html) describes
# the format, and the analyzer that does on thousands of dumps what you are going to write.)
#
# ## Exercise: the first divergence
#
# Write `first_divergence`. `records[r]` holds the calls of rank r in order, each a pair (operation, elements). Return
# the first position at which ranks differ, and the list of the ranks that differ there **from the norm**. The norm is the
# most frequent call at that position; of calls that are equally frequent, the one that the lowest rank makes. The end of
# a list does not count as a call: a rank whose list has ended always differs from those that go on, even where most
# lists have ended. If all agree, return `None`.

# %%
def first_divergence(records: list[list[tuple[str, int]]]) -> tuple[int, list[int]] | None:
    """The first position at which the records differ, and the ranks that differ there."""
    ### BEGIN SOLUTION
    for position in range(max(map(len, records), default=0)):
        calls = [one[position] if position < len(one) else None for one in records]
        made = [call for call in calls if call is not None]
        norm = max(made, key=made.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None
    ### END SOLUTION


reads = bool(checked := check(first_divergence))
checked

# %% [markdown]
# Now try it on the real records.

# %%
if reads:
    print(first_divergence(records))

# %% [markdown]
# It is rank 2, at position 4. Go by the last calls alone, and you suspect rank 0, the only one that is still in a
# broadcast. It is innocent: it waits there for rank 2, which has gone on without it:
#
# ![Records of four ranks in rows. Up to position 3 the columns agree. At position 4, framed, ranks 0, 1 and 3 call a broadcast of 3 elements and rank 2 calls an all-gather of 2. The records of ranks 0 and 2 end there; ranks 1 and 3 go on to the all-gather at position 5.](../imgs/column_of_calls.png)
#
# ## Errors that say nothing
#
# Now the worst kind. Nothing crashes, nothing hangs, the loss goes down, and one number is wrong. Google expected
# chips that silently compute wrong numbers to disturb the training of Gemini
# [every week or two](https://arxiv.org/abs/2312.11805). A mistake in the program can do the same. Both are found in the
# same way: compute a **checksum** of every tensor, on every rank, at every step, and compare.
#
# Compare with what? In data-parallel training, weights and averaged gradients have to be equal on all ranks; checking
# that needs no second run. Gradients *before* the average differ by nature, since each rank has its own data. For them,
# and for mistakes that all ranks make alike, you need a run that is known to be right, with the same seeds, and a program
# that computes the same bits every time. Here is a training run of three steps on four ranks with two tensors, in which
# six things can go wrong.

# %%
def checksum(tensor):
    return zlib.crc32(tensor.numpy().tobytes())


def flip_a_bit(tensor):
    tensor.view(torch.int32)[0] ^= 1 << 20


def training(fault=""):
    """Three steps on this rank; the checksum of each tensor at each stage, in order."""
    rank, n = dist.get_rank(), dist.get_world_size()
    seed = 5 if (fault, rank) == ("own weights", 2) else 0
    generator = torch.Generator().manual_seed(seed)
    weights = {name: torch.randn(4, generator=generator) for name in ("w", "b")}
    log, last = [], {}

    def note(step, stage, tensors):
        log.extend((step, stage, name, checksum(tensor)) for name, tensor in tensors.items())

    for step in range(3):
        note(step, "weights", weights)
        data_seed = 100 * step + (0 if (fault, rank) == ("another seed", 3) else rank)
        x = torch.randn(4, generator=torch.Generator().manual_seed(data_seed))
        gradients = {"w": weights["w"] * x * x, "b": weights["b"] + x}
        if (fault, rank, step) == ("stale buffer", 1, 1):
            gradients["w"] = last["w"]
        last = {name: gradient.clone() for name, gradient in gradients.items()}
        note(step, "gradients", gradients)
        for name, gradient in gradients.items():
            dist.all_reduce(gradient)
            if (fault, name) == ("reduced twice", "b"):
                dist.all_reduce(gradient)
            gradient /= n
            if fault == "divided twice" and step > 0:
                gradient /= n
        if (fault, rank, step) == ("flipped bit", 0, 1):
            flip_a_bit(gradients["b"])
        note(step, "averages", gradients)
        for name, weight in weights.items():
            weight -= 0.1 * gradients[name]
    return log


FAULTS = ["own weights", "reduced twice", "stale buffer", "divided twice", "another seed", "flipped bit"]
FAULTS.sort(key=lambda fault: zlib.crc32(fault.encode()))  # an order that nobody can read off
healthy = list(run(training, 4))
logs = {letter: list(run(training, 4, fault)) for letter, fault in zip("ABCDEF", FAULTS)}

# %% [markdown]
# Each block below is one faulty run beside the healthy one. A row is a stage of a step, a group of four is a tensor, and
# within it there is a mark for each of ranks 0 to 3: `·` if the checksum is that of the healthy run, `✗` if not. The
# faults have been shuffled.

# %%
def block(log):
    """The rows of a run, each with a mark per tensor and rank."""
    rows = []
    for i in range(0, len(healthy[0]), 2):
        step, stage, *_ = healthy[0][i]
        marks = [
            "".join("·" if log[r][j] == healthy[r][j] else "✗" for r in range(4)) for j in (i, i + 1)
        ]
        rows.append(f"{step} {stage:9} {marks[0]} {marks[1]}")
    return rows


for letters in ("ABC", "DEF"):
    print("     ".join(f"{letter}{' ' * 10} w    b   " for letter in letters))
    for row in zip(*(block(logs[letter]) for letter in letters)):
        print("     ".join(row))
    print()

# %% [markdown]
# For each letter, look for the first step, stage, tensor and rank that is wrong. Only the **first** ✗ of a block tells
# you anything: after the next average, that tensor is wrong everywhere.
#
# **Predict:** which of the six faults is E?
#
# <details><summary>A stale buffer: one tensor of one rank is wrong</summary>
#
# No: a stale buffer is a wrong *gradient*, and goes into the average. Here the gradients are right, and
# one rank's average is wrong.
# </details>
#
# <details><summary>A flipped bit: one rank's average is wrong, and no gradient</summary>
#
# Yes: all ranks got the same average, and then one of them changed it.
# </details>
#
# <details><summary>A tensor that is reduced twice: an average is wrong</summary>
#
# No: a second reduction changes the average of all ranks alike. Here it is that of rank 0 alone.
# </details>
#
# With thousands of ranks nobody reads such blocks. This function does, with the same idea as your `first_divergence`, and
# names all six.

# %%
def first_wrong(healthy, log):
    """The first entry that differs, as (step, stage, tensor), and the ranks at which it does."""
    for i, (step, stage, tensor, _) in enumerate(healthy[0]):
        ranks = [r for r in range(len(healthy)) if log[r][i] != healthy[r][i]]
        if ranks:
            return (step, stage, tensor), ranks


for letter, fault in zip("ABCDEF", FAULTS):
    (step, stage, tensor), ranks = first_wrong(healthy, logs[letter])
    print(f"{letter}: step {step}, {stage} {tensor}, ranks {ranks}: {fault}")

# %% [markdown]
# - In **A**, **B**, **D** and **E** one rank differs first. That is the rank to look at: its memory, its seed, its
#   buffers.
# - In **C** and **F** all four differ at once. As you will see below, they differ *alike*: the ranks agree with each
#   other. No comparison of ranks finds that. Only a run that is known to be right does, or a test as in chapter
#   [15](15_data_parallel.ipynb): the average of four ranks has to be the gradient of the whole batch.
# - **E** is what a failing chip may look like. The flipped bit shows in the *averages* of one rank, which should be equal
#   everywhere. Two small all-reduces find it at once: the MIN and the MAX of the checksums have to be the same.
#
# **Predict:** which of the six would that check have found?
#
# <details><summary>All six, each at the step of its first ✗</summary>
#
# No: it compares ranks with each other, and most of these faults leave the ranks equal.
# </details>
#
# <details><summary>All but C and F, where the ranks agree</summary>
#
# No: A and D begin on one rank, but in its gradient. After the average all ranks have the same wrong
# numbers.
# </details>
#
# <details><summary>Only B and E</summary>
#
# Yes: there the weights or the averages of one rank differ from those of the others.
# </details>

# %%
def found_by_comparing_ranks(log):
    """The first step at which weights or averages are not the same on all ranks."""
    for entries in zip(*log):
        step, stage, *_ = entries[0]
        if stage != "gradients" and len(set(entries)) > 1:
            return f"step {step}, {stage}"
    return "never"


for letter, fault in zip("ABCDEF", FAULTS):
    print(f"{letter} ({fault}): {found_by_comparing_ranks(logs[letter])}")

# %% [markdown]
# A stale buffer and a wrong seed disappear in the average: one rank's gradient is wrong, and then all ranks have the same
# wrong mean. A chip that fails *before* the average hides in the same way, until a step is replayed on another chip. So
# keep checksums of what goes **in**, not only of what comes out.
#
# ## Summary
#
# - When a process dies, its neighbours in gloo's algorithm get an error, and the others wait. With NCCL all may wait.
#   Every wait needs a time limit.
# - After that the group is broken. Survivors agree through something that outlives them: the store.
# - To agree means that all adopt one proposal, whoever made it. `compare_set` does it in one step.
# - A dead rank looks like a slow one; the limit decides which it counts as.
# - A checkpoint is written by all ranks and can be read by any number of them. Without its last file it is not complete.
# - `torchrun` restarts all ranks; the script has to find its place again.
# - When a job has gone wrong, look for the **first** difference: of calls, in the flight recorder; of numbers, by
#   checksums.
# - Ranks that agree may all be wrong.
#
# Llama 3 was interrupted every three hours, and still
# [trained for more than 90 % of the time](https://arxiv.org/abs/2407.21783). Its authors name tools that you have seen
# here: fast checkpoints and restarts, and PyTorch's flight recorder.
#
# ### Check yourself
#
# <details><summary>Rank 0 collects everyone's x, adds them up, and puts the sum into the store. All waits have limits. What is wrong?</summary>
#
# Rank 0 may be the one that dies. Then the others know that it is dead, and have no sum. Any rank has to be able to
# finish the job.
# </details>
#
# <details><summary>Each rank sends its x to each of the others, and sums what arrives in time. Why may two survivors return different sums?</summary>
#
# The rank that died may have sent to one of them and not to the other. A message that reaches one rank need not reach
# all; an entry in the store is there for all.
# </details>
#
# <details><summary>All ranks have the same weights after every step. Is the training right?</summary>
#
# Not necessarily. Four of the six faults above leave the same weights on all ranks: they agree, on wrong numbers.
# </details>
#
# <details><summary>Why does torchrun restart ranks that have not failed?</summary>
#
# Their process group has lost a member, and cannot take a new one in its place. They would wait for the dead rank in the
# next collective.
# </details>
#
# **Next:** [23 · ZeRO](23_zero.ipynb), where each rank keeps only a part of the optimizer's state, and survivors alone
# could not go on.
