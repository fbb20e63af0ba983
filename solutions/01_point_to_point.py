# %% [markdown]
# # 01 · Point to point
#
# A model that is too large for one GPU can be cut between two layers. The first GPU computes the lower
# half, and its result, the *activations*, is what the second GPU starts from. So once per batch a tensor
# has to get from one process to another. That is one message. **Pipeline parallelism** is built on such
# messages, and so is everything else in this course.
#
# **You will learn** to send a tensor from one rank to another, why a send may wait, how two ranks
# can wait for each other forever and how to avoid it, and in which order messages arrive.
#
# **You need** chapter [00](00_ranks_and_groups.ipynb).
#
# **Time:** 80 minutes, with 3 exercises.

# %%
import time

import torch
import torch.distributed as dist

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline, torchrun

# %% [markdown]
# ## The first message
#
# A message has two ends. One rank calls `dist.send`, the other `dist.recv`, and each names the
# other. The receiver supplies a tensor of the right size and dtype, and `recv` fills it. Here rank 0
# sends three numbers to rank 1. What is `y` before and after the receive?

# %%
def first_message():
    if dist.get_rank() == 0:
        x = torch.tensor([1.0, 2.0, 3.0])
        dist.send(x, 1)
    if dist.get_rank() == 1:
        y = torch.zeros(3)
        print("before:", y.tolist())
        source = dist.recv(y, 0)
        print("after: ", y.tolist(), "from rank", source)


run(first_message, 3)

# %% [markdown]
# Rank 2 took no part and returned at once. `recv` returns the rank that the message came from.
#
# `replay` runs a function as well, and shows its messages as they travel. Press *Play* to see them again, or
# *Next* to go step by step. (Later in this chapter you will see what a "round" is.)

# %%
replay(first_message, 2)

# %% [markdown]
# ## When does a send return?
#
# Here rank 1 is late: it sleeps for 0.3 seconds before it receives. Does rank 0's `send` return before that?

# %%
def late_receiver():
    x = torch.ones(4)
    if dist.get_rank() == 0:
        dist.send(x, 1)
        return time.monotonic()
    time.sleep(0.3)
    ready = time.monotonic()
    dist.recv(x, 0)
    return ready


sent, ready = run(late_receiver, 2)
print("send returned after rank 1 was ready to receive:", sent > ready)

# %% [markdown]
# It does not. With gloo, `send` returns only when the message has been handed over, and that needs a
# receive on the other side. If the receiver is late, the sender waits. This is called a **synchronous
# send**.
#
# ![Two time lines. Rank 0 calls send early and waits until rank 1, after its own work, calls recv; then the data moves and both go on](../imgs/send_recv.png)
#
# Other libraries may copy a small message into a buffer of their own and let the sender go on: an
# *eager* send. The [MPI standard](https://www.mpi-forum.org/docs/mpi-4.1/mpi41-report.pdf) (sections
# 3.4 and 3.5) allows both, and calls a program that relies on the buffer *unsafe*. A correct program
# works whether a send waits or not. gloo is a strict teacher here, since it always waits.
#
# ## Both ends must agree
#
# The two ends of a message have to agree on size and dtype. In this course `run` and `check` compare
# them, and explain what does not fit:

# %%
def sizes_differ():
    if dist.get_rank() == 0:
        dist.send(torch.ones(8), 1)
    else:
        dist.recv(torch.zeros(5), 0)


run(sizes_differ, 2, may_fail=True)

# %%
def dtypes_differ():
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), 1)  # float32, which is what torch.ones makes
    else:
        dist.recv(torch.zeros(4, dtype=torch.int64), 0)


run(dtypes_differ, 2, may_fail=True)

