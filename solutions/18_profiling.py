# %% [markdown]
# # 18 · Profiling
#
# A training step on eight GPUs takes 400 milliseconds. By arithmetic like that of chapter
# [16](16_scale_math.ipynb) it should take 250. Where do the other 150 go? Into a slow kernel, into
# Python, into waiting for another rank? Or is the stopwatch wrong? You can guess, change something and
# measure again, for days. A profiler shows you.
#
# **You will learn** to time work that runs asynchronously, to read the table and the trace of
# `torch.profiler`, to find a slow rank in the traces of a distributed step, and to compile a function
# of your own in C++.
#
# **You need** chapters [14](14_bandwidth.ipynb) and [15](15_data_parallel.ipynb), and for the last part
# a C++ compiler and [ninja](https://ninja-build.org). `python -m grader doctor` says whether you have
# them; the chapter also runs without. You do not need a GPU: the cells that are meant for one say so,
# and run only where there is one.
#
# **Time:** 115 minutes, and 3 exercises.

# %%
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ["KINETO_LOG_LEVEL"] = "99"  # keeps the profiler from announcing when it starts and stops

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline

torch.set_num_threads(1)  # so that times depend less on what else the machine does
on_gpu = torch.cuda.is_available()
compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

# %% [markdown]
# ## A clock that stops too early
#
# A GPU works **on its own**. When you call an operation on a CUDA tensor, the host puts it into a
# queue, a *stream*, and goes on at once ([asynchronous
# execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)). You can see
# what that does to a measurement without a GPU. Here is a stand-in for one: a thread that takes work
# from a queue. Each piece of work takes 50 ms.
#
# **Predict:** what does the clock show when `kernel` has returned, and what does it show when the host has
# waited for the device?
#
# <details><summary>Some 50 ms, and the same 50 ms again</summary>
#
# No: `kernel` only puts the work into the queue. The thread does it later, by itself.
# </details>
#
# <details><summary>Almost nothing, then some 50 ms</summary>
#
# Yes: putting work into a queue takes no time to speak of. Waiting takes as long as the work.
# </details>
#
# <details><summary>Some 50 ms, then some 100 ms</summary>
#
# No: the work is done once, and the host does not work on it at all. It waits for it once.
# </details>

# %% tags=["nbval-ignore-output"]
class Device:
    """Works on its own: launch returns at once, synchronize when everything is done."""

    def __init__(self):
        self.work = queue.Queue()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            self.work.get()()
            self.work.task_done()

    def launch(self, function):
        self.work.put(function)

    def synchronize(self):
        self.work.join()


device = Device()


def kernel():
    device.launch(lambda: time.sleep(0.05))


started = time.perf_counter()
kernel()
launched = 1e3 * (time.perf_counter() - started)
device.synchronize()
finished = 1e3 * (time.perf_counter() - started)
print(f"after the call:        {launched:7.3f} ms")
print(f"after synchronizing:   {finished:7.3f} ms")

# %% tags=["claim"]
assert launched < 10 and 50 <= finished < 100, "almost nothing, then some 50 ms"

# %% [markdown]
# A clock on the host, read around an asynchronous call, measures the **launch**. Here is how to tell:
# make the work a hundred times larger, and the number stays the same.
#
# Waiting for the device helps, but then you measure the launch, the kernel *and* the waiting. It is
# better to let the device note the time itself, in its own queue, before the kernel and after it. Such
# a note is called an **event**.
#
# Three kernels are launched in a row, each between two events. When does the host learn the times?

# %% tags=["nbval-ignore-output"]
class Event:
    """Notes the time when the device gets to it."""

    def record(self):
        device.launch(self.take)

    def take(self):
        self.time = time.perf_counter()

    def elapsed_time(self, end):
        return 1e3 * (end.time - self.time)


pairs = []
for _ in range(3):
    begin, end = Event(), Event()
    begin.record()
    kernel()
    end.record()
    pairs.append((begin, end))

print("known before synchronizing:", [hasattr(end, "time") for _, end in pairs])
device.synchronize()
print("milliseconds:", [round(begin.elapsed_time(end), 1) for begin, end in pairs])

# %% [markdown]
# The host can ask only when the device has reached the last event, so it has to synchronize first. On a GPU
# the class is `torch.cuda.Event(enable_timing=True)`, the wait is `torch.cuda.synchronize()`, and the code
# looks the same. Here it is in full, on the layer norm that we will take apart below:

