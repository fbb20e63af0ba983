# %% [markdown]
# # 19 · Backends
#
# You move a program that ran on your laptop with gloo to a machine with eight GPUs, and all eight
# processes crowd onto the first one. Another program has run on MPI for a year, and hangs when its
# messages grow. The calls are the same everywhere. What carries them out is not.
#
# **You will learn** what is below `torch.distributed`: gloo, MPI and NCCL, what each is for, who starts
# its ranks, and how each can trip you up. You will run one program on several of them. At the end there is
# a **project**: you train a model whose gradients are averaged by nothing but your own code.
#
# **You need** chapters [11](11_ring_all_reduce.ipynb) and [15](15_data_parallel.ipynb), with your
# answers in them, and [18](18_profiling.ipynb) for the word *stream*. For MPI you need two more
# packages, `mpi4py` and `mpich`; for NCCL an NVIDIA GPU. `python -m grader doctor` says what you have.
# Cells that lack something say so, and the rest still works.
#
# **Time:** 2 hours, and 2 exercises; the last 50 minutes are for the project.

# %%
import inspect
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch import nn

from grader import (
    backends, check, hint, mark, predict, progress, replay, reset, run, simulate, timeline,
)
from grader.submission.submission import Submission

# %% [markdown]
# ## Three libraries, one interface
#
# `torch.distributed` does not move a single byte. It hands each call to a **process group**, and behind
# that there is a library, the **backend**.
#
# ![Three stacks side by side. gloo: torchrun starts the ranks, messages go by TCP, tensors are on the CPU. MPI: mpiexec starts the ranks, messages go by shared memory or the cluster's network, tensors are on the CPU. NCCL: torchrun starts the ranks, messages go by NVLink, PCIe, InfiniBand or TCP, and each rank's tensors are on a GPU of its own. Your program and torch.distributed are the same in all three](../imgs/backend_stacks.png)
#
# | | what it is | when to use it |
# |---|---|---|
# | **gloo** | a small library made for machine learning, part of every PyTorch | training on CPUs; control messages beside NCCL; this course |
# | **MPI** | a *standard* with several implementations: MPICH, Open MPI, those of vendors | programs written for MPI; clusters of CPUs, where vendors tune it for their networks |
# | **NCCL** | NVIDIA's collectives for GPUs | training on NVIDIA GPUs: [the documentation's rule of thumb](https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use) |
#
# On AMD GPUs,
# [RCCL](https://rocm.docs.amd.com/projects/rccl/en/latest/what-is-rccl.html)
# ([source](https://github.com/ROCm/rccl)) plays the part of NCCL. PyTorch for AMD [calls it `nccl` all the
# same](https://docs.pytorch.org/docs/stable/notes/hip.html#torch-distributed-backends), so what this
# chapter says of your program holds there too.
#
# Which of them can you use on your machine? And why not the others?

# %% tags=["nbval-ignore-output"]
for name, why_not in backends().items():
    print(f"{name:4}", why_not or "can be used here")

# %% [markdown]
# ### The MPI that is not there
#
# `torch.distributed` knows the name `"mpi"`. What happens if you request it, as rank 5 of 9?

# %%
print("gloo in this torch:", dist.is_gloo_available())
print("MPI in this torch: ", dist.is_mpi_available())
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    try:
        dist.init_process_group("mpi", rank=5, world_size=9)
    except RuntimeError as error:
        print("RuntimeError:", error)
for warning in warned:
    print("Warning:", warning.message)

# %% [markdown]
# PyTorch's own MPI backend [has to be built from
# source](https://docs.pytorch.org/docs/stable/distributed.html#backends-that-come-with-pytorch), on a
# machine with an MPI. What you install with `pip` does not have it, as you see. The warning adds that
# MPI, and not your call, would set rank and world size.
#
# So the MPI worlds of this course do *not* use that backend. They use a process group of our own, which
# hands each message to MPI through [mpi4py](https://mpi4py.readthedocs.io). Your program sees no
# difference: `dist.get_backend()` says `mpi`, an `mpiexec` tells the ranks who they are, and MPI
# carries the bytes.
#
# ## One program, three launchers
#
# Four things have to fit together:
#
# - a **launcher** starts $n$ processes and tells each who it is;
# - **rank** and **world size** are what it tells them;
# - at the **rendezvous** the processes find each other: at a host and port, or in a file;
# - `init_process_group(backend)` takes all that and makes the process group.
#
# `torchrun --nproc_per_node=2` sets the variables [`RANK`, `LOCAL_RANK`,
# `WORLD_SIZE`](https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables) and a few
# more. `mpiexec -n 2` has other names for the same things, and every MPI has its own. Here is a program
# that does not care who started it.

# %%
PROGRAM = """
import os
import sys

import torch
import torch.distributed as dist

NAMES = {  # of rank and world size
    "torchrun": ("RANK", "WORLD_SIZE"),
    "MPICH's mpiexec": ("PMI_RANK", "PMI_SIZE"),
    "Open MPI's mpiexec": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
}
launcher = next(launcher for launcher, (name, _) in NAMES.items() if name in os.environ)
rank, size = (int(os.environ[name]) for name in NAMES[launcher])

dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
x = torch.tensor([rank + 1.0])
dist.all_reduce(x)
# one write a line: the lines of two ranks cannot mix
sys.stdout.write(f"rank {rank} of {size}, by {launcher}: the sum is {x.item()}\\n")
dist.destroy_process_group()
"""


