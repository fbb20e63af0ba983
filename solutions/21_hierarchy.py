# %% [markdown]
# # 21 · Hierarchy
#
# Your model has outgrown one machine. It trains on 128 GPUs now: 16 nodes with 8 GPUs each. Inside a node
# a GPU sends 450 GB/s, to another node 50 GB/s. The ring of chapter [11](11_ring_all_reduce.ipynb) does
# not know that. After every step, 14 GB of gradients go round it, and since all ranks of a ring go at the
# pace of the slowest link, that takes more than half a second, while 112 of the 128 links could carry nine
# times as much. What has to cross between nodes, and who should carry it?
#
# **You will learn** how nodes are wired (rails, fat trees, oversubscription), how to make groups of ranks,
# and how an all-reduce on two levels sends $1/8$ of the data through each network card. You will count
# what crosses, race your function against a flat ring and a tree on hundreds of simulated ranks, and find
# out when it does not help. At the end the switches do the sums.
#
# **You need** chapters [07](07_all_reduce.ipynb), [11](11_ring_all_reduce.ipynb) and
# [13](13_cost_models.ipynb).
#
# **Time:** 2 hours, and 2 exercises.

# %%
import torch
import torch.distributed as dist
from msgspec.structs import replace

from grader import check, hint, predict, replay, run, simulate, timeline
from grader.simulation.clusters import PRESETS

# %% [markdown]
# ## Two kinds of links
#
# The course's simulator knows clusters of two levels. One of them is a DGX H100: 8 GPUs that reach each
# other over NVLink, and 8 network cards, one for each GPU. The sources of these numbers are listed in
# [docs/simulation.md](../docs/simulation.md).

# %%
H100 = PRESETS["dgx-h100"].cluster
for where, alpha, beta in (
    ("inside a node", H100.alpha_inside, H100.beta_inside),
    ("between nodes", H100.alpha_between, H100.beta_between),
):
    print(f"{where}: α = {1e6 * alpha:4.1f} µs, 1/β = {1e-9 / beta:3.0f} GB/s")

# %% [markdown]
# **Predict:** rank 0 sends one message to rank 1, in its own node, or to rank 8, in the next one. How many
# times as long does the second take, for 4 bytes and for 64 MB?

# %%
predict("")

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
# Four times for a few bytes, nine times for many. (These are the constants of a model: published peaks
# of bandwidth, and the latencies with which NCCL estimates its own algorithms.) So it is worth asking of
# every message: does it cross?
#
# ### How nodes are wired
#
# ![Three nodes of four ranks. In each node, thick lines lead from the ranks to a switch of the node. A
# thin line leads from every rank out of the node: from the first rank of each node to leaf switch 0, from
# the second to leaf switch 1, and so on. The leaf switches are connected by two spine switches above
# them.](../imgs/rails.png)
#
# - The network cards of GPUs with the same place in their nodes are connected to the same switch. That is
#   called a **rail**, and such a cluster
#   [rail-optimized](https://docs.nvidia.com/networking/display/ibclusterbringupprocedure/setting+the+infiniband+cluster+topology).
#   Ranks 1, 5 and 9 are one switch apart. Rank 1 reaches rank 6 over the spine; or the data first go over
#   the fast links to rank 2, which is on the right rail.
# - Leaves and spines make a **fat tree** (Leiserson 1985). It is fat because it does not get thinner
#   towards the top: as much bandwidth leads up from a leaf as down. Then any half of the ranks can send to
#   the other half at full speed. One says that the network has full *bisection bandwidth*.
# - Switches and cables cost money, so there are trees with fewer links up than down. A leaf with 32 links
#   down and 16 up is **oversubscribed** 2 to 1: if all of its ranks send through the spine at once, each
#   gets half of its link.
#
# What stays on its rail does not meet the spine at all. Keep that in mind when you choose who talks to
# whom. (The simulator has nodes and links, and a network between them that is never full. It does not
# know leaves and spines.)
#
# ## What crosses
#
# Eight ranks on two nodes, 0 to 3 and 4 to 7, all-reduce 840 numbers. We compare four algorithms: a
# ring; a binomial tree, up and down; recursive doubling, where whole tensors are exchanged with ranks at
# distance 1, 2, 4; and halving and doubling (Rabenseifner's algorithm), which exchanges half of the tensor
# with the rank that is 4 away, a quarter with the one that is 2 away, an eighth with the next one, and
# then goes back the same way.
# ([Thakur, Rabenseifner and Gropp 2005](https://doi.org/10.1177/1094342005051521) describe all of them.)
#
# **Predict:** which of them sends the most numbers out of node 0? And in the ring: which ranks send them?