# %% tags=["nbval-ignore-output"]
if on_gpu:
    x = torch.randn(10000, 10000, device="cuda")
    for _ in range(3):
        torch.nn.functional.layer_norm(x, x.shape[1:])
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    started = time.perf_counter()
    begin.record()
    torch.nn.functional.layer_norm(x, x.shape[1:])
    end.record()
    print(f"host clock, after the call: {1e3 * (time.perf_counter() - started):7.3f} ms")
    torch.cuda.synchronize()
    print(f"events:                     {begin.elapsed_time(end):7.3f} ms")
else:
    print("no GPU here; what one has measured is in the record under 'Inside a kernel'")

# %% [markdown]
# A benchmark needs more than a good clock: it has to run. Here is the start of one, and two of its
# names are defined nowhere. Which two?

# %%
LISTING = """
torch.manual_seed(rank)
x = torch.ones(1000, 1000)
started = time.perf_counter()
x = x @ x
"""

missing, names = [], {"torch": torch}
while True:
    try:
        exec(LISTING, names)
        break
    except NameError as error:
        print("NameError:", error)
        missing.append(error.name)
        names[error.name] = {"rank": 0, "time": time}[error.name]

print("missing:", missing)

# %% [markdown]
# Run a listing before you believe its numbers. That goes for ours as well: those in cells have been run
# unless they say otherwise, those in the text are sketches.
#
# ## Warm up, and take the median
#
# The first calls are special: memory is allocated, libraries are loaded, and on a GPU kernels
# are compiled or chosen. Leave them out. Now and then the machine also has something else to do, which
# makes a call slower. So the times do not scatter evenly around the usual one.
#
# Suppose one call of nine is disturbed and takes ten times as long. What happens to the mean, and what
# to the median?

# %%
milliseconds = [2.0, 2.1, 1.9, 2.0, 20.0, 2.1, 1.9, 2.0, 2.0]
print("mean:  ", statistics.mean(milliseconds))
print("median:", statistics.median(milliseconds))

# %% [markdown]
# The disturbed call doubles the mean. The median does not notice it. (Chapter [14](14_bandwidth.ipynb) took
# the *minimum*, which says what an undisturbed call takes. The median says what a call usually takes. It
# is deceived neither by a slow call nor by a fast one, as when a GPU has raised its clock for a moment.)
#
# ## Exercise: time_kernel
#
# `fn(*args)` starts some work. Call it `warmup` times without timing it. Then time each of `iterations`
# calls and return the **median**, in **milliseconds**. If any of `args` is a CUDA tensor (`is_cuda`),
# time with events of `torch.cuda`; otherwise use `time.perf_counter`. (With an even number of times,
# the median is the mean of the two in the middle.)
#
# `check` lends you a clock, the one of chapter [14](14_bandwidth.ipynb), and a device. The device is a
# stand-in like the one above: it takes the place of `torch.cuda.Event`, `torch.cuda.synchronize` and
# their kin, and keeps the rules of CUDA. A call returns before the work is done, and you cannot ask an
# event for its time before the device has reached it. So the GPU half of your answer is judged on every
# machine. (In your own work, the `Timer` of
# [`torch.utils.benchmark`](https://docs.pytorch.org/docs/stable/benchmark_utils.html) warms up,
# synchronizes and reports the median for you; for Triton's kernels there is
# [`do_bench`](https://triton-lang.org/main/python-api/generated/triton.testing.do_bench.html).)

# %%
def time_kernel(fn, *args, warmup: int, iterations: int) -> float:
    """Milliseconds of one call of fn(*args): the median."""
    ### BEGIN SOLUTION
    for _ in range(warmup):
        fn(*args)
    if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):
        pairs = []
        for _ in range(iterations):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            fn(*args)
            end.record()
            pairs.append((begin, end))
        torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) for begin, end in pairs)
    times = []
    for _ in range(iterations):
        started = time.perf_counter()
        fn(*args)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)
    ### END SOLUTION


check(time_kernel)

# %% [markdown]
# Now use it. A layer norm reads every number of its input and writes as many.
#
# With four times as many rows, does it take four times as long? Watch the bandwidth: does it stay the
# same?

# %% tags=["nbval-ignore-output"]
def layer_norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[1:])