def launch(launcher, program):
    """Write a program to a file, start it with a launcher, and print what its ranks say."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(program)
        words = [*launcher, str(path), str(Path(folder, "rendezvous"))]
        done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    print(done.stdout if done.returncode == 0 else done.stderr, end="")


torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]

# %% [markdown]
# What will the two ranks say, and in which order?

# %% tags=["nbval-ignore-output"]
launch(torchrun, PROGRAM)

# %% [markdown]
# Each prints when it is done, so the order can change from run to run. Now MPI's launcher starts the
# same file. The backend is still gloo: **launcher and backend are two choices.** (MPI as a backend is
# the exception. It has to be started by its own launcher, because only that one knows the rendezvous.)

# %% tags=["nbval-ignore-output"]
here = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
mpiexec = shutil.which("mpiexec", path=os.pathsep.join(here))
can_mpi = not backends()["mpi"]

if can_mpi:
    launch([mpiexec, "-n", "2", sys.executable], PROGRAM)
else:
    print(backends()["mpi"])

# %% [markdown]
# The third launcher is `run`, which you have used all along. It starts the ranks, tells them who they
# are, and calls `init_process_group` before your function begins.

# %%
def total():
    x = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(x)
    return f"rank {dist.get_rank()} of {dist.get_world_size()}: the sum is {x.item()}, on {dist.get_backend()}"


for line in run(total, 2):
    print(line)

# %% [markdown]
# ## Which backend, which device
#
# A program that should run everywhere begins with two decisions: which backend, and which device? You write a
# function for each, and then let `torchrun` start a program that uses them.
#
# ## Exercise: pick_backend
#
# Return the name of the backend for tensors on devices of this type: `"nccl"` for `"cuda"`, `"gloo"`
# for `"cpu"`. There are many more types of devices, and we have no backend for them: for every other
# `device_type` raise a `ValueError`.

# %%
def pick_backend(device_type: str) -> str:
    """The backend for tensors on devices of this type."""
    ### BEGIN SOLUTION
    if device_type == "cuda":
        return "nccl"
    if device_type == "cpu":
        return "gloo"
    raise ValueError(f"no backend for device type {device_type!r}; there are cuda and cpu")
    ### END SOLUTION


check(pick_backend)

# %% [markdown]
# PyTorch has this function too: `dist.get_default_backend_for_device`, which also knows `xccl`, for Intel's
# GPUs. `init_process_group()` without a backend [has the same
# defaults](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group).
#
# The device takes a little more thought. Two machines with four GPUs each make eight ranks:
#
# | machine | A | A | A | A | B | B | B | B |
# |---|---|---|---|---|---|---|---|---|
# | rank | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# | local rank | 0 | 1 | 2 | 3 | 0 | 1 | 2 | 3 |
#
# What does rank 5 get from `torch.device("cuda", rank)`? A device that does not exist: each
# machine counts its GPUs from 0. The **local rank** counts the ranks of one machine in the same way.
#
# ## Exercise: device_for
#
# Return the `torch.device` on which a rank of this `backend` has its tensors. For `"nccl"` it is the
# GPU with the number `local_rank`, so that each rank has its own; for `"gloo"` and `"mpi"` it is the
# CPU. For every other `backend` raise a `ValueError`.
#
# The function only *names* the device. That works on a machine without GPUs too, so do not ask whether
# the device is there.

# %%
def device_for(local_rank: int, backend: str) -> torch.device:
    """The device that has the tensors of a rank."""
    ### BEGIN SOLUTION
    if backend == "nccl":
        return torch.device("cuda", local_rank)
    if backend in ("gloo", "mpi"):
        return torch.device("cpu")
    raise ValueError(f"unknown backend {backend!r}; there are nccl, gloo and mpi")
    ### END SOLUTION


devices_known = check(device_for)
devices_known

# %% [markdown]
# ### A backend for each type of device
#
# A training program has tensors on its GPU, but also some on the CPU: a number for the log, the pieces of a
# pickled object. NCCL takes none of those. So a group may have *several* backends, one for each type of device,
# and each tensor goes to the one for its device: `"cpu:gloo,cuda:nccl"`. Here is the beginning of such a program, with
# both of your functions in it.

# %% tags=["nbval-ignore-output"]
BEGINNING = """
local_rank, ranks_here = (int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
kinds = ["cpu", "cuda"] if torch.cuda.device_count() >= ranks_here else ["cpu"]
device = device_for(local_rank, pick_backend(kinds[-1]))
if device.type == "cuda":
    torch.cuda.set_device(device)
dist.init_process_group(",".join(f"{kind}:{pick_backend(kind)}" for kind in kinds))

said = f"rank {dist.get_rank()}, backends {dist.get_backend_config()}:"
for place in dict.fromkeys([torch.device("cpu"), device]):
    x = torch.tensor([dist.get_rank() + 1.0], device=place)
    dist.all_reduce(x)
    said += f" the sum is {x.item()} on {place}"
sys.stdout.write(said + "\\n")
dist.destroy_process_group()
"""

if check(pick_backend) and devices_known:
    imports = "import os\nimport sys\nimport torch\nimport torch.distributed as dist"
    yours = [inspect.getsource(function) for function in (pick_backend, device_for)]
    launch(torchrun, "\n".join([imports, *yours, BEGINNING]))

# %% [markdown]
# The same function also runs on every backend that you have, with the tensors where they belong.
# `run` takes a `backend` too. (All ranks are on one machine here, so rank and local rank are the same.
# Your function gives every rank a GPU of its own, so on NCCL we start only as many ranks as there are
# GPUs.)

# %% tags=["nbval-ignore-output"]
def total_on_device(device_of):
    device = device_of(dist.get_rank(), dist.get_backend())
    x = torch.tensor([dist.get_rank() + 1.0], device=device)
    dist.all_reduce(x)
    return f"{dist.get_backend()}: {x.item()} on {x.device}"


def ranks_on(backend, most):
    """As many ranks as can be used on this backend here, but not more than `most`."""
    if backend == "nccl":
        return min(most, torch.cuda.device_count())
    return most


if devices_known:
    for name, why_not in backends().items():
        if why_not:
            print(f"{name:4} {why_not}")
        else:
            print(f"{name:4}", list(run(total_on_device, ranks_on(name, 2), device_for, backend=name)))

# %% [markdown]
# ## Who can do what
#
# The documentation has [a table](https://docs.pytorch.org/docs/stable/distributed.html#backends) of the
# operations that each backend offers for CPU and for GPU tensors. It does not say for which **dtypes**.
# So we make our own table by running every operation on every dtype, on two ranks. A `✓` means that the
# *result* was right too.
#
# Look for the gaps: does every operation take `bool`, and complex numbers?
#
# **Predict:** what does gloo make of the *average* (`ReduceOp.AVG`) of integers?
#
# <details><summary>The average, as a floating-point number</summary>
#
# No: `all_reduce` writes into the tensor that it was given, and that holds integers.
# </details>
#
# <details><summary>The average, rounded down</summary>
#
# No: gloo would have to decide how to round, and nothing in the call says how.
# </details>
#
# <details><summary>An exception</summary>
#
# Yes: an average of integers is usually not an integer, and gloo refuses to round it.
# </details>

# %%
DTYPES = ("float32", "int64", "bfloat16", "bool", "complex64")


def attempts(rank, mine, theirs, whole):
    """Every operation for two ranks. Each returns its result, and what is expected."""
    peer = 1 - rank
    ordered = [mine, theirs] if rank == 0 else [theirs, mine]
    empty = torch.empty_like(mine)

    def send_recv():
        if rank == 0:
            dist.send(mine, peer)
            return mine, mine
        dist.recv(empty, peer)
        return empty, theirs

    def broadcast():
        x = mine.clone()
        dist.broadcast(x, 1)
        return x, ordered[1]

    def all_reduce_sum():
        x = mine.clone()
        dist.all_reduce(x)
        return x, whole

    def all_reduce_avg():
        x = mine.clone()
        dist.all_reduce(x, dist.ReduceOp.AVG)
        return x, whole / 2

    def reduce():
        x = mine.clone()
        dist.reduce(x, 0)
        return (x, whole) if rank == 0 else (mine, mine)  # elsewhere it may hold anything

    def all_gather():
        into = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(into, mine)
        return torch.stack(into), torch.stack(ordered)

    def gather():
        into = [torch.empty_like(mine) for _ in range(2)]
        dist.gather(mine, into if rank == 0 else None, 0)
        return (torch.stack(into), torch.stack(ordered)) if rank == 0 else (mine, mine)

    def scatter():
        dist.scatter(empty, ordered if rank == 0 else None, 0)
        return empty, mine

    def reduce_scatter():
        dist.reduce_scatter(empty, [mine.clone(), mine.clone()])
        return empty, whole

    def all_to_all():
        into = [torch.empty_like(mine) for _ in range(2)]
        dist.all_to_all(into, [mine.clone(), mine.clone()])
        return torch.stack(into), torch.stack(ordered)

    def barrier():
        dist.barrier()
        return mine, mine

    return (
        send_recv, broadcast, all_reduce_sum, all_reduce_avg, reduce,
        all_gather, gather, scatter, reduce_scatter, all_to_all, barrier,
    )


def try_all(device, known=()):
    """What became of each operation and dtype that is not known yet."""
    rank, found = dist.get_rank(), {}
    if device == "cuda":
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    for name in DTYPES:
        mine, theirs = (
            torch.tensor([r, 1, 0, r], device=device).to(getattr(torch, name)) for r in (rank, 1 - rank)
        )
        for operation in attempts(rank, mine, theirs, mine + theirs):
            what = f"{operation.__name__} {name}"
            if what in known:
                continue
            mark(what)  # if the world ends here, the record tells where
            try:
                result, expected = operation()
                found[what] = "✓" if torch.equal(result, expected) else "wrong result"
            except (RuntimeError, ValueError, TypeError) as error:
                found[what] = str(error).splitlines()[-1]  # MPI's say what is wrong at their end
    return found

# %% [markdown]
# If a backend does not take a dtype, it usually raises an exception on every rank, and the next
# operation can be tried. But there is no guarantee: an operation may end the process, or be refused on
# one rank while the other waits forever. So each world has a time limit. If it ends early, its last
# `mark` says which operation that was, and a new world goes on with the next one.

# %% tags=["nbval-ignore-output"]
def table(backend, device="cpu"):
    """Print what works on a backend, and what is said where it does not."""
    known = {}
    while True:
        ran = run(try_all, 2, device, list(known), backend=backend, seconds=40, may_fail=True)
        if ran.failure is None:
            break
        begun = min(ran.trace.marks, key=len)  # of the rank that got least far
        if not begun:
            print(f"{backend}: {ran.failure.message}")
            return
        known[begun[-1].text] = f"the world ended: {ran.failure.diagnosis}"
    # a rank that only sends notices nothing: what one rank complains of counts
    for rank in range(2):
        known |= {what: said for what, said in ran[rank].items() if known.get(what, "✓") == "✓"}
    operations = list(dict.fromkeys(what.split()[0] for what in known))
    print(f"{backend}, {device} tensors\n{'':16}" + "".join(f"{name:>11}" for name in DTYPES))
    for operation in operations:
        marks = ("✓" if known[f"{operation} {name}"] == "✓" else "✘" for name in DTYPES)
        print(f"{operation:16}" + "".join(f"{m:>11}" for m in marks))
    for what, said in known.items():
        if said != "✓":
            print(f"  {what}: {said}")
    return known


on_gloo = table("gloo")

# %% tags=["claim"]
assert on_gloo["all_reduce_avg int64"] not in ("✓", "wrong result"), "the average of integers is refused"
assert on_gloo["all_reduce_sum bool"] == "✓", "gloo takes the sum of bool"
assert on_gloo["gather complex64"] != "✓" == on_gloo["all_gather complex64"], (
    "gather does not take complex numbers, all_gather does"
)

# %% [markdown]
# The sum of two `bool` is *or*, and averages of integers are refused. And `gather` does not take
# complex numbers, although its sibling `all_gather` does: most functions of `torch.distributed` show a
# complex tensor to the backend as pairs of real numbers, and `gather` does not. In the documented table
# gloo has a plain tick for `gather`. That is not wrong, but it has no columns for dtypes.
#
# And MPI?

# %% tags=["nbval-ignore-output"]
if can_mpi:
    on_mpi = table("mpi")
else:
    print(backends()["mpi"])

# %% tags=["claim"]
assert not can_mpi or on_mpi["all_reduce_avg float32"] != "✓", "MPI has no average"
assert not can_mpi or on_mpi["all_reduce_sum bool"] != "✓", "MPI refuses the sum of bool"
assert not can_mpi or on_mpi["gather complex64"] == "✓", "complex numbers are no problem"
assert not can_mpi or on_mpi["reduce_scatter float32"] == "✓", "ours does not lack reduce_scatter"

# %% [markdown]
# Its gaps are elsewhere. **MPI has no average**: its [list of
# operations](https://netlib.org/mpi/mpi-report/node78.html) has a sum and a product; to get a mean, you
# divide. (Your ring knows AVG because you wrote the division.) In MPI a *logical* value has and, or and
# xor but no sum, so `bool` is refused where gloo takes it. Complex numbers are no problem, even in
# `gather`.
#
# In the *documented* table MPI lacks `reduce_scatter`, and in ours it does not. Both are right: the
# documentation speaks of torch's own MPI backend, and our table of the course's.
#
# If you have a GPU, the next cell does the same for GPU tensors, on gloo and on NCCL. One GPU is enough
# for both ranks; the first of *NCCL's traps*, below, says how.

# %% tags=["nbval-ignore-output"]
if torch.cuda.is_available():
    table("gloo", "cuda")
if backends()["nccl"]:
    print(backends()["nccl"])
else:
    table("nccl", "cuda")

# %% [markdown]
# ## Your ring, everywhere
#
# Now your own `ring_all_reduce`. It is in your notebook of chapter [11](11_ring_all_reduce.ipynb),
# beside this one. The next cell reads the definitions there, without running the experiments, and takes
# yours. (If it is somewhere else, copy it into a cell here and write `ring = ring_all_reduce`.)

# %%
def yours(chapter, name):
    """A definition from your notebook of another chapter; None if there is no such notebook."""
    places = (Path(f"{chapter}.ipynb"), Path("notebooks", f"{chapter}.ipynb"))
    path = next((place for place in places if place.is_file()), None)
    return path and Submission.from_file(path, [name]).defined(name)


ring = yours("11_ring_all_reduce", "ring_all_reduce")
ring_works = ring is not None and bool(check(ring, world_sizes=[2, 4]))
print("your ring_all_reduce is right on gloo:", ring_works)

# %% [markdown]
# You wrote and tested it on gloo only. Will it run on MPI without a change? The grader asks the same of
# it there: results, messages, neighbours, rounds.

# %% tags=["nbval-ignore-output"]
if ring_works:
    for name, why_not in backends().items():
        if why_not:
            print(f"{name:4} {why_not}")
            continue
        n = ranks_on(name, 3)
        verdict = check(ring, backend=name, world_sizes=[n])
        print(f"{name:4} ranks: {n}", "right" if verdict else verdict)
else:
    print("first write ring_all_reduce, in chapter 11")

# %% [markdown]
# In a terminal you can check it for all world sizes:
#
# ```
# python -m grader check notebooks/11_ring_all_reduce.ipynb ring_all_reduce --backend mpi
# python -m grader check notebooks/11_ring_all_reduce.ipynb ring_all_reduce --backend nccl
# ```
#
# That is what an interface is worth. It does *not* promise that every program that works on one
# backend works on the next. The next two sections are about the exceptions. (For your ring on NCCL, see
# number 5 of its traps.)
#
# You already know gloo's. A `send` waits for its receive, at every size (chapter
# [01](01_point_to_point.ipynb)), which is a gift while you learn: a program that could hang does hang.
# A send to oneself is an error ([03](03_scatter_gather.ipynb)). After `reduce`, the other ranks'
# tensors hold leftovers ([04](04_reduce.ipynb)).
#
# ## MPI's trap: a send that is too kind
#
# Two ranks want to swap tensors, and both send before they receive, like the first patient of chapter
# [12](12_deadlock_clinic.ipynb). On gloo this hangs every time.
#
# MPI's standard leaves it open. A plain `MPI_Send` ["may
# buffer"](https://netlib.org/mpi/mpi-report/node40.html) the message and return before the receive
# begins, or it may not. Implementations do both: a short message leaves at once (an *eager* send), a
# long one waits for its receive. So the same wrong program runs with small tensors and hangs with large
# ones.
#
# You can see this without hanging. Both ranks *start* a send, then meet in a barrier, so that neither
# has received anything yet. Then each asks whether its send is done, and a second barrier keeps both
# from receiving before that. What do you expect for 100 bytes, and for a million?

# %% tags=["nbval-ignore-output"]
EAGER = """
from mpi4py import MPI

world = MPI.COMM_WORLD
peer = 1 - world.Get_rank()
for name in ("Isend", "Issend"):
    for size in (100, 1_000, 10_000, 1_000_000):
        into = bytearray(size)
        request = getattr(world, name)(bytes(size), peer)
        world.Barrier()
        done = request.Test()
        world.Barrier()
        world.Recv(into, peer)
        request.Wait()
        if world.Get_rank() == 0:
            print(f"{name:6} {size:9,} bytes: done before the receive: {done}")
"""

if can_mpi:
    launch([mpiexec, "-n", "2", sys.executable], EAGER)
else:
    print(backends()["mpi"])

# %% [markdown]
# The longest plain send waits, and the shortest does not. Where the behaviour changes depends on the
# implementation, its settings and the network. So a program that is wrong can pass all of its tests and hang
# on another cluster.
#
# `Issend` is the **synchronous** send: it is done only when the receive has begun, at every size. (MPI
# libraries call this exchange the *rendezvous protocol*. It has nothing to do with the rendezvous at
# the start of a program.) Use it in your tests: replace `Send` by `Ssend`, and a program that still
# runs does not rely on buffers.
#
# In the course's MPI worlds `dist.send` is one of these two, and `check` judges your programs with it.
#
# **Predict:** both ranks send first, a small tensor. On gloo that hangs. What does it do in the
# course's MPI worlds?
#
# <details><summary>It hangs, as on gloo</summary>
#
# Yes: they use the synchronous send, which waits for its receive, however short the message is.
# </details>
#
# <details><summary>It runs: four numbers are sent eagerly</summary>
#
# No: a plain send would let this mistake pass. The course's worlds use the synchronous one.
# </details>
#
# <details><summary>It runs or hangs, depending on which rank is faster</summary>
#
# No: a plain send of this size is eager or it is not, and a synchronous one never is. Speed does not decide.
# </details>

# %% tags=["nbval-ignore-output"]
def both_send_first():
    x, peer = torch.ones(4), 1 - dist.get_rank()
    dist.send(x, peer)
    dist.recv(x, peer)


for name in ("gloo", "mpi"):
    if backends()[name]:
        print(f"{name:4} {backends()[name]}")
    else:
        failure = run(both_send_first, 2, backend=name, may_fail=True).failure
        print(f"{name:4} {failure.diagnosis if failure else 'it ran'}")

# %% [markdown]
# The course's MPI worlds use no other send than the synchronous one. What could hang does hang there, and so
# the grader can say which rank waits for which, and calls it a deadlock. With plain sends this MPI would have
# let it run.
#
# ## NCCL's traps
#
# You need a GPU to see most of these, so here is what the documentation says. Read it before you rent
# one.
#
# **1. One GPU for each rank.** Two ranks on one GPU are refused with `Duplicate GPU detected` ([as in
# this report](https://github.com/stanford-futuredata/ColBERT/issues/331)). NCCL's guide says that this
# [is not supported and may
# hang](https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2134/user-guide/docs/usage/communicators.html).
# For tests there is a way around. NCCL only asks whether two ranks have the same GPU of the same
# *machine*, and takes the machine's name from the variable `NCCL_HOSTID` if there is one
# ([`getHostHash`](https://github.com/NVIDIA/nccl/blob/master/src/misc/utils.cc)). If you have fewer GPUs
# than ranks, the grader gives ranks on the same GPU different names. They talk through a socket then:
# results, errors and hangs are NCCL's, times are not.
#
# **2. Set the device first.** `x.cuda()` means the *current* device, and that is
# [`cuda:0`](https://docs.pytorch.org/docs/stable/notes/cuda.html) on every rank until you say
# otherwise. So this listing works with one rank, and with two it runs into trap 1, since nothing in it
# depends on the rank:
#
# ```python
# dist.init_process_group("nccl")
# x = torch.ones(4).cuda()
# dist.all_reduce(x)
# ```
#
# Call `torch.cuda.set_device(local_rank)` before everything else. Without it [`batch_isend_irecv` may
# hang](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.batch_isend_irecv) too.
# With `init_process_group(..., device_id=device)` NCCL also [connects at
# once](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group), not
# in the first collective, so that mistakes show up early. Here is what the ranks need:

# %%
if devices_known:
    print(*run(lambda device_of: str(device_of(dist.get_rank(), "nccl")), 4, device_for))

# %% [markdown]
# **3. Only GPU tensors.** On a group that has only NCCL, a CPU tensor gives [`No backend type
# associated with device type cpu`](https://github.com/mistralai/mistral-inference/issues/252). An easy
# way to get there: turn a list of numbers into a tensor and forget the `device`. If you do need both, ask
# for both: with `init_process_group("cpu:gloo,cuda:nccl")` each tensor goes to the backend of its device.
#
# **4. `wait()` does not wait for the result.** A stream is a queue of work that the GPU does in order;
# different streams run side by side. NCCL's calls [return as soon as the work is
# queued](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/streams.html). With
# `async_op=True` the work is in a stream of NCCL's own, so that it can overlap with computation, and
# `wait()` makes your *current stream* wait for that one, [not the
# CPU](https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations).
# Without `async_op`, PyTorch since 2.8 queues it [in your current
# stream](https://github.com/pytorch/pytorch/pull/150398) itself. When is the result ready, then? After
# the `wait()`, or the call without `async_op`:
#
# | you use it | is it ready? |
# |---|---|
# | in the current stream | yes: your work is queued behind NCCL's |
# | in another stream `s` | only after `s.wait_stream(torch.cuda.current_stream())` |
# | on the host, with `.item()` or `.cpu()` | yes: these wait for the current stream |
# | when you read a clock | no: call `torch.cuda.synchronize()` first, or you measure the launch |
#
# **5. `isend` and `irecv` in a batch.** An NCCL send is work in a stream, and it [blocks the
# GPU](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/p2p.html) until the other side
# receives. If your own receive is queued behind it, and every rank has done the same, all wait forever. In
# a group with a `device_id` it *is* queued behind it: there PyTorch [serializes](https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp)
# single sends and receives with all other calls on the group, and warns you. With small messages such a program [often
# works](https://github.com/pytorch/pytorch/issues/138074), since there are buffers: MPI's trap again. The
# cure is to give NCCL both as one group, in which [calls never block each
# other](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/p2p.html).
# [`dist.batch_isend_irecv([...])`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.batch_isend_irecv)
# makes such a group, and works on every backend.
#
# In a group *without* a `device_id`, PyTorch makes a communicator for each pair of ranks, with a stream of
# its own (the source is the same file), so only two ranks that send to each other block each other. But there
# is an earlier trap: the communicator is made at the first message of the pair, and there the CPU waits for
# the other rank. On an H200, three ranks of a ring that all began with `isend` hung in that call, with
# two numbers to send, and two ranks that began by sending to each other got an *internal error* of NCCL's
# ([what was run](../headcount/docs/nccl.md)).
#
# Does your ring send and receive in one batch? The course's does not: it calls `isend`, `recv` and `wait`.
# These lines take their place in each step:
#
# ```python
# both = [dist.P2POp(dist.isend, chunks[out], right), dist.P2POp(dist.irecv, received, left)]
# for request in dist.batch_isend_irecv(both):
#     request.wait()
# ```
#
# **6. Errors come late.** When a collective fails or a rank is missing, a watchdog notices, by default
# [after ten
# minutes](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group).
# It [ends the process](https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html);
# nothing is raised that you could catch. And the line it shows is where the watchdog looked, not where
# your program is wrong.
#
# > **Impossible, though it looks right:** the output of an all-gather on two GPUs, where **rank 1**
# > prints `[tensor([1], device='cuda:0'), tensor([2], device='cuda:0')]`.
#
# It cannot be, because an all-gather makes no tensors. It fills those that you give it, and a rank on NCCL
# gives it tensors on its own GPU. You can see that on gloo: is the memory of the list the same before and
# after?

# %%
def gathered():
    x = torch.tensor([dist.get_rank() + 1])
    into = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    before = [(tensor.data_ptr(), tensor.device) for tensor in into]
    dist.all_gather(into, x)
    return [tensor.item() for tensor in into], before == [(t.data_ptr(), t.device) for t in into]


values, in_place = run(gathered, 2)[1]
print("rank 1 has", values, "in the same places, on the same device:", in_place)

# %% [markdown]
# So rank 1 prints `cuda:1`, or there was no second GPU. (The line *is* possible with
# `all_gather_object`, which sends pickles: a tensor in a pickle [is restored on the sender's
# device](https://docs.pytorch.org/docs/stable/distributed.html#object-collectives).) If you have two
# GPUs, ask them, and ask also where trap 2 puts its tensor:

# %% tags=["nbval-ignore-output"]
def gathered_on_gpus():
    device = torch.device("cuda", dist.get_rank())
    torch.cuda.set_device(device)
    x = torch.tensor([dist.get_rank() + 1], device=device)
    into = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(into, x)
    return repr(into)


if torch.cuda.device_count() >= 2 and not backends()["nccl"]:
    print("without set_device:", list(run(lambda: str(torch.ones(4).cuda().device), 2)))
    print(*run(gathered_on_gpus, 2, backend="nccl"), sep="\n")
else:
    print("two GPUs are needed; here are", torch.cuda.device_count())

# %% [markdown]
# ## Project: train a model with what you have written
#
# You have a ring all-reduce (chapter [11](11_ring_all_reduce.ipynb)) and a `BucketedDDP` (chapter
# [15](15_data_parallel.ipynb)). The second one calls `dist.all_reduce`, which is gloo's. Let it call the
# first instead, and train. Then your own code averages the gradients all the way, from the hook in
# backward down to the single message. There are no points for this, and no grader; the cells test what
# you write.

# %%
ddp = yours("15_data_parallel", "BucketedDDP")
ddp_works = ddp is not None and bool(check(ddp, world_sizes=[2, 4]))
ready = ring_works and ddp_works
print("your ring:", ring_works, "  your BucketedDDP:", ddp_works)

# %% [markdown]
# ### What does not fit
#
# `BucketedDDP` calls `dist.all_reduce(bucket, async_op=True)` in a hook, goes on with backward, and
# waits at the end. Your ring returns when it is **done**: called in the hook, it would stop backward.
# What could you do?
#
# 1. Start all rings after backward. That is simple and right, but nothing overlaps.
# 2. Write the ring again, as steps that never wait, and push them along from every hook. But then it is
#    another function, and no longer yours.
# 3. Let someone else wait: a **thread** beside backward, one in each rank, that runs the rings.
#
# We take the third. gloo does the same: it gives the work to threads of its own, as you saw in the
# traces of chapter [18](18_profiling.ipynb). NCCL gives it to a stream. Two rules keep it right:
#
# - **Only one thread**, so that a ring begins only when the one before has ended. Two rings at once
#   would use the same pairs of ranks, and one would receive what was meant for the other.
# - **The same order on all ranks**, which your `BucketedDDP` keeps: one bucket after the other.
#
# ### Write it: RingThread
#
# `RingThread(ring)` has a method `all_reduce` with the arguments of `dist.all_reduce`. It lets a thread
# of its own run `ring(tensor, op)`. With `async_op=True` it returns at once, and what it returns has a
# method `wait()` that blocks until the ring is done. Otherwise it returns only when the ring is done.
# You may ignore `group`.
#
# Python has the thread ready: a
# [`ThreadPoolExecutor`](https://docs.python.org/3/library/concurrent.futures.html#threadpoolexecutor)
# with one worker takes calls with `submit(function, *arguments)` and runs them in order. `submit`
# returns a *future*, whose `result()` blocks until the call has returned. A future has no `wait`, but
# you can give it one.

# %%
class RingThread:
    """An all-reduce that is your ring, in a thread of its own."""

    def __init__(self, ring):
        ### BEGIN SOLUTION
        self.ring = ring
        self.worker = ThreadPoolExecutor(max_workers=1)
        ### END SOLUTION

    def all_reduce(self, tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
        """What dist.all_reduce does, for the default group."""
        ### BEGIN SOLUTION
        work = self.worker.submit(self.ring, tensor, op)
        work.wait = work.result  # torch calls it wait
        return work if async_op else work.result()
        ### END SOLUTION


# %% [markdown]
# This cell tests it on three ranks. Rank 1 is a second late. Do the calls of the others return before it
# arrives, and is each sum right when its `wait()` has returned?

# %%
def three_sums(ring_thread, ring):
    """Whether the asynchronous calls of this rank returned early, and whether all sums are right."""
    reducer = ring_thread(ring)
    tensors = [torch.full((size,), dist.get_rank() + 1.0) for size in (4096, 8, 8)]
    if dist.get_rank() == 1:
        time.sleep(1)
    started = time.perf_counter()
    works = [reducer.all_reduce(tensor, async_op=True) for tensor in tensors[:2]]
    early = time.perf_counter() - started < 0.8
    for work in works:
        work.wait()
    sums = [tensor.unique().tolist() for tensor in tensors[:2]]  # before another ring runs
    reducer.all_reduce(tensors[2])
    return early, [*sums, tensors[2].unique().tolist()] == [[6.0]] * 3


thread_works = False
if ready:
    tried = run(three_sums, 3, RingThread, ring, seconds=30, may_fail=True)
    if tried.failure:
        print("not yet:", tried.failure.message)
    else:
        print("the calls return before rank 1 arrives:", all(early for early, _ in tried))
        print("all sums are right:                  ", all(right for _, right in tried))
        thread_works = all(early and right for early, right in tried)
else:
    print("first write ring_all_reduce and BucketedDDP, in chapters 11 and 15")

# %% [markdown]
# How does it get into your `BucketedDDP`, which calls `dist.all_reduce`? In each rank we put it in the
# place of that name, **for this run**: a rank ends with its run, and so does the change. (A program
# that lives longer would hand the function over as an argument. If your class uses `from
# torch.distributed import all_reduce`, change it to say `dist.all_reduce`.)
#
# ### Write it: training
#
# The data are the spirals of chapter 15: 256 points, two classes, a small network. Each rank trains on
# its part of them, `tensor[rank::n]`. Its model is `ddp(network(seed=rank), 4096)`: other weights on
# each rank, so that those of rank 0 must win, and buckets of 4 KiB. The loss is the cross entropy, the
# optimizer `torch.optim.SGD` with a learning rate of 0.2 and a momentum of 0.9. Take `steps` steps, and
# return a list with the loss (a float) of each. Do not forget
# `model.finish_gradient_synchronization()`: after what, and before what?

# %%
def spirals(count=256):
    """Points on two spirals, and which one each is on."""
    generator = torch.Generator().manual_seed(1)
    radius = 0.2 + 0.8 * torch.rand(count, generator=generator)
    which = torch.arange(count) % 2
    angle = torch.pi * (2 * radius + which)
    points = 2 * torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.03 * torch.randn(count, 2, generator=generator), which


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))


def training(ddp, ring, data, steps=60):
    """Train on this rank's part of the data; the loss of the rank, step by step."""
    dist.all_reduce = RingThread(ring).all_reduce
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = (tensor[rank::n] for tensor in data)
    model = ddp(network(seed=rank), 4096)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        model.finish_gradient_synchronization()
        optimizer.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% [markdown]
# ### It trains
#
# One process trains alone, four train together, and each of the four has a quarter of the points.
#
# **Predict:** how far apart are the two curves?
#
# <details><summary>No further than rounding</summary>
#
# Yes: the mean of the gradients of four equal parts is the gradient of the whole. Only the order of
# additions differs.
# </details>
#
# <details><summary>The loss of four ranks falls about four times as fast</summary>
#
# No: their gradients are averaged and not added up, so a step is as long as that of one process.
# </details>
#
# <details><summary>Four ranks are noisier: each has only a quarter of the points</summary>
#
# No: a rank computes with its quarter, but the step that it makes is that of all points.
# </details>

# %%
data, trained = spirals(), False
if thread_works:
    alone = run(training, 1, ddp, ring, data, seconds=60, may_fail=True)
    four = run(training, 4, ddp, ring, data, seconds=60, may_fail=True)
    failure = alone.failure or four.failure
    trained = failure is None
    if failure:
        print("not yet:", failure.message)
else:
    print("first write RingThread")

if trained:
    alone, shared = alone[0], [statistics.mean(losses) for losses in zip(*four)]
    print("largest difference below 0.001:    ", max(abs(a - b) for a, b in zip(alone, shared)) < 1e-3)
    print("the loss has fallen a hundredfold: ", shared[-1] < shared[0] / 100)
    calls = sum(op.kind == "all_reduce" for op in four.trace.operations[0])
    sent = sum(message.source == 0 for message in four.trace.messages)
    print(f"all-reduces that gloo did: {calls}; messages that your rank 0 sent: {sent:,}")
    figure, axes = plt.subplots(figsize=(6, 3))
    axes.plot(alone, lw=5, alpha=0.4, label="one process")
    axes.plot(shared, ls="--", color="black", label="four ranks, your ring, your buckets")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend()
    plt.show()

# %% [markdown]
# gloo has not done a single all-reduce: it carried your messages, and broadcast the first weights.
#
# ### Watch it
#
# Now take a network with more to compute, buckets of 1 MiB, and two ranks. The lanes are the ranks. A rank
# computes its gradients between the marks `backward` and `finish`.
#
# **Predict:** when does the first ring begin?
#
# <details><summary>When <code>finish_gradient_synchronization</code> is called</summary>
#
# No: that only waits. A hook starts the ring as soon as a bucket is full.
# </details>
#
# <details><summary>While backward runs, when the first bucket is full</summary>
#
# Yes: the hook hands it to the thread, and backward goes on.
# </details>
#
# <details><summary>When backward has computed the last gradient</summary>
#
# No: a bucket waits for its own gradients only, and those of the last layers come first.
# </details>

# %% tags=["nbval-ignore-output"]
def wide_network():
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(384, 384), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(384, 1))


