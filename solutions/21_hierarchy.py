# %% [markdown]
# # 21 · Hierarchy
#
# Your training has outgrown one machine. It now runs on 128 GPUs: 16 nodes with 8 GPUs each. Inside a node
# a GPU sends 450 GB/s, to another node 50 GB/s. The ring of chapter [11](11_ring_all_reduce.ipynb) does
# not know that. In every step, 14 GB of gradients go round it, and since a ring moves at the pace of its
# slowest link, that takes more than half a second, while 112 of the 128 links could carry nine times as
# much. What has to cross between nodes, and which ranks should carry it?
#
# **You will learn** how nodes are wired (rails, fat trees, oversubscription), how to make groups of ranks,
# and how an all-reduce on two levels shares the traffic between nodes among all network cards. You will
# count what crosses, race your function against a flat ring and a tree on hundreds of simulated ranks, and
# find out when it does not help. At the end the switches do the sums.
#
# **You need** chapters [07](07_all_reduce.ipynb), [11](11_ring_all_reduce.ipynb) and
# [13](13_cost_models.ipynb).
#
# **Time:** 2 hours, and 2 exercises.

# %%
import torch
import torch.distributed as dist
from msgspec.structs import replace

from grader import check, hint, predict, progress, replay, reset, run, simulate, timeline
from headcount.simulation.clusters import PRESETS

# %% [markdown]
# ## Two kinds of links
#
# The course's simulator knows clusters of two levels. One of them is made up of DGX H100 nodes: 8 GPUs that
# reach each other over NVLink, and 8 network cards, one for each GPU. The sources of the numbers are listed
# in [docs/simulation.md](../docs/simulation.md). (A node need not have 8 GPUs: in a
# [GB200 NVL72](https://www.nvidia.com/en-us/data-center/gb200-nvl72/) NVLink connects 72, a whole rack.)

# %%
H100 = PRESETS["dgx-h100"].cluster
for where, alpha, beta in (
    ("inside a node", H100.alpha_inside, H100.beta_inside),
    ("between nodes", H100.alpha_between, H100.beta_between),
):
    print(f"{where}: α = {1e6 * alpha:4.1f} µs, 1/β = {1e-9 / beta:3.0f} GB/s")

# %% [markdown]
# Rank 0 sends one message to rank 1, in its own node, and one to rank 8, in the next. How many times as long
# does the second take, with 4 bytes and with 64 MB?

# %%
def one_message(peer, elements):
    x = torch.zeros(elements)
    if dist.get_rank() == 0:
        dist.send(x, peer)
    elif dist.get_rank() == peer:
        dist.recv(x, 0)


for elements in (1, 16 * 10**6):
    near, far = (
        1e6 * simulate(one_message, 16, peer, elements, cluster=H100).seconds for peer in (1, 8)
    )
    print(
        f"{4 * elements:10,} bytes: {near:6.1f} µs inside, {far:6.1f} µs between,"
        f" {far / near:.1f} times as long"
    )