place = "cuda" if on_gpu else "cpu"
columns = 10000 if on_gpu else 1000
if check(time_kernel):
    for rows in (columns // 4, columns):
        x = torch.randn(rows, columns, device=place)
        median = time_kernel(layer_norm, x, warmup=5, iterations=20)
        print(f"{rows:6} × {columns} on {place}: {median:.3f} ms, {2 * x.nbytes / median / 1e6:.1f} GB/s")

# %% [markdown]
# Four times the bytes take about four times as long, or more if the small input fits into a cache and
# the large one does not. The bandwidth tells these cases apart, which is why kernels of this kind are
# compared by it.
#
# ## Where does the time go?
#
# A stopwatch says *how long*. A **profiler** says *where*. `torch.profiler` notes when each operator
# begins and ends, and on a GPU each kernel too. Taking notes costs time itself, and the first steps are
# special, so you do not record them all: a **schedule** says what to do with each step.
#
# **Predict:** what happens in each of eight steps with `wait=1, warmup=3, active=2, repeat=1`?
#
# <details><summary>One step is left alone, five are recorded</summary>
#
# No: in the three steps of `warmup` the profiler runs, but it throws away what it has noted.
# </details>
#
# <details><summary>One is left alone, three warm up, two are recorded, and it begins again</summary>
#
# No: `repeat=1` asks for one such cycle. It would begin again with `repeat=2`.
# </details>
#
# <details><summary>One is left alone, three warm up, two are recorded, and that is all</summary>
#
# Yes: after one cycle nothing more is done.
# </details>

# %%
plan = schedule(wait=1, warmup=3, active=2, repeat=1)
print([plan(step).name for step in range(8)])

# %% [markdown]
# (`RECORD_AND_SAVE` is the last of the steps that are recorded.) You end each step with `prof.step()`.

# %%
x = torch.randn(columns, columns, device=place)
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu

with profile(activities=activities, schedule=plan) as prof:
    for _ in range(6):
        layer_norm(x)
        prof.step()

calls = {row.key: row.count for row in prof.key_averages()}
print("recorded calls of layer_norm:", calls["aten::layer_norm"])

# %% [markdown]
# ### The table
#
# `key_averages()` puts all calls of an operator into one row. It has two times for each: **total** time
# includes what the operator calls, and **self** time does not. `aten::layer_norm` calls
# `aten::native_layer_norm`, which does the arithmetic.
#
# **Predict:** which of the two has the larger total time, and which the larger self time?
#
# <details><summary><code>layer_norm</code> has the larger of both</summary>
#
# No: its self time leaves out what `native_layer_norm` does for it, and that is nearly everything.
# </details>
#
# <details><summary><code>native_layer_norm</code> has the larger of both</summary>
#
# No: what it takes is in the total time of its caller as well, so that one cannot be smaller.
# </details>
#
# <details><summary><code>layer_norm</code> has the larger total, <code>native_layer_norm</code> the larger self time</summary>
#
# Yes: a caller's total includes everything, and its self time only the little that it does itself.
# </details>

# %% tags=["nbval-ignore-output"]
sort_by = "self_cuda_time_total" if on_gpu else "self_cpu_time_total"
print(prof.key_averages().table(sort_by=sort_by, row_limit=6, max_name_column_width=30))

# %% [markdown]
# To find out who calls whom, ask an event for its caller:

# %%
def callers(event):
    return [] if event is None else [*callers(event.cpu_parent), event.name]


inner = next(event for event in prof.events() if event.name == "aten::native_layer_norm")
print(" → ".join(name for name in callers(inner) if name.startswith("aten")))

# %% [markdown]
# On a CPU the arithmetic is done inside `aten::native_layer_norm`. On a GPU the chain goes on: it calls
# `cudaLaunchKernel`, which only puts the **kernel** into the stream. The kernel itself runs later, on
# the GPU's own line of the trace.
#
# ## Exercise: hottest_ops
#
# From a finished profile, return the names of the `k` operators with the most **self** time on the CPU,
# hottest first; all of them if there are fewer than `k`. Operators that take equally long may be in any
# order. (The table has rows that are no operators too, such as `ProfilerStep*`. The profiles of `check` have
# none, so you may keep them or leave them out.)

# %%
def hottest_ops(profile, k: int) -> list[str]:
    """The names of the k operators with the most time of their own."""
    ### BEGIN SOLUTION
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total, reverse=True)
    return [row.key for row in rows[:k]]
    ### END SOLUTION


check(hottest_ops)

# %% [markdown]
# Here is the training step of a small network: linear layers of 1024 × 1024, a layer norm and a GELU.
#
# **Predict:** what is hottest in it?
#
# <details><summary>The layer norm and the GELU, with their roots and exponentials</summary>
#
# No: they take a few operations for each number. A product takes 1024 multiplications for each.
# </details>
#
# <details><summary>The matrix products, of forward and of backward</summary>
#
# Yes: `addmm` is that of forward, with the bias, and `mm` those of backward. Each makes half a billion
# multiplications.
# </details>
#
# <details><summary>The calls themselves, of Python and of autograd</summary>
#
# No: a call costs some microseconds. A product of this size costs hundreds of times as much.
# </details>

