# %% [markdown]
# # 18 · Profiling
#
# Suppose a step takes 400 milliseconds, and by arithmetic like that of chapter
# [16](16_scale_math.ipynb) it should take 250. Where are the other 150? In a kernel, in Python, in a wait for another rank, or in the stopwatch
# itself? Guessing is slow. A profiler shows it.
#
# **You will learn** to take the time of work that is done elsewhere, to read the table and the trace of
# `torch.profiler`, and to compile a function of your own in C++.
#
# **You need** chapter [14](14_bandwidth.ipynb), and for the last part a C++ compiler and
# [ninja](https://ninja-build.org) (`python -m grader doctor` says whether you have them; the chapter
# runs without, too). A GPU is not needed: where there is one, the cells that are for it run.
#
# **Time:** 75 minutes, and 3 exercises.

# %%
import json
import os
import queue
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler says when it begins and ends: not here

import matplotlib.pyplot as plt
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from grader import check, hint, predict

torch.set_num_threads(1)  # so that times depend less on what else the machine does
on_gpu = torch.cuda.is_available()
compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

# %% [markdown]
# ## A clock that stops too early
#
# A GPU works **by itself**. When you call an operation on a CUDA tensor, the host puts it into a queue,
# a *stream*, and goes on at once
# ([asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)).
# You need no GPU to see what that does to a measurement. Here is a device that plays one: a thread that
# takes work from a queue. Each piece of its work takes 50 ms.

# %%
class Device:
    """Works by itself: launch returns at once, synchronize when all is done."""

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

# %% [markdown]
# **Predict:** what does the clock show after one call of `kernel`, and after waiting for it?

# %% tags=["nbval-ignore-output"]
started = time.perf_counter()
kernel()
print(f"after the call:        {1e3 * (time.perf_counter() - started):7.3f} ms")
device.synchronize()
print(f"after synchronizing:   {1e3 * (time.perf_counter() - started):7.3f} ms")

# %% [markdown]
# A host's clock around a call of an asynchronous device measures the **launch**. However large you
# make the work, the first number stays the same: that is how you recognise it.
#
# Waiting helps, but it measures the launch, the kernel *and* the waiting. Better: let the device itself
# note the time, before and after the kernel, in its own queue. Such a note is called an **event**.
#
# **Predict:** three kernels are launched in a row, each between two events. When does the host know
# the times? What are they?

# %% tags=["nbval-ignore-output"]
class Event:
    """Takes the time when the device comes to it."""

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

print("known before the device is done:", [hasattr(end, "time") for _, end in pairs])
device.synchronize()
print("milliseconds:", [round(begin.elapsed_time(end), 1) for begin, end in pairs])

# %% [markdown]
# On a GPU these are `torch.cuda.Event(enable_timing=True)` and `torch.cuda.synchronize()`, and the code is
# the same, line by line. Here is the whole listing; it runs where there is a GPU.

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
    print("no GPU here")

# %% [markdown]
# A listing about time is worth nothing if it has never run. Two names of the next one are defined nowhere.
#
# **Predict:** which two?

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
# So every listing of this course is a cell that has been run, or says that it has not.
#
# ## Warm up, and take the median
#
# The first calls are special here as well: memory is fetched, libraries are loaded, on a GPU kernels are
# compiled or chosen. Forget them. And the machine has other things to do now and then, which makes a call
# slow and never fast. So the times are not spread evenly around the true one.
#
# **Predict:** one call of nine is disturbed and takes ten times as long. What becomes of the mean, and
# of the median?

# %%
milliseconds = [2.0, 2.1, 1.9, 2.0, 20.0, 2.1, 1.9, 2.0, 2.0]
print("mean:  ", statistics.mean(milliseconds))
print("median:", statistics.median(milliseconds))

# %% [markdown]
# ## Exercise: time_kernel
#
# `fn(*args)` starts some work. Call it `warmup` times, then `iterations` times, and return the **median**
# time of the latter, in **milliseconds**. If one of `args` is a CUDA tensor (`is_cuda`), use events of
# `torch.cuda`; otherwise `time.perf_counter`. (Of an even number of times the median is the mean of the two
# in the middle.)
#
# `check` lends you a clock and a device. The clock is the one of chapter 14. The device is *played*, like
# the one above: `torch.cuda.Event`, `torch.cuda.synchronize` and their like stand for it, and it keeps
# the rules of CUDA: a call returns before the work is done, and an event cannot be asked before it has
# happened. So the path for a GPU is judged on every machine. What a real GPU says is shown below the
# exercise, if you have one.

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
# Now use it. A layer norm reads every number of its input and writes as many. **Predict:** four times as
# many rows: how much longer does it take?