# %%
predict("")

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
# Look at the ring first. Only ranks 3 and 7 have a neighbour in the other node, so only they send
# anything across: $2 \cdot 7/8 \cdot 840 = 1470$ numbers. That is little, but **one** card carries all of
# it, and three are idle.
#
# ![Two rings of eight ranks on two nodes. Left, laid out node by node: two of eight messages cross. Right,
# dealt in turns: all eight cross.](../imgs/ring_across_nodes.png)
#
# That is, if the ring is laid out node by node, as on the left. Chapter [13](13_cost_models.ipynb) raced
# the two.
#
# Halving and doubling uses all four cards, but the first exchange, which is the largest, goes to the rank
# that is four away: to the other node. Each of the four ranks sends 420 numbers across, and later 420
# more. Recursive doubling sends as many at once. The tree sends 840, as one message through one card,
# while all others wait.
#
# How little could cross? Think of each node as a single large rank. An all-reduce of $k$ ranks takes
# at least $2(k-1)/k \cdot S$ from each of them, as long as messages go from rank to rank and no switch adds
# anything up ([Patarasuk and Yuan 2009](https://doi.org/10.1016/j.jpdc.2008.09.002)). With two nodes, that
# is $S = 840$. So what we want is 840 numbers, and all four cards to carry them.
#
# ## Groups
#
# Chapter [00](00_ranks_and_groups.ipynb) made teams of ranks with `dist.new_group(ranks)`. It returns a
# **process group**, and `group=` says in which one a collective takes place.

# %%
def ends_and_middle():
    ends, middle = dist.new_group([0, 3]), dist.new_group([1, 2])
    mine = ends if dist.get_rank() in (0, 3) else middle
    x = torch.tensor([10 ** dist.get_rank()])
    dist.all_reduce(x, group=mine)
    return x.item(), dist.get_process_group_ranks(mine), dist.get_rank(mine)


for rank, (total, members, place) in enumerate(run(ends_and_middle, 4)):
    print(f"rank {rank}: the sum over {members} is {total}; its rank in that group is {place}")

# %% [markdown]
# Each rank has two numbers now: its rank in the world, and its rank in the group. `dist.send(x, 3,
# group=ends)` means rank 3 of the world; the argument `group_dst` takes a rank of the group.
#
# Rank 0 is not in `middle`, and yet it makes that group. **Predict:** what happens if every rank makes a
# group, but only the one that it is in?

# %%
predict("")

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
# a group it returns a mark, `dist.GroupMember.NON_GROUP_MEMBER`. If you want each rank to make only its own
# groups, say `use_local_synchronization=True`: then only the members have to call.
#
# ## Exercise: node_groups
#
# Ranks fill the nodes one after the other, so the node of rank $r$ is `r // ranks_per_node`. Return two
# groups that the calling rank is in:
#
# 1. that of all ranks on its node;
# 2. that of the ranks that have the same place on each node. In the picture above, these are the ranks of
#    one rail.
#
# The number of ranks is a multiple of `ranks_per_node`, which may be 1 or all of them.

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
# Two groups for each rank, as in a table: one for its row, one for its column. Torch has this under the
# name of [`DeviceMesh`](https://docs.pytorch.org/tutorials/recipes/distributed_device_mesh.html): you give
# the shape of the table, and it makes the groups.

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
# Here are four ranks on two nodes, and a tensor of two parts on each.
#
# ![Four ranks on two nodes. At first each rank has both parts of its own tensor. After step 1, inside the
# node, the first rank of each node has part 0 summed over the node, the second has part 1. After step 2,
# across nodes, they have the same parts summed over all ranks. After step 3, inside the node, every rank
# has both parts.](../imgs/two_levels.png)
#
# You know a collective for each of the three steps. **Predict:** which one is it, and in which of your two
# groups?

# %%
predict("")

# %% [markdown]
# ## Exercise: hierarchical_all_reduce
#
# In place, `x` becomes the reduction over all ranks. Between nodes, no call and no message may carry more
# than a **share**: $\lceil \text{len}/k \rceil$ elements of a rank, where $k$ is `ranks_per_node`. Many small
# pieces do not help: all in all, a rank may send at most $\max(2, \text{nodes} - 1)$ shares to other nodes,
# where a built-in collective counts as what the best algorithm of messages sends for it. Allowed are
# `new_group`, `reduce_scatter`, `all_reduce` and `all_gather` in all their forms, and messages.
#
# - `op` is SUM, AVG, MIN, MAX or PRODUCT; AVG comes with floating-point numbers only.
# - `x` may have any shape and any length, and $k$ need not divide it.
# - gloo's `reduce_scatter_tensor` and `all_gather_into_tensor` want flat tensors, cut into equal parts.

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
# **Predict:** the eight ranks on two nodes again, with 840 numbers. How many leave node 0, and through
# which ranks?

# %%
predict("")