# %% tags=["nbval-ignore-output"]
network = torch.nn.Sequential(
    torch.nn.Linear(1024, 1024), torch.nn.LayerNorm(1024), torch.nn.GELU(), torch.nn.Linear(1024, 1024)
)
batch = torch.randn(512, 1024)


def training_step():
    network.zero_grad()
    network(batch).square().mean().backward()


for _ in range(3):
    training_step()
with profile(activities=[ProfilerActivity.CPU]) as training:
    training_step()

if check(hottest_ops):
    print(hottest_ops(training, 3))

# %% tags=["claim"]
assert set(hottest_ops(training, 2)) == {"aten::mm", "aten::addmm"}, "the products are hottest"

# %% [markdown]
# ## The trace
#
# The table has lost *when* things happened. The trace has it: a JSON file that you can open in a
# browser, in [Perfetto](https://ui.perfetto.dev) or at `chrome://tracing`. For the layer norm on a GPU
# it shows a picture like this one:
#
# ![A timeline of two threads. On the host: aten::layer_norm, below it aten::native_layer_norm, below that the launch of a kernel. On the device, later: the kernel. The host is done before the kernel begins](../imgs/profiler_timeline.png)
#
# Let us look into the file ourselves.

# %%
def read_trace(path):
    """The operators and annotations of a trace, in the order in which they began."""
    events = json.loads(Path(path).read_text())["traceEvents"]
    kinds = ("cpu_op", "user_annotation")
    spans = [event for event in events if event.get("ph") == "X" and event["cat"] in kinds]
    return sorted(spans, key=lambda span: span["ts"])


with tempfile.TemporaryDirectory() as folder:
    training.export_chrome_trace(f"{folder}/trace.json")
    spans = read_trace(f"{folder}/trace.json")

first = spans[0]
print("a span has:", [key for key in ("name", "ts", "dur", "tid") if key in first])
print("the first operator:", first["name"])

# %% [markdown]
# `ts` is when the span began and `dur` how long it took, both in microseconds; `tid` is its thread.
# That is enough to draw a timeline: a bar for each span, below the bar of its caller. On a CPU the
# backward pass runs on the thread that called it; on a GPU autograd has a [thread for each
# device](https://docs.pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd).
#
# Before you look: is the backward pass longer or shorter than the forward pass?

# %% tags=["nbval-ignore-output"]
def depth(span):
    """How many operators of the same thread it is in."""
    end = span["ts"] + span["dur"]
    return sum(
        other is not span
        and other["tid"] == span["tid"]
        and other["ts"] <= span["ts"]
        and end <= other["ts"] + other["dur"]
        for other in spans
    )


threads = list(dict.fromkeys(span["tid"] for span in spans))
figure, axes = plt.subplots(figsize=(9, 2.6))
whole = max(span["ts"] + span["dur"] for span in spans) - first["ts"]
for span in spans:
    level = depth(span)
    line = 5 * threads.index(span["tid"]) + level
    colour = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")[level % 4]
    axes.barh(line, span["dur"], left=span["ts"] - first["ts"], color=colour, edgecolor="white", height=0.9)
    name = span["name"].split("::")[-1].removeprefix("evaluate_function: ")
    if span["dur"] > 0.012 * whole * len(name):  # where its name has room
        ink = "black" if level else "white"
        axes.text(span["ts"] - first["ts"], line, f" {name}", color=ink, fontsize=7, va="center")
axes.invert_yaxis()
axes.set_yticks([5 * i for i in range(len(threads))], [f"thread {i}" for i in range(len(threads))])
axes.set_xlabel("microseconds")
axes.set_title("one forward and one backward pass")
plt.show()

# %% tags=["claim"]
assert whole > 2 * (min(span["ts"] for span in spans if "Backward0" in span["name"]) - first["ts"]), (
    "the backward pass is longer than the forward pass"
)

# %% [markdown]
# The bars whose names end in `Backward0` belong to the backward pass, and it is the longer one. For a
# linear layer the forward pass computes one matrix product. The backward pass computes two, one for the
# gradient of the weights and one for that of the input. (Here the first layer needs only one, since the
# batch needs no gradient.)
#
# ## A trace from every rank
#
# In data-parallel training the ranks wait for each other, and then the trace of a single rank can
# mislead you. So record them all. Here is a small data-parallel step, as a program for `torchrun`.
# Three ranks take three steps; the first two warm up, and the third is recorded. In that step rank 1
# has bad luck: its batch is 100 ms late, as if from a slow disk. With `record_function` the program
# gives names to its own parts.