def watched_step(ddp, ring):
    dist.all_reduce = RingThread(ring).all_reduce
    model = ddp(wide_network(), 1 << 20)
    x = torch.randn(512, 384)
    for step in range(2):  # the first one warms up
        model.zero_grad()
        loss = model(x).square().mean()
        dist.barrier()
        if step:
            mark("backward")
        loss.backward()
        if step:
            mark("finish")
        model.finish_gradient_synchronization()
        if step:
            mark("done")


if trained:
    watched = run(watched_step, 2, ddp, ring, seconds=60)
    marks = {m.text: m.time for m in watched.trace.marks[0]}
    begun = [op.posted for op in watched.trace.operations[0] if op.kind == "send"]
    during = sum(marks["backward"] < t < marks["finish"] for t in begun)
    after = sum(marks["finish"] < t for t in begun)
    print(f"rank 0 has begun {during} sends while backward ran, and {after} after it")
    shown = timeline(watched, since="backward", until="done")
else:
    shown = "first write RingThread"
shown

# %% tags=["claim"]
assert during > 0, "the first ring begins while backward runs"

# %% [markdown]
# Rank 0 has sent while backward ran. The ring of the last bucket cannot begin so early, as in chapter 15,
# because that bucket is full only when backward is over. Others may start late as well: the thread and
# backward share one Python interpreter and a few cores. (A lane shows what a rank waits for. Here a rank is
# two threads, and while one waits for a message, the other can go on.)
#
# ### Against torch's own
#
# Three contenders train the same network on four ranks, with gloo: `DistributedDataParallel`, your
# buckets with gloo's all-reduce, and your buckets with your ring. They take turns in **one** run, so
# that whatever else the machine does disturbs them all alike. Each number is a median.
#
# In which order do you expect them, and how far apart?