# %% [markdown]
# Four times as long for a few bytes, nine times for many. (These are the constants of a model: published
# peak bandwidths, of which [one test](https://github.com/NVIDIA/nccl/issues/1264) reached 380 of the 450 GB/s;
# and the latencies with which NCCL estimates its own algorithms at full bandwidth. For small tensors it has a
# protocol with about a fifth of both latencies.) So it is worth asking of every message: does it cross?
#
# ### How nodes are wired
#
# ![Three nodes of four ranks. In each node, thick lines lead from the ranks to a switch of the node. A
# thin line leads from every rank out of the node: from the first rank of each node to leaf switch 0, from
# the second to leaf switch 1, and so on. Each leaf switch has one line to each of two spine switches above
# it.](../imgs/rails.png)
#
# - The network cards of GPUs at the same place in their nodes are connected to the same switch, called a
#   *leaf*. They form a **rail**, and such a cluster is
#   [rail-optimized](https://docs.nvidia.com/networking/display/ibclusterbringupprocedure/setting+the+infiniband+cluster+topology).
#   Ranks 1, 5 and 9 are one switch apart. Rank 1 reaches rank 6 over the switches at the top, the *spine*;
#   or its data first go over the fast links to rank 2, which is on the right rail. NCCL calls that
#   [PXN](https://developer.nvidia.com/blog/doubling-all2all-performance-with-nvidia-collective-communication-library-2-12/).
# - Leaves and spine make a **fat tree** ([Leiserson 1985](https://doi.org/10.1109/TC.1985.6312192)). If as
#   much bandwidth leads up from each leaf as down, then, with good routes, any half of the ranks can send to
#   the other half at full speed: the network has full *bisection bandwidth*.
# - Switches and cables cost money, so there are trees with fewer links up than down. Count them in the
#   picture: three lead down from a leaf and two lead up. It is **oversubscribed** 3 to 2: if all of its ranks
#   send through the spine at once, each gets two thirds of the speed of its link.
#
# What stays on its rail does not meet the spine at all. (The simulator has nodes and links, and a network
# between them that is never full. It knows nothing of leaves and spines.)
#
# ## What crosses
#
# Eight ranks on two nodes, 0 to 3 and 4 to 7, all-reduce 840 numbers. We compare four algorithms: a
# ring; a binomial tree, up and down; recursive doubling, where whole tensors are exchanged with the ranks at
# distances 1, 2 and 4; and halving and doubling (Rabenseifner's algorithm), which exchanges half of the
# tensor with the rank at distance 4, a quarter at distance 2, an eighth at distance 1, and then goes back the
# same way. Chapter [20](20_tree_algorithms.ipynb) develops the last two; there, halving may also begin with the
# nearest rank.
#
# **Predict:** which of them sends the most numbers out of node 0?
#
# <details><summary>The ring: everything goes round it</summary>
#
# No: only one of the node's four ranks has its right neighbour in the other node.
# </details>
#
# <details><summary>Recursive doubling, which sends whole tensors</summary>
#
# No: it sends four whole tensors across, but halving sends four halves across, and four halves on the
# way back.
# </details>
#
# <details><summary>Recursive doubling, and halving just as many</summary>
#
# Yes: each of the node's four ranks sends 840 numbers across, once whole or in two halves.
# </details>

# %%
def flat(elements):
    dist.all_reduce(torch.ones(elements))


def crossing(trace, ranks_per_node):
    """For every rank, how many numbers it sends to other nodes."""
    sent = [0] * trace.world_size
    for m in trace.messages:
        if m.source // ranks_per_node != m.destination // ranks_per_node:
            sent[m.source] += m.count
    return sent


def show_crossing(name, trace, ranks_per_node=4):
    of_node_0 = crossing(trace, ranks_per_node)[:ranks_per_node]
    print(f"{name:20} {sum(of_node_0):4} numbers leave node 0; by rank: {of_node_0}")


for name, algorithm in (
    ("ring", "ring"),
    ("tree", "reduce_broadcast"),
    ("recursive doubling", "recursive_doubling"),
    ("halving and doubling", "rabenseifner"),
):
    show_crossing(name, simulate(flat, 8, 840, algorithms={"all_reduce": algorithm}).trace)

# %% [markdown]
# Look at the ring first. Only ranks 3 and 7 send anything across: $2 \cdot 7/8 \cdot 840 = 1470$ numbers each.
# That is not much, but **one** card of the node carries all of it, and three are idle.
#
# ![Two rings of eight ranks on two nodes. Left, laid out node by node: two of eight messages cross. Right,
# dealt in turns: all eight cross.](../imgs/ring_across_nodes.png)
#
# That is so if the ring is laid out node by node, as on the left. Chapter [13](13_cost_models.ipynb) raced
# the two layouts.
#
# Halving and doubling uses all four cards, but its first and largest exchange is at distance four: with the
# other node. Each of the four ranks sends 420 numbers across, and later 420 more. Recursive doubling sends
# its 840 in one exchange. The tree sends 840 as one message through one card, while the other ranks wait.
#
# How little has to cross? Think of each node as a single large rank. In an all-reduce of $k$ ranks the busiest
# one sends at least $2(k-1)/k \cdot S$, as long as messages go from rank to rank and no switch adds anything up
# ([Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002)). With two nodes, that is $S = 840$.
# So what we want is 840 numbers, and all four cards to carry them.
#
# ## Groups
#
# In chapter [00](00_ranks_and_groups.ipynb), `dist.new_group(ranks)` made teams of ranks. It returns a
# **process group**, and `group=` says in which group a collective takes place.