# %%
PROGRAM = """
import sys
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function, schedule

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
network = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024))


def step(late):
    with record_function("load batch"):
        batch = torch.randn(32, 1024)
        if late:
            time.sleep(0.1)
    with record_function("forward"):
        loss = network(batch).square().mean()
    with record_function("backward"):
        network.zero_grad()
        loss.backward()
    gradients = torch.cat([parameter.grad.flatten() for parameter in network.parameters()])
    dist.all_reduce(gradients)


plan = schedule(wait=0, warmup=2, active=1)
with profile(activities=[ProfilerActivity.CPU], schedule=plan) as prof:
    for number in range(3):
        step(late=rank == 1 and number == 2)
        if number < 2:
            prof.step()
prof.export_chrome_trace(f"{sys.argv[1]}/rank{rank}.json")
dist.destroy_process_group()
"""

# %% [markdown]
# Each rank writes a trace of its own. We read the three of them and pick the spans that interest us.
#
# **Predict:** on which rank is the all-reduce shortest?
#
# <details><summary>On none: it is over for all of them at once</summary>
#
# No: it ends for all at about the same time, but they do not begin at the same time.
# </details>
#
# <details><summary>On rank 1, which is late</summary>
#
# Yes: when it arrives, the others are already there. It does not have to wait.
# </details>
#
# <details><summary>On ranks 0 and 2, which are in time</summary>
#
# No: they begin early and cannot finish without rank 1. Their waiting counts as all-reduce.
# </details>

# %% tags=["nbval-ignore-output"]
NAMES = ("load batch", "forward", "backward", "c10d::allreduce_", "gloo:all_reduce")
torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=3"]

with tempfile.TemporaryDirectory() as folder:
    program = Path(folder, "program.py")
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, *torchrun, program, folder], check=True, capture_output=True, timeout=100)
    traces = [read_trace(f"{folder}/rank{rank}.json") for rank in range(3)]

steps = [{span["name"]: span for span in trace if span["name"] in NAMES} for trace in traces]
print("milliseconds    " + "".join(f"{name:>18}" for name in NAMES))
for r, step in enumerate(steps):
    print(f"rank {r}          " + "".join(f"{step[name]['dur'] / 1e3:18.1f}" for name in NAMES))

# %% tags=["claim"]
assert 2 * steps[1]["gloo:all_reduce"]["dur"] < min(steps[r]["gloo:all_reduce"]["dur"] for r in (0, 2)), (
    "the rank that is late has the shortest all-reduce"
)
assert steps[0]["gloo:all_reduce"]["dur"] > sum(steps[0][name]["dur"] for name in NAMES[:4]), (
    "most of rank 0's step goes into gloo:all_reduce"
)
assert 2 * steps[0]["c10d::allreduce_"]["dur"] < steps[0]["gloo:all_reduce"]["dur"], (
    "the call returns early"
)

# %% [markdown]
# The rank that is late has the *shortest* all-reduce. The profiler counts the waiting of the others as
# communication. The trace of rank 0 alone would have told you that most of the step goes into
# `gloo:all_reduce`, and you might have bought a faster network.
#
# The collective appears twice. `c10d::allreduce_` is the call, on the thread that made it, and it
# returns early: a launch, as at the start of this chapter. `gloo:all_reduce` is the work, on a thread
# of gloo's.
#
# ### Waiting or transfer?
#
# Every element of the result depends on all ranks. So **no rank can finish before the last
# rank has begun**. Until that moment, the others wait. (They may already pass some pieces among
# themselves, but they cannot finish.) The rest is transfer.
#
# Write this down as a function. It is not graded, but the next cells use it.