# %%
predict("")

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
# ## Where does the time go?
#
# A time says *how long*. A **profiler** says *where*. `torch.profiler` notes when each operator begins
# and ends, and on a GPU each kernel as well. That costs time itself, and the first steps are special, so one
# does not record everything: a **schedule** says what is done with each step.
#
# **Predict:** `wait=1, warmup=3, active=2, repeat=1`. Of eight steps, which are recorded?

# %%
plan = schedule(wait=1, warmup=3, active=2, repeat=1)
print([plan(step).name for step in range(8)])

# %% [markdown]
# One step is left alone, in three the profiler runs and its notes are thrown away, two are recorded, and
# after that there is nothing more. Each step ends with `prof.step()`.

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
# `key_averages()` puts all calls of an operator into one row. **Predict:** `aten::layer_norm` and
# `aten::native_layer_norm`: which has the larger *total* time, and which the larger *self* time?

# %% tags=["nbval-ignore-output"]
sort_by = "self_cuda_time_total" if on_gpu else "self_cpu_time_total"
print(prof.key_averages().table(sort_by=sort_by, row_limit=6, max_name_column_width=30))

# %% [markdown]
# **Total** time counts what an operator calls as well; **self** time does not. `aten::layer_norm` does
# next to nothing itself: it calls `aten::native_layer_norm`, and so on, inward.

# %%
def callers(event):
    return [] if event is None else [*callers(event.cpu_parent), event.name]


inner = next(event for event in prof.events() if event.name == "aten::native_layer_norm")
print(" → ".join(name for name in callers(inner) if name.startswith("aten")))

# %% [markdown]
# On a CPU the numbers are worked out inside of `aten::native_layer_norm`. On a GPU the chain goes on:
# it calls `cudaLaunchKernel`, which is over in microseconds, and the **kernel** runs on the GPU's own line
# of the trace, later.
#
# ## Exercise: hottest_ops
#
# From a finished profile, the names of the `k` operators with the most **self** time on the CPU, the
# hottest first; all of them if there are fewer. (In what order those stand that take equally long does not
# matter.)

# %%
def hottest_ops(profile, k: int) -> list[str]:
    """The names of the k operators with the most time of their own."""
    ### BEGIN SOLUTION
    rows = sorted(profile.key_averages(), key=lambda row: row.self_cpu_time_total, reverse=True)
    return [row.key for row in rows[:k]]
    ### END SOLUTION


check(hottest_ops)

# %% [markdown]
# What is hot in the training step of a small network? **Predict:** the three hottest operators.

# %%
predict("")

# %% tags=["nbval-ignore-output"]
network = torch.nn.Sequential(
    torch.nn.Linear(512, 512), torch.nn.LayerNorm(512), torch.nn.GELU(), torch.nn.Linear(512, 512)
)
batch = torch.randn(256, 512)


def training_step():
    network(batch).square().mean().backward()


training_step()
with profile(activities=[ProfilerActivity.CPU]) as training:
    training_step()

if check(hottest_ops):
    print(hottest_ops(training, 3))

# %% [markdown]
# ## The trace
#
# A table has lost *when* things happened. The trace has it: a file of JSON that
# [Perfetto](https://ui.perfetto.dev) opens in a browser, or `chrome://tracing`. Let us open it ourselves.
#
# ![A time line of two threads. On the host: aten::layer_norm, below it aten::native_layer_norm, below that the launch of a kernel. On the device, later: the kernel. The host is done before the kernel begins](../imgs/profiler_timeline.png)

# %%
folder = Path(tempfile.mkdtemp())
training.export_chrome_trace(str(folder / "trace.json"))
trace = json.loads((folder / "trace.json").read_text())
shutil.rmtree(folder)

spans = [event for event in trace["traceEvents"] if event.get("ph") == "X" and event["cat"] == "cpu_op"]
first = min(spans, key=lambda span: span["ts"])
print("a span has:", [key for key in ("name", "ts", "dur", "tid") if key in first])
print("the first operator:", first["name"])