# %%
def two_levels(elements, ranks_per_node):
    hierarchical_all_reduce(torch.ones(elements), dist.ReduceOp.SUM, ranks_per_node)


if hierarchy_works:
    show_crossing("two levels", simulate(two_levels, 8, 840, 4).trace)

# %% [markdown]
# 840 numbers, the least that is possible from rank to rank, and a quarter of them through each card.
#
# On simulated ranks, collectives run message by message, so you can step through your own run. Here it is
# on two nodes of two ranks: which rounds stay inside the nodes?

# %%
replay(simulate(two_levels, 4, 8, 2)) if hierarchy_works else None

# %% [markdown]
# And in real time, on real processes. Each bar is a call of yours. How much time goes into making the
# groups? (In a training loop, make them once and keep them.)

# %% tags=["nbval-ignore-output"]
timeline(run(two_levels, 4, 2**20, 2)) if hierarchy_works else None

# %% [markdown]
# ## The race
#
# Now the cluster from the beginning: 16 nodes of 8 GPUs, and then 64 nodes. We race the flat algorithms
# against yours. Across the nodes yours calls `all_reduce`, which needs an algorithm, too: take a ring
# once, and halving and doubling once.
#
# A gigabyte on each of 512 ranks does not fit into your memory. But a message takes
# $\alpha + \text{bytes} \cdot \beta$: if we multiply $\beta$ by 8192, every byte stands for 8 KiB. (`replace` copies
# the description of a cluster with other values.)
#
# **Predict:** for 64 KiB and for 1 GiB on 128 ranks, in which order do the five finish?

# %%
predict("")

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
# steps. The tree, and halving and doubling, take $2 \log_2 128 = 14$ rounds whether on two levels or flat:
# 8 of them cross and 6 do not.
#
# **1 GiB is a matter of bandwidth.** The flat ring sends almost 2 GiB through one card of each node. The
# tree sends whole tensors, 14 times one after the other. With two levels, every card carries an eighth of
# that: four to five times as fast as the ring in all, and not eight times, because the steps inside the
# node take their time, too.
#
# Now 512 ranks. A flat ring sends $2 \cdot 512 \cdot 511$ messages there, for which the simulator needs a
# while. But we know its formula, so let us see whether it agrees on 128 ranks, and leave the simulation out.

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

if hierarchy_works:
    race(512, RACERS[1:])

# %% [markdown]
# The larger the cluster, the more it matters. For 64 KiB the flat ring takes 14 ms on 512 ranks, which is
# $2 \cdot 511$ latencies of the network.
#
# ### The same algorithm on other ranks
#
# Flat halving and doubling lost because its largest messages go farthest: to the rank that is $n/2$ away.
# What if the ranks were dealt to the nodes in turns, so that *these* ranks share a node?
#
# **Predict:** does it then lose against two levels, does it win, or do they draw?

# %%
predict("")

# %%
# 0, 16, 32, … share a node
dealt = tuple(rank for node in range(16) for rank in range(node, 128, 16))
halving = seconds(flat, 128, 2**15, 2**13, replace(H100, order=dealt), "rabenseifner")
print(f"halving and doubling, ranks dealt in turns: {1e3 * halving:.3f} ms")

# %% [markdown]
# The same time, to the microsecond. With the ranks dealt like that, the first three exchanges halve the
# tensor *inside* the nodes: a reduce-scatter in the node. The next four and their way back are an
# all-reduce across of what is left, and the last three an all-gather in the node. It *is* your algorithm.
# What matters is not the name of an algorithm but which messages are long and how far they go: **large
# near, small far.**
#
# ### One card for a node
#
# Not every node has a card for each GPU. Take the same nodes with a single card of 50 GB/s, which all 8
# GPUs share.
#
# **Predict:** with 1 GiB on 128 ranks, how many times as fast as the flat ring is your function now?

# %%
predict("")

# %%
one_card = replace(H100, links=1)
if hierarchy_works:
    race(128, (RACERS[0], RACERS[2], RACERS[3], RACERS[4]), one_card)

# %% [markdown]
# With 1 GiB they are within 4 % of each other. Count again what leaves a *node*: with the ring
# $2(n-1)/n \cdot S$ through one rank, with two levels $2(k-1)/k \cdot S$ in all, for $n$ ranks on $k$ nodes. For
# many nodes both are almost $2S$. Two levels do not send much less; they **share it out** among the cards,
# and take fewer slow steps. Where there is one card, sharing gains nothing, and only the latency is left to
# win: at 64 KiB. Flat halving and doubling suffers most. Each of its ranks sends $15/8 \cdot S$ to other
# nodes, so $15 S$ have to go through every card.
#
# ## When the network adds
#
# All bounds so far hold for messages from rank to rank. A switch sees the data of all ranks anyway. If it
# can add, it need not pass on eight tensors: it passes on one.
#
# ![Left, a ring of four ranks: each sends 2 · ¾ S and receives as much. Right, a switch in the middle that
# adds: each rank sends S to it and receives S from it.](../imgs/switch_that_adds.png)
#
# Then a rank sends its own $S$ once and receives the result once: $S$ each way, for any number of ranks.
#
# **Predict:** how many times as fast as a ring is that at best, with 2, 8 and 512 ranks, where bandwidth is
# all that counts?