# %%
def waiting_and_transfer(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """From begin and end of one collective on each rank: how long each waits, and then transfers."""
    ### BEGIN SOLUTION
    last = max(begin for begin, _ in spans)
    return [(last - begin, end - last) for begin, end in spans]
    ### END SOLUTION


try:  # the first rank begins at 0, the second at 40, and both are done at 50
    split_known = waiting_and_transfer([(0, 50), (40, 50)]) == [(40, 10), (0, 10)]
except NotImplementedError:
    split_known = False
print("waiting_and_transfer is right:", split_known)

# %% [markdown]
# Here are the three ranks below each other, on one clock.

# %% tags=["nbval-ignore-output"]
COLOURS = {"load batch": "#E69F00", "forward": "#56B4E9", "backward": "#0072B2"}
zero = min(step["load batch"]["ts"] for step in steps)


def interval(span):
    """Milliseconds from the beginning of the step to the span's begin and end."""
    return (span["ts"] - zero) / 1e3, (span["ts"] + span["dur"] - zero) / 1e3


figure, axes = plt.subplots(figsize=(9, 2.6))
for name, colour in COLOURS.items():
    bars = [interval(step[name]) for step in steps]
    axes.barh(range(3), [e - b for b, e in bars], left=[b for b, _ in bars], color=colour, label=name)
reduces = [interval(step["gloo:all_reduce"]) for step in steps]
if split_known:
    waits, transfers = zip(*waiting_and_transfer(reduces))
    starts = [begin for begin, _ in reduces]
    axes.barh(range(3), waits, left=starts, color="white", edgecolor="#666666", hatch="///", label="waiting")
    joined = [begin + wait for begin, wait in zip(starts, waits)]
    axes.barh(range(3), transfers, left=joined, color="#009E73", label="transfer")
    for r in range(3):
        print(f"rank {r}: waits {waits[r]:6.1f} ms, transfers {transfers[r]:5.1f} ms")
else:
    widths = [end - begin for begin, end in reduces]
    axes.barh(range(3), widths, left=[b for b, _ in reduces], color="#009E73", label="gloo:all_reduce")
axes.invert_yaxis()
axes.set_yticks(range(3), [f"rank {rank}" for rank in range(3)])
axes.set_xlabel("milliseconds")
axes.set_title("one data-parallel step; rank 1 is late")
axes.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.3), fontsize=8, frameon=False)
plt.show()

# %% [markdown]
# Now the picture says what to fix: the disk of rank 1. A network twice as fast would save half of the
# transfer at best, and nothing of the waiting. (The gaps before the all-reduce are work that has no name
# in the program, such as copying the gradients into one tensor.)
#
# The three ranks share a machine, and so a clock. The clocks of different machines disagree. Then
# compare durations instead. All ranks finish at about the same time, so the shortest all-reduce belongs
# to the rank that arrived last, and each of the others waited for about the difference.
#
# On GPUs you look for NCCL's kernels, whose names begin with `ncclDevKernel`, on the line of their stream.
# Their time too is part transfer and part waiting for other ranks. For jobs of many ranks, [Holistic Trace
# Analysis](https://hta.readthedocs.io/en/latest/) compares the traces for you. And
# [Nsight Systems](https://docs.nvidia.com/nsight-systems/UserGuide/index.html) (`nsys profile`) draws the
# same time line for a whole machine, with the calls to CUDA and the network, and without `torch.profiler`.
#
# ## Memory
#
# With `profile_memory=True` the profiler also notes what each operator allocates. A layer norm of
# 1000 × 1000 numbers in `float32` needs 4,000,000 bytes for its result. What else might it keep?

# %%
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
    y = layer_norm(torch.ones(1000, 1000))

rows = {row.key: row.cpu_memory_usage for row in prof.key_averages()}
print("aten::native_layer_norm allocates", rows["aten::native_layer_norm"], "bytes")
print("the result has                   ", y.nbytes, "bytes")

# %% [markdown]
# The other 8,000 bytes are the mean and the reciprocal standard deviation of each of the 1000 rows, 4
# bytes each. The backward pass will need them.
#
# On a GPU, where memory runs out sooner, PyTorch can [record every allocation with its Python
# stack](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html), and draw them over time in a browser.
#
# ## Inside a kernel
#
# To `torch.profiler` a kernel is one bar. Why is it slow: does it wait for memory, does it have too few
# threads, do its accesses to shared memory collide? That is a question for [Nsight
# Compute](https://docs.nvidia.com/nsight-compute/NsightComputeCli), in a terminal, on a machine with an
# NVIDIA GPU:
#
# ```
# ncu --set full -o layer_norm python my_script.py
# ncu-ui layer_norm.ncu-rep
# ```
#
# `--set full` collects everything that there is to collect. For that `ncu` runs **each kernel many
# times**, with different counters each time. A program of one second may take minutes, so profile a short
# one, and never take times from it. `--kernel-name` and `--launch-count` choose which kernels to look
# at.
#
# The machine on which this chapter was built has no GPU. On one that does, `python -m benchmarks.kernels`
# has recorded how long the layer norm of 10000 × 10000 numbers takes, and which kernels it runs:

# %% tags=["nbval-ignore-output"]
recorded = Path("../docs/recorded/kernels.json")
if recorded.is_file():
    record = json.loads(recorded.read_text())
    print(f"recorded {record['date']} on {record['device']}, torch {record['torch']}, CUDA {record['cuda']}")
    print(f"host clock around the call: {record['host_ms']:.3f} ms   events: {record['events_ms']:.3f} ms")
    print("on the host:  ", " → ".join(record["operators"]))
    print("on the device:", ", ".join(record["kernels"]))