# %%
def ends_and_middle():
    ends, middle = dist.new_group([0, 3]), dist.new_group([1, 2])
    mine = ends if dist.get_rank() in (0, 3) else middle
    x = torch.tensor([10 ** dist.get_rank()])
    dist.all_reduce(x, group=mine)
    return x.item(), dist.get_process_group_ranks(mine), dist.get_rank(mine)


for r, (total, members, place) in enumerate(run(ends_and_middle, 4)):
    print(f"rank {r}: the sum over {members} is {total}; its rank in that group is {place}")

# %% [markdown]
# Each rank now has two numbers: its rank in the world, and its rank in the group. `dist.send(x, 3,
# group=ends)` means rank 3 of the world; the argument `group_dst` takes a rank of the group.
#
# Rank 0 is not in `middle`, and yet it calls `new_group` for it.
#
# **Predict:** what happens if every rank makes only the group that it is in?
#
# <details><summary>It works: the other group is none of its business</summary>
#
# No: `new_group` is a call of the whole world. Those outside the group have to make it as well.
# </details>
#
# <details><summary>It works for ranks 0 and 3, whose group comes first</summary>
#
# No: no group comes first here. At the same moment ranks 1 and 2 make another one, and the calls do not
# fit together.
# </details>
#
# <details><summary>It fails: the ranks' calls do not fit together</summary>
#
# Yes: every rank has to make the same groups in the same order, its own or not.
# </details>

# %%
def own_group_only():
    if dist.get_rank() in (0, 3):
        dist.new_group([0, 3])
    else:
        dist.new_group([1, 2])


run(own_group_only, 4, may_fail=True)

# %% [markdown]
# [`new_group`](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group) is itself
# a collective of the whole world: all ranks make all groups, in the same order. On a rank that is not in
# the group it returns the marker `dist.GroupMember.NON_GROUP_MEMBER`. If you want each rank to make only its
# own groups, pass `use_local_synchronization=True`: then only the members have to call it.
#
# ## Exercise: node_groups
#
# Ranks fill the nodes one after the other, so the node of rank $r$ is `r // ranks_per_node`. Return the two
# groups that the calling rank is in:
#
# 1. the group of all ranks on its node;
# 2. the group of all ranks with the same place on their nodes as the calling rank. In the picture of the wiring,
#    these are the ranks of one rail.
#
# The number of ranks is a multiple of `ranks_per_node`, which may be 1 or the number of ranks.