# %% tags=["nbval-ignore-output"]
class TorchDDP(nn.Module):
    """torch's own, with the interface of yours."""

    def __init__(self, module, bucket_bytes):
        super().__init__()
        from torch.nn.parallel import DistributedDataParallel

        self.inner = DistributedDataParallel(module, bucket_cap_mb=bucket_bytes / 2**20)

    def forward(self, x):
        return self.inner(x)

    def finish_gradient_synchronization(self):
        pass


def contest(ddp, ring, rounds=9):
    """Median seconds of a step of each contender."""
    gloo, on_ring = dist.all_reduce, RingThread(ring).all_reduce
    contenders = {
        "torch's DistributedDataParallel": (TorchDDP(wide_network(), 1 << 20), gloo),
        "your buckets, gloo's all_reduce": (ddp(wide_network(), 1 << 20), gloo),
        "your buckets, your ring": (ddp(wide_network(), 1 << 20), on_ring),
    }
    x, taken = torch.randn(64, 384), {name: [] for name in contenders}
    for _ in range(rounds):
        for name, (model, all_reduce) in contenders.items():
            dist.all_reduce = all_reduce
            dist.barrier()
            started = time.perf_counter()
            model.zero_grad()
            model(x).square().mean().backward()
            model.finish_gradient_synchronization()
            taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(times[2:]) for name, times in taken.items()}