else:
    print("the record is in docs/recorded/kernels.json of the repository")

# %% tags=["claim"]
assert 5 * record["host_ms"] < record["events_ms"], "a clock on the host sees only the launch"
assert len(record["kernels"]) == 1, "one kernel runs"

# %% [markdown]
# All of it is there: the chain of calls that ends with a launch, the one kernel, and a clock on the host
# that sees only the launch.
#
# ## Code of your own
#
# When an operator that you need is missing, or too slow, you can write it. A C++ function on tensors
# takes three things: the function, a **binding** that gives it a name in Python, and a compiler.
# [`load_inline`](https://docs.pytorch.org/docs/stable/cpp_extension.html) puts them together while your
# program runs.
#
# C++ knows nothing that you do not include. This function is correct, but what does a compiler say if
# you give it nothing else?

# %% tags=["nbval-ignore-output"]
BARE = "torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) { return a + b; }"

if compiler:
    command = [compiler, "-fsyntax-only", "-x", "c++", "-"]
    told = subprocess.run(command, input=BARE, capture_output=True, text=True).stderr
    print(next(line for line in told.splitlines() if "error" in line))
else:
    print("no C++ compiler here")

# %% [markdown]
# It stumbles over the first word. Here is a whole listing, the naive version first: `halve` walks
# through memory from the first number to the last. `TORCH_LIBRARY` binds it as
# `torch.ops.lesson.halve`.
#
# The compiler has to read some ten megabytes of torch's headers, so this takes ten to thirty seconds.
# Including `torch/types.h` instead of everything (`torch/extension.h`) about halves that.

# %% tags=["nbval-ignore-output"]
HALVE_CPP = r"""
#include <torch/types.h>

torch::Tensor halve(torch::Tensor x) {
  torch::Tensor half = torch::empty(x.sizes(), x.options());
  const float* from = x.data_ptr<float>();
  float* to = half.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] / 2;
  return half;
}

TORCH_LIBRARY(lesson, m) { m.def("halve", &halve); }
"""

can_build = bool(compiler and shutil.which("ninja"))
if can_build:
    from torch.utils.cpp_extension import load_inline

    # if you change it, restart the kernel: a name can be bound only once
    load_inline(
        "lesson", HALVE_CPP, is_python_module=False, no_implicit_headers=True,
        build_directory=tempfile.mkdtemp(),
    )
    print(torch.ops.lesson.halve(torch.arange(6.0)))
else:
    print("not compiled: a C++ compiler and ninja are needed, see python -m grader doctor")

# %% [markdown]
# It works.
#
# **Predict:** what does it make of a transposed matrix?
#
# <details><summary>The right numbers in the right places</summary>
#
# No: that takes a loop that knows the strides, and this one walks through memory from end to end.
# </details>
#
# <details><summary>An exception, because the strides do not fit</summary>
#
# No: a pointer knows no strides, so nothing in this function can notice.
# </details>
#
# <details><summary>The right numbers in the wrong places</summary>
#
# Yes: it halves them in the order in which they lie in memory, which `.t()` has not changed.
# </details>

# %% tags=["nbval-ignore-output"]
if can_build:
    x = torch.arange(6.0).reshape(2, 3).t()
    print("right:", (x / 2).tolist())
    print("halve:", torch.ops.lesson.halve(x).tolist())

# %% [markdown]
# There is no complaint. `.t()` does not move any number: it is another way to walk through the same
# memory, and a pointer knows nothing about that. If the order is wrong, `x = x.contiguous();` makes a
# copy in the right one.
#
# A pointer does not know where a tensor **ends** either. If a loop over two tensors follows the longer
# one, it reads beyond the memory of the shorter one. You get no exception but wrong numbers, a crash,
# or the data of some other tensor. So C++ that is called from Python has to check its arguments itself:
# `TORCH_CHECK(condition, "what is wrong")` raises a `RuntimeError` in Python if the condition does not hold.
#
# ## Exercise: VECTOR_ADD_CPP
#
# Write C++ source with a function
#
# ```
# torch::Tensor vector_add(torch::Tensor a, torch::Tensor b)
# ```
#
# that returns the sum of two `float32` tensors of the same shape, element by element, in a loop of your
# own: `a + b`, with which torch would add the tensors for you, is refused. It must accept any shape, even
# one without elements, and any strides. It must **raise** for everything else: for shapes that differ,
# even if torch could broadcast one of them, and for other dtypes. The binding is made for you.
#
# `check` gives your text to a compiler, which takes a while, and shows its first error. Without a
# compiler, the exercise is skipped.