# %% [markdown]
# `ts` is when it began and `dur` how long it took, both in microseconds. That is all that a timeline needs:
# a bar for each span, and those that are called below their callers. On a CPU the backward pass runs on the
# thread that called it; on a GPU autograd has a
# [thread for each device](https://docs.pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd).
# **Predict:** will the backward pass be longer or shorter than the forward pass?

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


threads = list(dict.fromkeys(span["tid"] for span in sorted(spans, key=lambda span: span["ts"])))
figure, axes = plt.subplots(figsize=(9, 3))
whole = max(span["ts"] + span["dur"] for span in spans) - first["ts"]
for span in spans:
    level = depth(span)
    line = 5 * threads.index(span["tid"]) + level
    colour = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")[level % 4]
    axes.barh(line, span["dur"], left=span["ts"] - first["ts"], color=colour, edgecolor="white", height=0.9)
    if span["dur"] > 0.012 * whole * len(span["name"]):  # where its name has room
        axes.text(span["ts"] - first["ts"], line, span["name"].removeprefix("aten::"), fontsize=7, va="center")
axes.invert_yaxis()
axes.set_yticks([5 * i for i in range(len(threads))], [f"thread {i}" for i in range(len(threads))])
axes.set_xlabel("microseconds")
axes.set_title("one forward and one backward pass")
plt.show()

# %% [markdown]
# ## Memory
#
# With `profile_memory=True` the profiler notes what each operator allocates. **Predict:** a layer norm of
# 1000 × 1000 `float32`: how many bytes does it need for its result? And what else might it keep?

# %%
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
    y = layer_norm(torch.ones(1000, 1000))

rows = {row.key: row.cpu_memory_usage for row in prof.key_averages()}
print("aten::native_layer_norm allocates", rows["aten::native_layer_norm"], "bytes")
print("the result has                   ", y.nbytes, "bytes")

# %% [markdown]
# The rest are the mean and the reciprocal standard deviation of each row, 4 bytes each for 1000 rows: the
# backward pass will want them.
#
# ## Inside a kernel
#
# The profiler of torch sees a kernel as one bar. Why it is as slow as it is (waiting for memory? too few
# threads? bank conflicts?) is for
# [Nsight Compute](https://docs.nvidia.com/nsight-compute/NsightComputeCli) to say, on a machine with an
# NVIDIA GPU, in a terminal:
#
# ```
# ncu --set full -o layer_norm python my_script.py
# ncu-ui layer_norm.ncu-rep
# ```
#
# `--set full` collects everything there is to collect. For that `ncu` runs **each kernel many times**, with
# other counters each time: a program that takes a second may take minutes, so profile a short one, and
# never take times from it. `--kernel-name` and `--launch-count` choose what is looked at. (We show no output
# here: there was no GPU when this chapter was written, and an invented one would teach nothing.)
#
# ### Recorded on a GPU
#
# `python -m benchmarks.kernels` takes, on a machine with a GPU, the times of the 10000 × 10000 layer norm
# and the names of its kernels, and records them with the device, the versions and the date. If somebody
# has, here they are.

# %% tags=["nbval-ignore-output"]
recorded = Path("../docs/recorded/kernels.json")
if recorded.is_file():
    record = json.loads(recorded.read_text())
    print(f"recorded {record['date']} on {record['device']}, torch {record['torch']}, CUDA {record['cuda']}")
    print(f"host clock around the call: {record['host_ms']:.3f} ms   events: {record['events_ms']:.3f} ms")
    print("on the host:  ", " → ".join(record["operators"]))
    print("on the device:", ", ".join(record["kernels"]))
else:
    print("nothing has been recorded on a GPU yet")

# %% [markdown]
# ## Code of your own
#
# If an operator that you need is missing, or slow, write it. A C++ function on tensors takes three things:
# the function, a **binding** that gives it a name in Python, and a compiler.
# [`load_inline`](https://docs.pytorch.org/docs/stable/cpp_extension.html) puts them together while your
# program runs.
#
# A listing needs its includes. Here is one without, given to the compiler as it stands: the first error is
# about the very first word.

# %% tags=["nbval-ignore-output"]
PRINTED = "torch::Tensor vector_add(torch::Tensor a, torch::Tensor b) { return a + b; }"

if compiler:
    command = [compiler, "-fsyntax-only", "-x", "c++", "-"]
    told = subprocess.run(command, input=PRINTED, capture_output=True, text=True).stderr
    print(next(line for line in told.splitlines() if "error" in line))