# %%
predict("")

# %%
for n in (2, 8, 512):
    ring = 2 * (n - 1) / n
    print(f"{n:3} ranks: {ring:.3f} S on a ring, S with a switch that adds; {ring:.3f} times as fast")

# %% [markdown]
# Never more than twice, and nothing at all for two ranks. Latency gains more: one trip to the switch and
# back, or up a tree of switches, in place of $2(n-1)$ steps from rank to rank.
#
# - **SHARP** puts the sums into the switches of an InfiniBand network. In 2016, an all-reduce of 8 bytes on
#   128 hosts went from 6.01 to 2.83 µs
#   ([Graham et al. 2016](https://www.aminer.org/pub/58d8301ad649053542fe2a63/scalable-hierarchical-aggregation-protocol-sharp-a-hardware-architecture-for-efficient-data-reduction)).
#   Switches of 2020 reduce long tensors as they stream through, at about 95 % of the network's bandwidth
#   ([Graham et al. 2020](https://doi.org/10.1007/978-3-030-50743-5_3)).
# - **NVLS**, NVLink SHARP, does the same inside a node, in the
#   [NVSwitch of the H100's generation](https://developer.nvidia.com/blog/upgrading-multi-gpu-interconnectivity-with-the-third-generation-nvidia-nvswitch/).
#   It ends where [NVLink ends](https://github.com/NVIDIA/nccl/issues/1031).
#
# The conditions: the switch has to know the operation and the dtype, and it rounds where it adds, so the
# bits may differ from a ring's. And a *bus bandwidth* (chapter [14](14_bandwidth.ipynb)) can then be
# higher than that of any link, since its factor $2(n-1)/n$ counts bytes that a rank no longer sends.
#
# ## In libraries
#
# - NCCL makes several rings that leave a node through different cards, and
#   [splits the data among them](https://github.com/NVIDIA/nccl/issues/601): eight rings with $S/8$ each
#   have the bandwidth of two levels, with the latency of a ring. Its trees are
#   [between nodes only](https://github.com/NVIDIA/nccl/issues/545), and ranks inside a node form a chain.
# - Horovod's hierarchical all-reduce is [yours](https://github.com/uber/horovod/tree/master/docs): a
#   reduce-scatter by NCCL, an all-reduce by MPI, an all-gather by NCCL.
# - FSDP can shard a model inside each node and replicate it across nodes (HSDP). For gradients it calls
#   [a reduce-scatter and then an all-reduce](https://github.com/pytorch/pytorch/pull/126166): your first two
#   steps. The third is the all-gather before the next forward.
#
# ## Summary
#
# - A link inside a node is about ten times as fast as one between nodes. Ask of every message whether it
#   crosses.
# - On rails, ranks with the same place are one switch apart. A fat tree has as much bandwidth up as down; an
#   oversubscribed one has less.
# - `new_group` is a collective of the whole world, unless you say `use_local_synchronization=True`.
# - **Reduce-scatter in the node, all-reduce across, all-gather in the node**: each rank takes
#   $2(k-1)/k \cdot S/8$ across on $k$ nodes of 8.
# - That is the least that can leave a node from rank to rank, shared out among all cards, in few slow
#   steps. With one card for each node only the steps are left to gain.
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
# If the data are cut into pieces, one piece can be inside while another is across, as in the pipelined ring
# of chapter [11](11_ring_all_reduce.ipynb); then the larger of the two is what remains.
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
# In a ring that is laid out node by node, one rank of each node has its right neighbour in another node.
# With several rings, that is another rank in each ring.
# </details>
#
# <details><summary>You exchange the two groups: reduce-scatter across, all-reduce in the node, all-gather across. Is the result right? What crosses?</summary>
#
# It is right. But the reduce-scatter and the all-gather move all of x between nodes: 2(k − 1)/k · S for each
# rank, as many times more as a node has ranks.
# </details>
#
# <details><summary>Your cluster is oversubscribed 4 to 1 above the leaves, and rail-optimized. Does the all-reduce on two levels notice?</summary>
#
# Not as long as all nodes are connected to the same leaves: across the nodes, each rank only talks to ranks of
# its own rail, which is one switch.
# </details>
#
# **Next:** [22 · Failures](22_failures.ipynb): what happens when a rank dies, and what the others can do.