# %%
VECTOR_ADD_CPP = r"""
#include <torch/extension.h>

### BEGIN SOLUTION
torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "shapes differ: ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.scalar_type() == torch::kFloat32, "a must be float32, not ", a.scalar_type());
  TORCH_CHECK(b.scalar_type() == torch::kFloat32, "b must be float32, not ", b.scalar_type());
  a = a.contiguous();
  b = b.contiguous();
  torch::Tensor sum = torch::empty_like(a);
  const float* x = a.data_ptr<float>();
  const float* y = b.data_ptr<float>();
  float* z = sum.data_ptr<float>();
  for (int64_t i = 0; i < a.numel(); ++i) z[i] = x[i] + y[i];
  return sum;
}
### END SOLUTION
"""

check(VECTOR_ADD_CPP=VECTOR_ADD_CPP)

# %% [markdown]
# ### The same on a GPU
#
# On a GPU the loop becomes a **kernel**, with one thread for each element. A **launch configuration**
# between `<<<` and `>>>` says how many blocks there are, and how many threads in each. The number of
# elements is rarely a multiple of the block size, so each thread asks whether it is still inside. The
# host has to check its arguments as before, and also whether the launch went well. `nvcc` compiles it,
# where there is a GPU. (There was none where this chapter was built. For an H100, `nvcc` 13.0 has compiled this
# listing without an error, but we have not run it.)

# %% tags=["nbval-ignore-output"]
ADD_CU = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void add_kernel(const float* x, const float* y, float* z, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

torch::Tensor cuda_add(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.is_cuda() && a.device() == b.device(), "both must be on one GPU");
  TORCH_CHECK(a.sizes() == b.sizes() && a.scalar_type() == torch::kFloat32 &&
              b.scalar_type() == torch::kFloat32, "two float32 tensors of one shape are needed");
  a = a.contiguous();
  b = b.contiguous();
  torch::Tensor sum = torch::empty_like(a);
  const int threads = 256;
  const int64_t blocks = (a.numel() + threads - 1) / threads;
  if (blocks > 0) {
    add_kernel<<<blocks, threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), sum.data_ptr<float>(), a.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  return sum;
}
"""

if on_gpu and can_build and shutil.which("nvcc"):
    bound = load_inline(
        "cuda_lesson",
        "torch::Tensor cuda_add(torch::Tensor a, torch::Tensor b);",
        cuda_sources=ADD_CU,
        functions=["cuda_add"],
    )
    a, b = torch.randn(2, 1_000_001, device="cuda")
    print("right:", torch.equal(bound.cuda_add(a, b), a + b))
else:
    print("not compiled: a GPU, nvcc, a C++ compiler and ninja are needed")

# %% [markdown]
# ## Summary
#
# Back to the step that takes 400 milliseconds instead of 250. You now have a question for each suspect:
#
# - **The stopwatch?** A clock on the host measures the launch of asynchronous work. Let the device take
#   the time, with events, and synchronize before you ask them. Warm up, and take the median.
# - **A kernel?** Sort the table by *self* time; `ncu` looks inside the kernel.
# - **Python?** Look for gaps between the bars of the trace. A trace is JSON: name, begin, duration,
#   thread.
# - **Another rank?** Record every rank. The rank with the shortest collective arrived last; whatever
#   the others took beyond that was waiting.
#
# Only then do you optimise. If that means C++ of your own, it must check shapes, dtypes and strides
# itself, since a pointer knows none of them.
#
# ### Check yourself
#
# <details><summary>A matrix product on a GPU takes 12 µs, whatever the size of the matrices. What was measured?</summary>
#
# The launch. The host read its clock before the device was done.
# </details>
#
# <details><summary>An operator accounts for 80 % of the total time and 1 % of the self time. Should you make it faster?</summary>
#
# Not the operator itself, whose own work is only 1 %. Look at what it calls.
# </details>
#
# <details><summary>With wait=1, warmup=3, active=2, repeat=1 your loop makes five steps. What is in the profile?</summary>
#
# One step is left alone, three are thrown away, one is recorded. There was no second active step, so
# the cycle was not completed.
# </details>
#
# <details><summary>In the traces of four ranks the same all-reduce takes 30, 31, 5 and 30 ms. Which rank is slow, and what does a faster network save?</summary>
#
# Rank 2, whose all-reduce is shortest: it arrived last, about 25 ms after the others. The transfer took
# about 5 ms, and a faster network can save only part of that.
# </details>
#
# **Next:** [19 · Backends](19_backends.ipynb): the same program on gloo, MPI and NCCL.
