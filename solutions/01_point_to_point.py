# %% [markdown]
# # 01 · Point to point
#
# **You will learn** to send a tensor from one rank to another, why a send may wait, how two ranks
# can wait for each other for ever, and three ways out of that.
#
# **You need** chapter [00](00_ranks_and_groups.ipynb).
#
# **Time:** 60 minutes, and 3 exercises.

# %%
import time

import torch
import torch.distributed as dist

from grader import check, hint, run

# %% [markdown]
# ## The first message
#
# A message has two ends. One rank calls `dist.send`, the other `dist.recv`, and each names the
# other. The receiver brings a tensor of the right size and dtype, and `recv` fills it.
#
# **Predict:** what is `y` on rank 1 before and after the receive?

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


result = run(first_message, 3)

# %% [markdown]
# Rank 2 took no part and simply went home. `recv` returns the rank that the message came from.
#
# `run` keeps a record of every message, the *trace*. (What a "round" is comes later in this
# chapter.)

# %%
print(result.trace)

# %% [markdown]
# ## A send may wait
#
# With gloo, `send` returns only when the message has been handed over, and that needs the other
# side to have called `recv`. If the receiver is late, the sender stands and waits. This is called
# a *rendezvous*, a meeting.
#
# ![Two time lines. Rank 0 calls send early and waits until rank 1, after its own work, calls recv; then the data moves and both go on](../imgs/send_recv.png)
#
# **Predict:** rank 1 sleeps for 0.3 seconds before it receives. How long does rank 0's `send` take?

# %%
def late_receiver():
    x = torch.ones(4)
    started = time.perf_counter()
    if dist.get_rank() == 0:
        dist.send(x, 1)
    else:
        time.sleep(0.3)
        dist.recv(x, 0)
    return time.perf_counter() - started


seconds = run(late_receiver, 2)
print("rank 0 spent at least 0.29 s in send:", seconds[0] >= 0.29)

# %% [markdown]
# Other libraries may copy a small message aside and let the sender go on (that is called an *eager*
# send). A correct program must not depend on it: it works whether a send waits or not. gloo's
# behaviour is a good teacher, since it always waits.
#
# ## Both ends must agree
#
# Plain gloo does not tell you when the two ends of a message have different sizes or dtypes. If
# the receiver's tensor is too small the process is aborted; if the dtypes differ, the bits are
# taken for something else without a word. In this course the record of both ends is compared, so
# you get an explanation instead:

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
# `torch.empty_like(x)` makes a tensor of the same size and dtype. It is the usual way to get
# something to receive into.
#
# ## Exercise: ping-pong
#
# Rank 0 sends `x` to rank 1. Rank 1 adds 1 and sends it back. Rank 0 returns what came back; every
# other rank returns a copy of its own `x`. There are at least two ranks, and there may be more.
#
# Two messages are enough, and `x` itself must stay as it is on every rank.

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
# ## Two ranks that wait for each other
#
# Now both ranks have something for the other. The obvious program is: send mine, then receive
# yours.
#
# **Predict:** what happens?

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
# A **deadlock**. Each rank stands in its `send` and waits for the other to receive; but the other
# stands in *its* send. Neither will ever reach the line below. A program like this hangs until
# somebody loses patience.
#
# Here it was named in a few milliseconds, without waiting for a timeout. Before each call a rank
# reports what it is about to do. From the reports the grader draws who waits for whom, the
# *wait-for graph*, and a circle of ranks that all wait can never be broken.
#
# ![Left, a cycle: both ranks are in send. Middle: rank 0 sends while rank 1 receives, then the other way round. Right: both start with isend and then receive](../imgs/head_to_head.png)
#
# ### Way out 1: somebody receives first
#
# Break the symmetry. Let the lower rank send first and the higher one receive first.

# %%
def one_receives_first():
    other = 1 - dist.get_rank()
    mine = torch.full((2,), float(dist.get_rank()))
    yours = torch.empty(2)
    if dist.get_rank() < other:
        dist.send(mine, other)
        dist.recv(yours, other)
    else:
        dist.recv(yours, other)
        dist.send(mine, other)
    return yours


polite = run(one_receives_first, 2)
print(polite)

# %% [markdown]
# ### Way out 2: start the send, and do not wait for it yet
#
# `dist.isend` (the *i* stands for *immediate*) starts a send and returns at once. What it returns
# is a **request**. The message is on its way, or will be; `request.wait()` blocks until it is
# done. `dist.irecv` is the same for a receive.

# %%
def isend_first():
    other = 1 - dist.get_rank()
    mine = torch.full((2,), float(dist.get_rank()))
    yours = torch.empty(2)
    request = dist.isend(mine, other)
    dist.recv(yours, other)
    request.wait()
    return yours


immediate = run(isend_first, 2)
print(immediate)

# %% [markdown]
# ### Way out 3: hand over everything as one batch
#
# `dist.batch_isend_irecv` takes a list of operations and starts them all. With NCCL this is the
# safe way to have sends and receives at the same time, so you will meet it in real code.

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
# ## Rounds: which messages can travel together?
#
# Ways 1 and 2 send the same two messages. Are they equally fast? Look at the traces.
#
# **Predict:** in which of the two do both messages travel at the same time?