# %% [markdown]
# Plain gloo checks much less. The next cell launches two processes with `torchrun`, without the
# grader, and makes two mistakes: a receiver with too much room, and one with another dtype.
#
# **Predict:** what will a tensor of five sevens hold after three ones have arrived in it?
#
# <details><summary>Nothing: <code>recv</code> raises an error, because the sizes differ</summary>
#
# No: plain gloo only checks that there is enough room.
# </details>
#
# <details><summary>1, 1, 1, 7, 7</summary>
#
# Yes: three numbers are new, and nothing says that the other two are old.
# </details>
#
# <details><summary>1, 1, 1, 0, 0</summary>
#
# No: where nothing has arrived, nothing is written.
# </details>

# %%
script = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.send(torch.ones(3), 1)
    dist.send(torch.ones(4), 1)
else:
    y = torch.full((5,), 7.0)
    dist.recv(y, 0)
    print("3 sent, room for 5:       ", y.tolist())
    z = torch.zeros(2, dtype=torch.int64)
    dist.recv(z, 0)
    print("float32 received as int64:", z.tolist())
"""

torchrun(script, 2)

# %% [markdown]
# Neither mistake is noticed. The tail silently stays as it was; and where the dtypes differ, the bits are
# silently read as something else. (Too *little* room is the harmless case: there
# [gloo ends the process](https://github.com/pytorch/gloo/blob/main/gloo/transport/tcp/pair.cc) with a
# message that says how many bytes arrived, and for how many there was room.)
#
# `torch.empty_like(x)` makes a tensor of the same shape and dtype. It is the usual way to get
# something to receive into.
#
# ## Exercise: ping-pong
#
# Rank 0 sends `x` to rank 1. Rank 1 adds 1 and sends it back. Rank 0 returns what came back; every
# other rank returns a copy of its own `x`. There are at least two ranks, and there may be more.
#
# Two messages are enough, both of them between ranks 0 and 1, and `x` itself must stay as it is on every
# rank. If you do not know how to begin, `hint("ping_pong")` does.

# %%
def ping_pong(x: torch.Tensor) -> torch.Tensor:
    """What came back on rank 0; a copy of x elsewhere."""
    ### BEGIN SOLUTION
    y = torch.empty_like(x)
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
        return y
    if dist.get_rank() == 1:
        dist.recv(y, 0)
        dist.send(y + 1, 0)
    return x.clone()
    ### END SOLUTION


check(ping_pong)

# %% [markdown]
# ## Both have something to send
#
# In a pipeline, activations travel forward while gradients travel back, so two neighbours often have
# something for each other. The obvious program is: send mine, then receive yours.
#
# **Predict:** what will happen?
#
# <details><summary>Each gets what the other had</summary>
#
# No, though it may work elsewhere: only if a send returns before its message has been received.
# </details>
#
# <details><summary>Each gets its own back</summary>
#
# No: a message goes to the rank that is named, and neither of them names itself.
# </details>
#
# <details><summary>It is an error, since both send at the same time</summary>
#
# No: both may send at once. What matters is what each of them waits for.
# </details>
#
# <details><summary>Nothing: they wait forever</summary>
#
# Yes: each is in its send, and the receive that it waits for comes after the other's send.
# </details>

# %%
def both_send_first():
    other = 1 - dist.get_rank()
    mine = torch.full((2,), float(dist.get_rank()))
    yours = torch.empty(2)
    dist.send(mine, other)
    dist.recv(yours, other)
    return yours


run(both_send_first, 2, may_fail=True)

# %% [markdown]
# A **deadlock**. Each rank is in its `send` and waits for the other to receive; but the other is in
# *its* send. Neither will ever reach the line below.
#
# Plain gloo would wait until its timeout, which is 30 minutes unless you set another. Here the answer
# came at once: before each call, a rank reports what it is about to do. From these reports the grader
# draws a graph of who waits for whom, the *wait-for graph*. Here it has a cycle: each rank on it waits for
# the next, and none of them will ever go on.
#
# There are two fixes. In the picture, the arrows on the left mean "waits for"; the others are
# messages.
#
# ![Three panels of two ranks each. Left, a cycle: both are in send, and each waits for the other. Middle, one receives first: rank 0 sends while rank 1 receives, then the other way round. Right, both isend first: both messages travel at the same time while both receive, and then both call wait](../imgs/head_to_head.png)
#
# ### Fix 1: one of them receives first
#
# Break the symmetry. Let the lower rank send first and the higher one receive first.

# %%
def one_receives_first():
    other = 1 - dist.get_rank()
    mine = torch.full((2,), 10.0 + dist.get_rank())
    yours = torch.zeros(2)
    if dist.get_rank() < other:
        dist.send(mine, other)
        dist.recv(yours, other)
    else:
        dist.recv(yours, other)
        dist.send(mine, other)
    return yours


run(one_receives_first, 2)

# %% [markdown]
# ### Fix 2: start the send, and do not wait for it yet
#
# `dist.isend` (the *i* stands for *immediate*) starts a send and returns a **request** at once. The
# message is on its way, or will be; `request.wait()` blocks until the send is done. `dist.irecv` does
# the same for a receive.
#
# Here rank 1 is late again. This time rank 0 does not wait in its send, and is free to do other things:

# %%
def late_again():
    x = torch.ones(4)
    if dist.get_rank() == 1:
        time.sleep(0.5)
        ready = time.monotonic()
        dist.recv(x, 0)
        return ready
    request = dist.isend(x, 1)
    after_isend = time.monotonic()
    request.wait()
    return after_isend, time.monotonic()


(after_isend, after_wait), ready = run(late_again, 2)
print("isend returned before rank 1 was ready to receive:", after_isend < ready)
print("wait returned after that:                         ", after_wait > ready)

# %% [markdown]
# ### While the send is under way
#
# After `isend`, rank 0 goes on at once. Suppose that it now changes `x` from 1 to 2.
#
# **Predict:** which value does rank 1 get?
#
# <details><summary>1: <code>isend</code> has made a copy</summary>
#
# No: <code>isend</code> promises no copy. It may read the tensor later.
# </details>
#
# <details><summary>Nobody can say</summary>
#
# Yes: it depends on what comes first, the transfer or the change.
# </details>
#
# <details><summary>2: the message goes out in <code>wait</code></summary>
#
# No: it may go out at any time between <code>isend</code> and the end of <code>wait</code>.
# </details>

# %%
def change_while_sending():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        request = dist.isend(x, 1)
        x += 1
        request.wait()
    else:
        dist.recv(x, 0)


run(change_while_sending, 2, may_fail=True)

# %% [markdown]
# That is a **race**, and the grader reports the race itself, whatever the value was this time. Until `wait`
# has returned, the tensor belongs to the transport: do not write to a tensor that is being sent, and do not
# read one that is being received. The grader also reports a request that is never waited for:

# %%
def forget_to_wait():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        dist.isend(x, 1)
    else:
        dist.recv(x, 0)


run(forget_to_wait, 2, may_fail=True)

# %% [markdown]
# ## Rounds: which messages can travel together?
#
# A network link carries data in both directions at once. Does fix 1 make use of that?

# %%
replay(one_receives_first, 2)

# %% [markdown]
# It does not. Rank 1 sends only after it has received, so one direction of the link is always idle.
#
# We count that in **rounds**. Imagine that every message takes one unit of time, and that a rank
# can send one message and receive one message at a time. The record of your run is replayed under
# these rules, and the number of units until the last message has arrived is the number of rounds.
# It does not depend on how fast your computer is today. Fix 1 takes two rounds.
#
# ## Exercise: exchange
#
# Every rank is given a `peer`, and the two ranks of a pair swap their `x`. The pairing is symmetric: if
# your peer is 3, then 3's peer is you. A rank whose peer is itself returns a copy.
#
# Both messages of a pair should travel in **one round**. That is the point of the exercise: taking
# turns, as in fix 1, gives the right result and earns half.

# %%
def exchange(x: torch.Tensor, peer: int) -> torch.Tensor:
    """The x of peer."""
    ### BEGIN SOLUTION
    if peer == dist.get_rank():
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, peer)
    dist.recv(y, peer)
    request.wait()
    return y
    ### END SOLUTION


check(exchange)

# %% [markdown]
# ### The same as one batch
#
# `dist.batch_isend_irecv` takes a list of sends and receives and starts them all together. With NCCL
# this is the safe way to have both at the same time, so you will meet it in real code.

# %%
def as_a_batch():
    other = 1 - dist.get_rank()
    mine = torch.full((2,), float(dist.get_rank()))
    yours = torch.empty(2)
    operations = [
        dist.P2POp(dist.isend, mine, other),
        dist.P2POp(dist.irecv, yours, other),
    ]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    return yours


print(run(as_a_batch, 2))

# %% [markdown]
# ## Which message meets which receive?
#
# A pipeline cuts each batch into *micro-batches*, so that all its GPUs have work: while the second one
# works on the first micro-batch, the first one starts on the second. So message after message goes over
# the same link. How does the receiver know which is which? Here rank 0 starts three messages before any of
# them has arrived.
#
# **Predict:** in which order will rank 1 get them?
#
# <details><summary>10, 20, 30, every time</summary>
#
# Yes: between two ranks, messages arrive in the order in which they were sent.
# </details>
#
# <details><summary>10, 20, 30 most of the time</summary>
#
# No: luck decides only between messages from <em>different</em> ranks.
# </details>
#
# <details><summary>30, 20, 10</summary>
#
# No: the messages form a queue, not a stack with the last one on top.
# </details>

# %%
def three_in_flight():
    if dist.get_rank() == 0:
        requests = [dist.isend(torch.tensor([value]), 1) for value in (10, 20, 30)]
        for request in requests:
            request.wait()
        return None
    y, got = torch.empty(1, dtype=torch.int64), []
    for _ in range(3):
        dist.recv(y, 0)
        got.append(y.item())
    return got


print("rank 1 received", run(three_in_flight, 2)[1])

# %% [markdown]
# Between two ranks, messages **do not overtake** each other: the receive that was posted first
# gets the message that was sent first. The
# [MPI standard](https://www.mpi-forum.org/docs/mpi-4.1/mpi41-report.pdf) promises it in section 3.5,
# and PyTorch's description of
# [`batch_isend_irecv`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.batch_isend_irecv)
# relies on it. The rings of chapters 05, 06 and 11 send message after message to the same neighbour,
# and are right only because of this rule.
#
# If you need a different order, give messages a **tag**: a number that both ends name. A receive takes only
# messages with its own tag (0 if you do not say), and the rule holds for each tag by itself:

# %%
def by_tag():
    if dist.get_rank() == 0:
        requests = [dist.isend(torch.tensor([value]), 1, tag=value) for value in (10, 20, 30)]
        for request in requests:
            request.wait()
        return None
    y, got = torch.empty(1, dtype=torch.int64), []
    for tag in (30, 10, 20):
        dist.recv(y, 0, tag=tag)
        got.append(y.item())
    return got


print("rank 1 received", run(by_tag, 2)[1])

# %% [markdown]
# Tags work with gloo and MPI;
# [NCCL does not support them](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.send),
# and ignores the one you give. There, the order of the calls is all you have.
#
# ## Exercise: shift
#
# In `exchange`, a rank received from the rank that it sent to. On a ring of more than two, they differ.
#
# Every rank passes its `x` on by `k` places around the ring, and returns what arrives: the `x` of
# rank $(r - k) \bmod n$.
#
# ![Four ranks hold A, B, C, D; after a shift by 1 they hold D, A, B, C](../imgs/shift.png)
#
# `k` may be negative, or larger than $n$. When the shift lands on the rank itself, return a copy
# and send nothing. All messages should travel in **one round**.

# %%
def shift(x: torch.Tensor, k: int) -> torch.Tensor:
    """The x of rank (r - k) mod n."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + k) % n)
    dist.recv(y, (rank - k) % n)
    request.wait()
    return y
    ### END SOLUTION