# %%
def node_groups(ranks_per_node: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """The group of this rank's node, and that of its place on all nodes."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    for first in range(0, n, ranks_per_node):
        members = range(first, first + ranks_per_node)
        group = dist.new_group(list(members))
        if rank in members:
            node = group
    for place in range(ranks_per_node):
        members = range(place, n, ranks_per_node)
        group = dist.new_group(list(members))
        if rank in members:
            across = group
    return node, across
    ### END SOLUTION


groups_work = check(node_groups)
groups_work

# %% [markdown]
# Each rank has two groups, as in a table: one for its row, one for its column. In PyTorch this is called a
# [`DeviceMesh`](https://docs.pytorch.org/tutorials/recipes/distributed_device_mesh.html): you give the shape
# of the table, and it makes the groups.

# %%
def mesh_groups(ranks_per_node):
    from torch.distributed.device_mesh import init_device_mesh

    shape = (dist.get_world_size() // ranks_per_node, ranks_per_node)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("across", "node"))
    return [dist.get_process_group_ranks(mesh.get_group(name)) for name in ("node", "across")]


def your_groups(ranks_per_node):
    return [dist.get_process_group_ranks(group) for group in node_groups(ranks_per_node)]


if groups_work:
    print("the same groups:", list(run(mesh_groups, 6, 3)) == list(run(your_groups, 6, 3)))

# %% [markdown]
# ## Two levels
#
# Here are four ranks on two nodes, each with a tensor in two parts.
#
# ![Four ranks on two nodes. At first each rank has both parts of its own tensor. After step 1, inside the
# node, the first rank of each node has part 0 summed over the node, and the second has part 1. After step 2,
# across nodes, they have the same parts summed over all ranks. After step 3, inside the node, every rank
# has both parts.](../imgs/two_levels.png)
#
# You know a collective for each of the three steps. Which one is it in each case, and in which of your two
# groups?
#
# ## Exercise: hierarchical_all_reduce
#
# In place, `x` becomes the reduction over all ranks. With $g$ for `ranks_per_node`, a **share** is
# $\lceil \text{len}/g \rceil$ elements. Between nodes, no call and no message may carry more than one share from
# any rank. Many small pieces do not get around that: in total, a rank may send at most
# $\max(2, \text{nodes} - 1)$ shares to other nodes, where a built-in collective counts as what the best
# point-to-point algorithm sends for it. You may use `new_group`; `reduce_scatter`, `all_reduce` and
# `all_gather` in all their forms; and point-to-point messages.
#
# - `op` is SUM, AVG, MIN, MAX or PRODUCT; AVG comes with floating-point numbers only. (Newer versions of gloo
#   have it, older ones do not: a sum and one division always work.)
# - `x` may have any shape and any length, and $g$ need not divide the length.
# - gloo's `reduce_scatter_tensor` and `all_gather_into_tensor` want flat tensors, cut into equal parts. (In new
#   versions of torch they are called `reduce_scatter_single` and `all_gather_single`. Both names work here.)

# %%
def hierarchical_all_reduce(x: torch.Tensor, op: dist.ReduceOp, ranks_per_node: int) -> None:
    """x becomes the reduction over ranks; only shares of it cross between nodes."""
    ### BEGIN SOLUTION
    node, across = node_groups(ranks_per_node)
    average = op == dist.ReduceOp.AVG
    combine = dist.ReduceOp.SUM if average else op
    size = -(-x.numel() // ranks_per_node)
    padded = x.new_zeros(size * ranks_per_node)
    padded[: x.numel()] = x.flatten()
    mine = x.new_empty(size)
    dist.reduce_scatter_tensor(mine, padded, op=combine, group=node)
    dist.all_reduce(mine, op=combine, group=across)
    if average:
        mine /= dist.get_world_size()
    dist.all_gather_into_tensor(padded, mine, group=node)
    x.copy_(padded[: x.numel()].view_as(x))
    ### END SOLUTION


hierarchy_works = check(hierarchical_all_reduce)
hierarchy_works

# %% [markdown]
# ### What crosses now
#
# Take the eight ranks on two nodes again, and then on *four* nodes of two, with 840 numbers each time.
#
# **Predict:** how many numbers leave node 0 when there are four nodes?
#
# <details><summary>840, half of them through each rank</summary>
#
# No: that was so with two nodes. Four nodes send more: a share goes round four ranks, not two.
# </details>
#
# <details><summary>1260, half of them through each rank</summary>
#
# Yes: each rank all-reduces its share of 420 with three others, and sends $2 \cdot 3/4 \cdot 420 = 630$.
# </details>
#
# <details><summary>1680, half of them through each rank</summary>
#
# No: a ring on $k$ ranks sends less than twice its tensor, and the other two steps stay inside the node.
# </details>

# %%
def two_levels(elements, ranks_per_node):
    hierarchical_all_reduce(torch.ones(elements), dist.ReduceOp.SUM, ranks_per_node)


if hierarchy_works:
    for each in (4, 2):
        show_crossing(f"nodes of {each}", simulate(two_levels, 8, 840, each).trace, each)

# %% [markdown]
# In both cases that is the fewest possible from rank to rank, $2(k-1)/k \cdot S$, shared out among all cards.
#
# On simulated ranks, collectives run message by message, so you can step through your own run. Here it is
# on two nodes of two ranks: which rounds stay inside the nodes?

# %%
replay(simulate(two_levels, 4, 8, 2)) if hierarchy_works else None

# %% [markdown]
# And here it is in real time, on real processes. Each bar is one of your calls. How much of the time goes into
# making the groups? (In a training loop, make them once and keep them.)

# %% tags=["nbval-ignore-output"]
timeline(run(two_levels, 4, 2**20, 2)) if hierarchy_works else None

# %% [markdown]
# ## The race
#
# Now the cluster from the beginning: 16 nodes of 8 GPUs, and then 64 nodes. We race the flat algorithms
# against yours. Across the nodes yours calls `all_reduce`, which itself needs an algorithm: we run it once with
# a ring, and once with halving and doubling.
#
# A gigabyte on each of 512 ranks would hardly fit into your memory. But a message takes
# $\alpha + \text{bytes} \cdot \beta$: if we multiply $\beta$ by 8192, every byte stands for 8 KiB. (`replace`
# copies the description of a cluster with some values changed.)
#
# The five are a flat ring, a flat tree, flat halving and doubling, and two levels with a ring or with halving
# and doubling across. In which order do they finish?
#
# **Predict:** with 1 GiB on 128 ranks, how many times as fast as the flat ring are two levels?
#
# <details><summary>Almost twice</summary>
#
# No: each card carries an eighth of what the ring's one card did, and that card was busy nearly all of
# the time.
# </details>
#
# <details><summary>Almost five times</summary>
#
# Yes: each card carries an eighth, and the steps inside the node also take time.
# </details>
#
# <details><summary>Eight times, since eight cards work instead of one</summary>
#
# No: the steps between nodes are that much shorter. But the steps inside the node come on top.
# </details>

# %%
def standing_for(factor, cluster=H100):
    """The same cluster, where each byte stands for that many."""
    return replace(
        cluster,
        beta_inside=cluster.beta_inside * factor,
        beta_between=cluster.beta_between * factor,
    )


RACERS = (
    ("flat ring", flat, "ring"),
    ("flat tree", flat, "reduce_broadcast"),
    ("flat, halving and doubling", flat, "rabenseifner"),
    ("two levels, ring across", two_levels, "ring"),
    ("two levels, halving across", two_levels, "rabenseifner"),
)
SIZES = (("64 KiB", 2**14, 1), ("1 GiB", 2**15, 2**13))


def seconds(function, n, elements, factor=1, cluster=H100, algorithm="ring"):
    arguments = (elements,) if function is flat else (elements, cluster.ranks_per_node)
    done = simulate(
        function,
        n,
        *arguments,
        cluster=standing_for(factor, cluster),
        algorithms={"all_reduce": algorithm},
        record=False,
    )
    return done.seconds


def race(n, racers=RACERS, cluster=H100):
    for size, elements, factor in SIZES:
        print(f"{n} ranks, {size}")
        for name, function, algorithm in racers:
            took = seconds(function, n, elements, factor, cluster, algorithm)
            print(f"   {name:27} {1e3 * took:9.3f} ms")


if hierarchy_works:
    race(128)

# %% [markdown]
# **64 KiB is a matter of latency.** The flat ring takes $2 \cdot 127$ steps, and each lasts as long as its
# slowest message: one between nodes. With two levels and a ring across there are only $2 \cdot 15$ such
# steps. The tree takes $2 \log_2 128 = 14$ rounds, and so does halving and doubling, whether flat or across
# two levels: 8 of them cross and 6 do not.
#
# **1 GiB is a matter of bandwidth.** The flat ring sends almost 2 GiB through one card of each node. The
# tree sends the whole tensor 14 times, one after the other. With two levels, every card carries an eighth of
# what the ring's one card does. (It is not eight times as fast, because the steps inside the node also take time.)
#
# Now 512 ranks. There a flat ring sends $2 \cdot 512 \cdot 511$ messages, which takes the simulator a while.
# But we have a formula for it. Let us check that it agrees on 128 ranks, and use it for 512, and for eight flat
# rings side by side, each with a card of its own and an eighth of the tensor.

# %%
def flat_ring_seconds(n, nbytes, cluster=H100):
    """Every step is as long as a message between nodes."""
    return 2 * (n - 1) * (cluster.alpha_between + nbytes / n * cluster.beta_between)


simulated = seconds(flat, 128, 2**15, 2**13)
formula = flat_ring_seconds(128, 2**30)
print(f"128 ranks, 1 GiB: {1e3 * simulated:.3f} ms, by the formula {1e3 * formula:.3f} ms")
for size, elements, factor in SIZES:
    formula = flat_ring_seconds(512, 4 * elements * factor)
    print(f"512 ranks, {size}, flat ring by the formula: {1e3 * formula:.3f} ms")
for n in (128, 512):
    formula = flat_ring_seconds(n, 2**30 / 8)
    print(f"{n} ranks, 1 GiB, eight rings by the formula: {1e3 * formula:.3f} ms")

if hierarchy_works:
    race(512, RACERS[1:])

# %% [markdown]
# With 1 GiB, two levels gain more over the flat ring in the larger cluster. But they do not always win. With
# 64 KiB and a ring across they take almost nine times as long as the flat tree: on 64 nodes that ring still has
# $2 \cdot 63$ slow steps. And *eight* flat rings also use all cards. On 128 ranks they are even a little faster; on
# 512 they take about twice as long, and most of that is latency, $2 \cdot 511$ times 14 µs.
#
# ### The same algorithm on other ranks
#
# With 1 GiB, flat halving and doubling lost because its largest messages go farthest: to the rank at distance
# $n/2$. What if the ranks were dealt to the nodes in turns, so that *these* ranks share a node?
#
# **Predict:** does it now lose to two levels with halving across, win, or tie?
#
# <details><summary>It loses: a flat algorithm knows nothing of nodes</summary>
#
# No: it need not know them. Its long messages now stay inside a node.
# </details>
#
# <details><summary>It wins: it has no groups, and fewer phases</summary>
#
# No: it has the same exchanges in the same order, so there is nothing to win.
# </details>
#
# <details><summary>They tie: both send the same messages</summary>
#
# Yes: its first three exchanges stay in the node, the next four cross, and so on the way back.
# </details>

# %%
# 0, 16, 32, … share a node
dealt = tuple(rank for node in range(16) for rank in range(node, 128, 16))
halving = seconds(flat, 128, 2**15, 2**13, replace(H100, order=dealt), "rabenseifner")
print(f"halving and doubling, ranks dealt in turns: {1e3 * halving:.3f} ms")

# %% [markdown]
# The same time as with halving across, to the microsecond. With the ranks dealt like that, the first three
# exchanges halve the tensor *inside* the nodes: a reduce-scatter in the node. The next four exchanges and their
# way back are an all-reduce of what is left, across nodes; and the last three are an all-gather in the node. It
# *is* your algorithm. What matters is not the name of an algorithm but which messages are long and how far they
# go: **large near, small far.**
#
# ### One card for a node
#
# Not every node has a card for each GPU. Take the same nodes with a single card of 50 GB/s, shared by all 8
# GPUs.
#
# **Predict:** with 1 GiB on 128 ranks, how many times as fast as the flat ring is your function now?
#
# <details><summary>Hardly faster at all</summary>
#
# Yes: about as much leaves a node as with the ring, and now it goes through one card as well.
# </details>
#
# <details><summary>Almost five times, as before</summary>
#
# No: that came from eight cards at work where the ring uses one. Now both have one.
# </details>
#
# <details><summary>About eight times slower, since the eight ranks share the card</summary>
#
# No: each of the eight sends an eighth. Together they send what the ring's one rank does.
# </details>

# %%
one_card = replace(H100, links=1)
if hierarchy_works:
    race(128, (RACERS[0], RACERS[2], RACERS[3], RACERS[4]), one_card)

# %% [markdown]
# With 1 GiB, the ring and two levels are within 4 % of each other. Count again what leaves a *node*: with the
# ring $2(n-1)/n \cdot S$ through one rank, with two levels $2(k-1)/k \cdot S$ in all, for $n$ ranks on $k$ nodes.
# For many nodes both are almost $2S$. Two levels do not send much less; they **share it out** among the cards,
# and take fewer slow steps. Where there is one card, sharing gains nothing, and only latency is left to win:
# see 64 KiB. Flat halving and doubling suffers most. Each of its ranks sends $15/8 \cdot S$ to other nodes, so
# $15 S$ have to go through every card.
#
# ## When the network adds
#
# All bounds so far hold for messages from rank to rank. But a switch sees the data of all its ranks anyway. If
# it can add, it need not pass on a tensor from each of them: it passes on one.
#
# ![Left, a ring of four ranks: each sends 2 · ¾ S and receives as much. Right, a switch in the middle that
# adds: each rank sends S to it and receives S from it.](../imgs/switch_that_adds.png)
#
# Then a rank sends its own tensor once and receives the result once: $S$ each way, for any number of ranks.
#
# **Predict:** how many times as fast as a ring is that at best, with 2, 8 and 512 ranks, if bandwidth is all
# that counts?
#
# <details><summary>2, 2 and 2</summary>
#
# No: a ring of two ranks sends $S$ as well, and only a very long one comes close to $2S$.
# </details>
#
# <details><summary>1, 1.75 and almost 2</summary>
#
# Yes: a ring sends $2(n-1)/n$ times $S$, and with the switch it is $S$.
# </details>
#
# <details><summary>2, 8 and 512</summary>
#
# No: a rank on a ring sends less than $2S$, however many there are. It is latency that grows with $n$.
# </details>

# %%
for n in (2, 8, 512):
    ring = 2 * (n - 1) / n
    print(f"{n:3} ranks: {ring:.3f} S on a ring, S with a switch that adds; {ring:.3f} times as fast")

# %% [markdown]
# It is never quite twice as fast, and no faster at all for two ranks. Latency improves more: one trip to the switch and
# back, or up and down a tree of switches, in place of $2(n-1)$ steps from rank to rank.
#
# - With **SHARP**, the switches of an InfiniBand network do the sums. In 2016, that cut an all-reduce of 8 bytes
#   on 128 hosts from 6.01 to 2.83 µs
#   ([Graham et al. 2016](https://www.aminer.org/pub/58d8301ad649053542fe2a63/scalable-hierarchical-aggregation-protocol-sharp-a-hardware-architecture-for-efficient-data-reduction)).
#   Since 2020 they also reduce long tensors as they stream through, at about 95 % of the network's bandwidth
#   ([Graham et al. 2020](https://doi.org/10.1007/978-3-030-50743-5_3)).
# - **NVLS**, NVLink SHARP, does the same inside a node, in the
#   [NVSwitch of the H100's generation](https://developer.nvidia.com/blog/upgrading-multi-gpu-interconnectivity-with-the-third-generation-nvidia-nvswitch/).
#   It reaches as far as [NVLink does](https://github.com/NVIDIA/nccl/issues/1031).
#
# There are conditions: the switch has to support the operation and the dtype, and it adds in an order of its
# own, so the bits may differ from a ring's. And the *bus bandwidth* (chapter [14](14_bandwidth.ipynb)) can then
# be higher than that of any link, since its factor $2(n-1)/n$ counts bytes that a rank no longer sends.
#
# ## In libraries
#
# - NCCL makes [several rings that leave a node through different cards](https://github.com/NVIDIA/nccl/issues/412), and
#   [splits the data among them](https://github.com/NVIDIA/nccl/issues/601): the eight rings of our race.
#   Its trees are [between nodes only](https://github.com/NVIDIA/nccl/issues/545), and the ranks inside a node form a chain.
# - Horovod's hierarchical all-reduce is
#   [yours](https://github.com/horovod/horovod/blob/76d382d78fc4f35d52b0872175ae3fc2bdb5eca2/horovod/common/ops/nccl_operations.cc):
#   a reduce-scatter by NCCL, an all-reduce by MPI, an all-gather by NCCL. (Racks can be a third level.)
# - FSDP can shard a model inside each node and replicate it across nodes (hybrid sharding, HSDP). For gradients
#   it calls [a reduce-scatter inside and an all-reduce across](https://github.com/pytorch/pytorch/pull/121569):
#   your first two steps. The third is the all-gather of the parameters before they are next used.
#
# ## Summary
#
# - On a DGX H100, a link inside a node carries nine times as much as one between nodes. Ask of every message
#   whether it crosses.
# - On rails, ranks at the same place are one switch apart. A fat tree with full bisection bandwidth has as much
#   bandwidth up as down; an oversubscribed one has less.
# - `new_group` is a collective of the whole world, unless you pass `use_local_synchronization=True`.
# - **Reduce-scatter in the node, all-reduce across, all-gather in the node**: on $k$ nodes of 8, each rank
#   sends $2(k-1)/k \cdot S/8$ to other nodes.
# - Without sums in the network, no all-reduce can send less out of the busiest node. Here the traffic is shared
#   out among all cards, and takes few slow steps. With one card for each node, only the steps are left to gain.
# - If the network adds, $S$ each way is enough instead of $2(n-1)/n \cdot S$.
#
# Back to the 14 GB of gradients on 16 nodes:

# %%
S, n, nodes, each = 14e9, 128, 16, 8
ring = flat_ring_seconds(n, S)
inside = 2 * (each - 1) / each * S * H100.beta_inside
across = 2 * (nodes - 1) / nodes * S / each * H100.beta_between
print(f"flat ring: {1e3 * ring:.0f} ms")
print(f"two levels: {1e3 * inside:.0f} ms inside and {1e3 * across:.0f} ms across, latencies aside")

# %% [markdown]
# If the data are cut into pieces, as in the pipelined ring of chapter [11](11_ring_all_reduce.ipynb), one piece
# can travel inside the nodes while another crosses between them; then only about the larger of the two times
# remains.
#
# ### Check yourself
#
# <details><summary>32 nodes of 4 ranks, a tensor of 1 GB. How much does a rank send to other nodes on two levels, with a ring across? And in how many messages?</summary>
#
# 2 · 31/32 · 0.25 GB = 484 MB, in 62 messages of 7.8 MB.
# </details>
#
# <details><summary>Why does the flat ring use one card of each node only, and NCCL's rings all of them?</summary>
#
# In a ring that is laid out node by node, one rank of each node has its right neighbour in another node. NCCL
# makes several rings, and in each of them it is a different rank.
# </details>
#
# <details><summary>You swap the two groups: reduce-scatter across, all-reduce in the node, all-gather across. Is the result right? What crosses?</summary>
#
# It is right. But the reduce-scatter and the all-gather move all of x between nodes: 2(k − 1)/k · S for each
# rank on k nodes. With g ranks on a node, that is g times as much as before.
# </details>
#
# <details><summary>Your cluster is oversubscribed 4 to 1 above the leaves, and rail-optimized. Does the all-reduce on two levels notice?</summary>
#
# Not as long as all nodes are connected to the same leaves: across the nodes, each rank talks only to ranks on
# its own rail, one switch away.
# </details>
#
# **Next:** [22 · Failures](22_failures.ipynb): what happens when a rank dies, and what the others can do.