else:
    print("no C++ compiler here")

# %% [markdown]
# Now one that is whole. The naive version first: `halve` walks through memory from the first number to the
# last. `TORCH_LIBRARY` binds it as `torch.ops.lesson.halve`.
#
# The compiler reads some ten megabytes of torch's headers, so this takes ten to thirty seconds. We include
# `torch/types.h` instead of all of them (`torch/extension.h`), which halves that.

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

    # if you change it, restart the kernel: a name can be bound once
    load_inline(
        "lesson", HALVE_CPP, is_python_module=False, no_implicit_headers=True,
        build_directory=tempfile.mkdtemp(),
    )
    print(torch.ops.lesson.halve(torch.arange(6.0)))
else:
    print("not compiled: a C++ compiler and ninja are needed, see python -m grader doctor")

# %% [markdown]
# It works. **Predict:** and on a transposed matrix?

# %% tags=["nbval-ignore-output"]
if can_build:
    x = torch.arange(6.0).reshape(2, 3).t()
    print("right:", (x / 2).tolist())
    print("halve:", torch.ops.lesson.halve(x).tolist())

# %% [markdown]
# Nothing complains, and the numbers stand in the wrong places. `.t()` moves no number: it is another way
# to walk through the same memory, and a pointer knows nothing of that. `x = x.contiguous();` first makes a
# copy in order, if one is needed.
#
# A pointer knows nothing of **ends** either. With two tensors, a loop over the longer one reads beyond the
# memory of the shorter one. There is no exception: there are wrong numbers, or a crash, or another tensor's
# data. So C++ that is called from Python has to check what it is given, itself:
# `TORCH_CHECK(condition, "what is wrong")` raises where the condition does not hold, and Python sees a
# `RuntimeError`.
#
# ## Exercise: VECTOR_ADD_CPP
#
# Write C++ source with a function
#
# ```
# torch::Tensor vector_add(torch::Tensor a, torch::Tensor b)
# ```
#
# that returns the sum of two `float32` tensors of one shape, element by element, in a loop of your own; any
# shape, also with no elements, and any strides. It must **raise** for everything else: shapes that differ
# (even if torch could stretch one of them), and other dtypes. The binding is made for you.
#
# `check` gives your text to a compiler, which takes a while, and shows its first error. Where there is no
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
# There the loop becomes a **kernel**, one thread for each element, and a **launch configuration** between
# `<<<` and `>>>` says how many: blocks, and threads in each. The number of elements is rarely a multiple of
# the block, so each thread asks whether it is still inside. The host has to check what it was given, as
# before, and that a launch went well. It is compiled by `nvcc`, where there is a GPU. (Here is what has
# been run nowhere yet by us: no GPU was at hand.)

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
# - A host's clock around an asynchronous call measures the launch. Let the device take the time: events,
#   and synchronize before you ask them.
# - Warm up, and take the median: disturbances only ever make a call slower.
# - A schedule says which steps are recorded. The table has *total* and *self* time: look for the largest
#   self time.
# - The trace is JSON: name, begin, duration, thread. It shows when, and what waits for what.
# - `layer_norm` → `native_layer_norm` → on a GPU a launch → a kernel; `ncu` looks inside of that.
# - C++ of your own checks shapes and dtypes itself, and strides: a pointer knows none of them.
# - A listing that has not been run is a guess.
#
# **Where this is used:** before every optimisation, since most guesses on where time goes are wrong; in
# chapter [15](15_data_parallel.ipynb)'s question whether communication overlaps with backward, which a trace answers at a glance; in
# extensions such as fused optimisers and attention kernels.
#
# ### Check yourself
#
# <details><summary>A matrix product on a GPU takes 12 µs, whatever the size of the matrices. What was measured?</summary>
#
# The launch. The host's clock was read before the device was done.
# </details>
#
# <details><summary>An operator has a total time of 80 % and a self time of 1 %. Should you make it faster?</summary>
#
# Not itself: look at what it calls. Its own work is 1 %.
# </details>
#
# <details><summary>With wait=1, warmup=3, active=2, repeat=1 your loop makes five steps. What is in the profile?</summary>
#
# One step is left alone, three are thrown away, one is recorded. The second active step never came, and so
# the cycle was not complete.
# </details>
#
# **Next:** backends: the same program on gloo, MPI and NCCL.