check(shift)

# %% [markdown]
# Watch your own function at work, with $k = 1$ on five ranks. The data have names: A belongs to rank 0, B
# to rank 1, and so on.

# %%
replay(shift, 5) if check(shift) else None

# %% [markdown]
# ## A receive from anyone
#
# `dist.recv(y)` without a source takes whichever message is available first, from any rank, and returns
# where it came from. Such a **wildcard** receive is handy when you do not know who will be ready first. It
# has a price: the order is no longer yours to choose. (NCCL has no such receive:
# [`ncclRecv`](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/p2p.html#ncclrecv) always names
# its peer.)
#
# Which ranks will be in this list, and in which order?

# %%
def whoever_comes():
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(torch.tensor([rank]), 0)
        return None
    y = torch.empty(1, dtype=torch.int64)
    return [dist.recv(y) for _ in range(n - 1)]


print("in this order:", run(whoever_comes, 4)[0])

# %% [markdown]
# Any order is possible: messages from *different* senders may overtake each other. On a network the
# fastest arrives first, and that changes from run to run. To give you the same answer every time, `run`
# takes the highest rank's message first. Then it tries other orders without showing them, and if your
# function hangs or raises in one of those, that is what it reports. `check` compares the values in the
# other orders as well. So an answer that needs one particular order fails at once, rather than once a
# month on a cluster.
#
# ## Python objects
#
# Tensors are the fast way. For a small Python object there is `send_object_list`, which turns it
# into bytes (with pickle) and sends those. How many messages does it take? The record that `run` keeps of
# them, the *trace*, has counted them:

# %%
def send_a_dictionary():
    if dist.get_rank() == 0:
        dist.send_object_list([{"learning rate": 0.1, "steps": 100}], 1)
        return None
    received = [None]
    dist.recv_object_list(received, 0)
    return received[0]["steps"]


dictionary = run(send_a_dictionary, 2)
print("rank 1 received", dictionary[1])
print("messages:", dictionary.trace.traffic.messages)

# %% [markdown]
# Two: the receiver needs to know how many bytes will arrive before it can make room for them. The
# same trick, sizes first, is used whenever only the sender knows the size.
#
# ## Summary
#
# - A message needs a `send` and a `recv` that agree on peer, tag, size and dtype. Plain gloo does not
#   notice a receiver that is too large.
# - With gloo a send waits for its receive: it is **synchronous**. Never count on a send that does not
#   wait.
# - If ranks wait for each other in a cycle, that is a **deadlock**. Break the cycle: let one of them
#   receive first, or use `isend`, `irecv` or `batch_isend_irecv`.
# - Wait for every request, and leave its tensor alone until then.
# - Between two ranks, messages with the same tag **do not overtake** each other.
# - **Rounds** count how much time messages need when independent ones travel together.
#
# You now have all that pipeline parallelism needs to pass activations from GPU to GPU. [Ring
# attention](https://arxiv.org/abs/2310.01889) passes keys and values around a ring in the same way, and
# every collective is made of messages like these.
#
# ### Check yourself
#
# <details><summary>Ranks 0, 1 and 2 each send to the right and then receive from the left. Does it hang?</summary>
#
# With gloo, yes. All three are in send; the cycle just has three members instead of two.
# </details>
#
# <details><summary>In the same ring only rank 0 receives first and sends afterwards. Does it still hang?</summary>
#
# No. Rank 2's send meets rank 0's receive. Then rank 2 receives, which frees rank 1. Rank 1 receives in
# turn, and rank 0's send is done. But the messages go one after the other: 3 rounds instead of 1.
# </details>
#
# <details><summary>Rank 0 sends 4 numbers, and rank 1 receives into a tensor of 6. What happens on plain gloo?</summary>
#
# Nothing that you would notice. The last two numbers are what they were before.
# </details>
#
# <details><summary>Why should you not print a tensor between <code>irecv</code> and <code>wait</code>?</summary>
#
# You can, but what you see means nothing: all of the data may have arrived, or none, or half of it.
# </details>
#
# **Next:** [02 · Broadcast](02_broadcast.ipynb): your first collective.