if trained:
    results = run(contest, 4, ddp, ring, seconds=100)
    slowest = {name: max(result[name] for result in results) for name in results[0]}
    torchs = slowest["torch's DistributedDataParallel"]
    for name, seconds in slowest.items():
        print(f"{name:32} {1e3 * seconds:7.1f} ms, {seconds / torchs:.2f} times torch's")

# %% tags=["claim"]
assert slowest["your buckets, your ring"] > torchs, "your ring is slower than torch's own"

# %% [markdown]
# Your ring is slower than torch's all-reduce. What does torch have that yours lacks?
#
# - **C++.** Its hooks and its gloo run outside Python. On four ranks your ring takes 6 steps for each
#   bucket, with several Python calls in each, and Python runs one thread at a time: while your ring has
#   the interpreter, a hook has to wait.
# - **Memory.** It makes its buckets once and uses them in every step. Yours makes new ones with `torch.cat` each
#   time.
# - **A single entry in the record.** In `run` every message of yours is **recorded**, 6 sends and 6
#   receives for each bucket; torch's all-reduce is one entry.
#
# And all three lack processors: four ranks with two busy threads each would like eight cores. What is
# hidden behind backward still needs a core to run on.
#
# What you do have is the same *algorithm*: the bytes, the buckets, the order and the overlap. On a
# machine whose network is the bottleneck, those are what counts.
#
# Where could you go from here? Send the pieces of several buckets in one batch. Reduce in pieces, so
# that adding overlaps with sending. Or run the training on MPI: `run(training, 2, ddp, ring, data,
# backend="mpi", seconds=60)`.
#
# ## Summary
#
# - `torch.distributed` is an interface; **gloo**, **MPI** and **NCCL** carry the bytes. For CPUs use
#   gloo, for NVIDIA GPUs NCCL, and on a cluster of CPUs MPI, if your torch is built with it.
# - A **launcher** tells a process its rank, local rank and world size. Launcher and backend are two
#   choices.
# - Make your table of what works by running it, dtype by dtype.
# - An NCCL result is ready for the stream that waits for it, and not yet for your clock.
# - Your ring runs unchanged on MPI, and trains a model. On NCCL, send and receive in one batch.
#
# And the two programs of the beginning? The eight processes crowd onto one GPU because none of them sets
# its device: the **local rank** chooses it, before anything else. The MPI program hangs because its
# messages have grown too long to be sent eagerly: test with **synchronous** sends.
#
# ### Check yourself
#
# <details><summary>A job runs on 3 machines with 8 GPUs each. What are the local rank and the device of rank 18?</summary>
#
# Ranks 16 to 23 are on the third machine, so its local rank is 2 and its device `cuda:2`.
# </details>
#
# <details><summary>A program for the weather exchanges the borders of its grid with MPI. It ran for years, and has hung since the grid was made finer. What do you suspect?</summary>
#
# All ranks send before they receive. The messages used to be short enough to be sent eagerly. Now each
# send waits for a receive that no rank gets to. With `MPI_Ssend` it would have hung on the first day.
# </details>
#
# <details><summary>You time <code>dist.all_reduce(x)</code> on NCCL with a clock on the host, and it takes 30 µs for a gigabyte. What did you measure?</summary>
#
# The launch. The call returns when the work is in the stream, and even `wait()` makes only the stream
# wait. Synchronize before you read the clock.
# </details>
#
# <details><summary>Why must the helper of the project be one thread, and not one for each bucket?</summary>
#
# Messages between two ranks are matched in the order in which they are posted. Two rings at the same
# time could post theirs in an order that differs from rank to rank, and then a rank would add a chunk of
# one bucket to the other.
# </details>
#
# This was the last chapter of part one. You began with `dist.get_rank()`, and you have trained a model on your own
# all-reduce. Now read the source of a real one,
# [gloo's](https://github.com/facebookincubator/gloo/blob/9cabb5aaa4f02356bc8db05e5630cb550b3f5b5c/gloo/allreduce.cc),
# [NCCL's](https://github.com/NVIDIA/nccl/blob/761454383f0e6cd77e72805cb53517867d3f97f1/src/device/all_reduce.h)
# or
# [RCCL's](https://github.com/ROCm/rccl/blob/5ae60006a01ca46f5c8b28cb77386e25d1851bbb/src/device/all_reduce.h):
# you know all its words.
#
# **Next:** [20 · Tree algorithms](20_tree_algorithms.ipynb), the first chapter of part two: what libraries do
# where a ring is too slow.