# %%
print("somebody receives first\n")
print(polite.trace)
print("\nboth start with isend\n")
print(immediate.trace)

# %% [markdown]
# A network cable carries data in both directions at once. When one rank waits with its send until
# it has received, one direction stands empty all the time.
#
# We count that in **rounds**. Imagine that every message takes one unit of time, and that a rank
# can send one message and receive one message at a time. The record of your run is replayed under
# these rules, and the number of units until the last message has arrived is the number of rounds.
# It does not depend on how fast your computer is today.
#
# ## A request must be waited for
#
# Until `wait()` has returned, the tensor belongs to the transport. Do not write to a tensor that is
# being sent, and do not read a tensor that is being received.
#
# **Predict:** rank 0 changes `x` while it is being sent. Which value does rank 1 get, 1 or 2?

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
# Nobody can say: it depends on who is faster. That is a **race**, and the grader reports the race
# itself, whatever the value was this time. It also reports a request that nobody waits for:

# %%
def forget_to_wait():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        dist.isend(x, 1)
    else:
        dist.recv(x, 0)


run(forget_to_wait, 2, may_fail=True)

# %% [markdown]
# ## Exercise: shift
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
# Watch your own function at work:

# %%
def shift_my_rank(k):
    return int(shift(torch.tensor([dist.get_rank()]), k))


if check(shift):
    for k in (1, 2, -1):
        result = run(shift_my_rank, 5, k)
        print(f"k = {k:2}: ranks 0 to 4 now hold {list(result)}")
    print("\nthe last one again, as messages\n")
    print(result.trace)

# %% [markdown]
# ## Exercise: exchange
#
# Every rank is given a `peer`, and the two of a pair swap their `x`. The pairing is symmetric: if
# your peer is 3, then 3's peer is you. A rank whose peer is itself returns a copy. Again, one
# round is enough.

# %%
def exchange(x: torch.Tensor, peer: int) -> torch.Tensor:
    """The x of peer."""
    ### BEGIN SOLUTION
    if peer == dist.get_rank():
        return x.clone()
    y = torch.empty_like(x)
    operations = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, y, peer)]
    for request in dist.batch_isend_irecv(operations):
        request.wait()
    return y
    ### END SOLUTION


check(exchange)

# %% [markdown]
# ## A receive from anybody
#
# `dist.recv(y)` without a source takes the message of any rank, whichever comes first, and returns
# who it was. Such a **wildcard** receive is handy when you do not know who will be ready first.
# It has a price: the order is not yours to choose.
#
# **Predict:** which ranks are in this list, and in which order?

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
# Any order is possible. On a network the fastest comes first, and that changes from run to run. To
# give you the same answer every time, `run` takes the highest rank's message first. Then it tries
# other orders without showing them, and if your function hangs or raises in one of those, that is
# what it reports. `check` compares the values in the other orders as well. So a program that is
# right in one order only fails every time, and not once a month.
#
# ## Python objects
#
# Tensors are the fast way. For a small Python object there is `send_object_list`, which turns it
# into bytes (with pickle) and sends those. **Predict** the number of messages.

# %%
def send_a_dictionary():
    if dist.get_rank() == 0:
        dist.send_object_list([{"learning rate": 0.1, "steps": 100}], 1)
        return None
    received = [None]
    dist.recv_object_list(received, 0)
    return received[0]["steps"]


result = run(send_a_dictionary, 2)
print("rank 1 received", result[1])
print("messages:", result.trace.traffic.messages)

# %% [markdown]
# Two: the receiver needs to know how many bytes will come before it can make room for them. The
# same trick, sizes first, is used whenever only the sender knows the size.
#
# ## Summary
#
# - A message needs a `send` and a `recv` that agree on peer, tag, size and dtype.
# - With gloo a send waits for its receive (rendezvous). Never count on a send that does not wait.
# - Ranks that wait for each other in a circle are **deadlocked**. Break the circle: let somebody
#   receive first, or use `isend`, `irecv`, or `batch_isend_irecv`.
# - Each request is waited for exactly once, and its tensor is left alone until then.
# - **Rounds** count how much time messages need when independent ones travel together.
#
# **Where this is used:** pipeline parallelism sends activations from stage to stage; ring attention
# shifts keys and values around a ring; and every collective is made of messages like these.
#
# ### Check yourself
#
# <details><summary>Ranks 0, 1 and 2 each send to the right and then receive from the left. Does it hang?</summary>
#
# Yes. All three stand in send; the circle just has three members instead of two.
# </details>
#
# <details><summary>In the same ring only rank 0 receives first and sends afterwards. Does it still hang?</summary>
#
# No. Rank 2's send meets rank 0's receive. Then rank 2 receives, which frees rank 1, which receives
# and frees rank 0. But the messages go one after the other: 3 rounds instead of 1.
# </details>
#
# <details><summary>Why may you not print a tensor between <code>irecv</code> and <code>wait</code>?</summary>
#
# You may, but what you see means nothing: the data may have arrived, or not, or half of it.
# </details>
#
# **Next:** [02 · Broadcast](02_broadcast.ipynb): your first collective.
