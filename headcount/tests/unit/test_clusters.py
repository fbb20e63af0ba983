"""Clusters: what their links cost, how they are shared, and how they are described."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headcount.core.errors import RequestError
from headcount.core.wire import Simulate
from headcount.simulation.clusters import PRESETS, Cluster, Flat, Nodes, cluster_from
from headcount.simulation.network import Places, SharedLinks, fair_shares, ticks_of
from headcount.simulation.world import SimulatedWorld, channel_of
from unit.test_simulation import ring_all_reduce

INSIDE, BETWEEN = (10**15, 10**10), (10**16, 10**12)
SHARINGS = ["fifo", "max-min"]
NODES = {
    "alpha_inside": 1e-6,
    "beta_inside": 1e-11,
    "alpha_between": 1e-5,
    "beta_between": 1e-9,
}


def nodes(per, sharing="fifo", **fields):
    return Nodes(ranks_per_node=per, **{**NODES, "sharing": sharing, **fields})


def simulate(function, size, cluster):
    """Run ``function(world, rank)`` on every rank; the world afterwards."""
    world = SimulatedWorld(
        [lambda rank=rank: function(world, rank) for rank in range(size)], cluster.network(size)
    )
    world.run()
    for rank in world.ranks:
        if rank.error is not None:
            raise rank.error
    assert all(rank.ended is not None for rank in world.ranks)
    return world


def message(world, source, destination, nbytes):
    """What the current rank does for one message, and waits for."""
    if world.current.number == source:
        world.wait(world.post_send(torch.zeros(nbytes, dtype=torch.uint8), destination, source))
    elif world.current.number == destination:
        world.post_receive(torch.zeros(nbytes, dtype=torch.uint8), source, source).wait()


def ended(world):
    return [rank.ended for rank in world.ranks]


# Links. ----------------------------------------------------------------------


def across(world, rank):
    half = world.size // 2
    message(world, rank % half, half + rank % half, 100)


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("k", range(1, 9))
def test_messages_that_share_a_link_take_as_many_times_as_long(k, sharing):
    world = simulate(across, 2 * k, nodes(k, sharing))
    alpha, bytes_alone = BETWEEN[0], 100 * BETWEEN[1]
    each = [alpha + (i + 1) * bytes_alone for i in range(k)]
    if sharing == "max-min":
        each = [each[-1]] * k
    assert ended(world) == each + each


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(("k", "links", "most"), [(8, 8, 1), (8, 4, 2), (8, 3, 3), (4, 9, 1)])
def test_ranks_take_the_links_of_their_node_in_turns(k, links, most, sharing):
    world = simulate(across, 2 * k, nodes(k, sharing, links=links))
    assert world.now == BETWEEN[0] + most * 100 * BETWEEN[1]


@pytest.mark.parametrize("sharing", SHARINGS)
def test_links_are_full_duplex(sharing):
    def both_ways(world, rank):
        request = world.post_send(torch.zeros(100, dtype=torch.uint8), 1 - rank, rank)
        world.post_receive(torch.zeros(100, dtype=torch.uint8), 1 - rank, 1 - rank).wait()
        request.wait()

    assert simulate(both_ways, 2, nodes(1, sharing)).now == BETWEEN[0] + 100 * BETWEEN[1]


@pytest.mark.parametrize("sharing", SHARINGS)
def test_links_into_a_node_are_shared_as_well(sharing):
    def from_all(world, rank):
        # 0 and 1 are on nodes of their own, and 2 and 3 share one
        message(world, rank % 2, 2 + rank % 2, 100)

    order = nodes(2, sharing, order=(0, 4, 1, 5, 2, 3))
    world = simulate(lambda world, rank: from_all(world, rank) if rank < 4 else None, 6, order)
    assert world.now == BETWEEN[0] + 200 * BETWEEN[1]


@pytest.mark.parametrize("sharing", SHARINGS)
def test_links_out_of_a_node_are_shared_whoever_receives(sharing):
    def to_all(world, rank):
        message(world, rank % 2, 2 + rank % 2, 100)

    order = nodes(2, sharing, order=(0, 1, 2, 4, 3, 5))
    world = simulate(lambda world, rank: to_all(world, rank) if rank < 4 else None, 6, order)
    assert world.now == BETWEEN[0] + 200 * BETWEEN[1]


def test_links_that_no_rank_can_use_are_not_kept():
    assert max(nodes(4, links=1 << 30).places(8).links) < 8


def test_an_arrival_between_two_ticks_is_rounded_up():
    # three leave over link 0; one of them meets a fourth on link 4, which has 2/3 of that
    places = Places(tuple(range(8)), (0, 0, 0, 1, 2, 3, 4, 4))
    network = SharedLinks(places, inside=(0, 0), between=(0, 1))
    for source in range(4):
        network.carry(0, source, (4, 5, 6, 7)[source], 1)
    assert network.following() == 0
    assert network.arrived(0) == []
    assert network.following() == 2
    assert network.arrived(2) == [3]


@pytest.mark.parametrize("sharing", SHARINGS)
def test_ranks_go_on_in_their_order_whatever_they_waited_for(sharing):
    ran = []

    def meet(world, rank):
        if rank == 1:
            world.sleep(BETWEEN[0] + 100 * BETWEEN[1])
        else:
            message(world, 0, 2, 100)
        ran.append(rank)

    simulate(meet, 3, nodes(1, sharing))
    assert ran == [0, 1, 2]


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_port_serves_one_message_at_a_time_on_whatever_link(sharing):
    def gather(world, rank):
        if rank:
            message(world, rank, 0, 100)
        else:
            for source in range(1, world.size):
                message(world, source, 0, 100)

    one = BETWEEN[0] + 100 * BETWEEN[1]
    inside = INSIDE[0] + 100 * INSIDE[1]
    assert simulate(gather, 4, nodes(2, sharing, links=2)).now == inside + 2 * one


def test_a_flow_gets_faster_when_another_ends():
    def uneven(world, rank):
        message(world, rank % 2, 2 + rank % 2, 100 if rank % 2 else 300)

    alpha, beta = BETWEEN
    times = ended(simulate(uneven, 4, nodes(2, "max-min")))
    # together until the short one has its 100 bytes, then the long one alone
    assert times == [alpha + 400 * beta, alpha + 200 * beta] * 2


def test_a_flow_gets_slower_when_another_begins():
    def late(world, rank):
        if rank % 2:
            world.sleep(100 * BETWEEN[1])
        message(world, rank % 2, 2 + rank % 2, 200)

    alpha, beta = BETWEEN
    times = ended(simulate(late, 4, nodes(2, "max-min")))
    assert times == [alpha + 300 * beta, alpha + 400 * beta] * 2


def test_an_empty_message_does_not_wait_for_a_fair_share():
    def mixed(world, rank):
        message(world, rank % 2, 2 + rank % 2, 0 if rank % 2 else 100)

    times = ended(simulate(mixed, 4, nodes(2, "max-min")))
    assert times == [BETWEEN[0] + 100 * BETWEEN[1], BETWEEN[0]] * 2


@pytest.mark.parametrize("cluster", [Flat(), nodes(1), nodes(1, "max-min")], ids=str)
def test_the_clock_goes_on_for_those_who_only_ask(cluster):
    def ask(world, rank):
        tensor = torch.zeros(8)
        end = world.post_receive(tensor, 0, 0) if rank else world.post_send(tensor, 1, 0)
        while not end.is_completed():
            pass
        return world.now

    world = simulate(ask, 2, cluster)
    assert [rank.value for rank in world.ranks] == [world.now] * 2
    assert world.now > 0


def test_messages_from_anybody_travel_on_shared_links_as_well():
    def collect(world, rank):
        if rank:
            world.sleep(rank)
            world.wait(world.post_send(torch.full((1,), float(rank)), 0, rank))
            return None
        got = [torch.zeros(1) for _ in range(1, world.size)]
        requests = [world.post_wildcard_receive(one, (0, "world")) for one in got]
        for request in requests:
            request.wait()
        return [one.item() for one in got]

    assert simulate(collect, 4, nodes(1, "max-min")).ranks[0].value == [1, 2, 3]


# Against other computations. -------------------------------------------------


@st.composite
def patterns(draw):
    """Ranks on nodes, and messages among them, of which each rank has at most one each way."""
    size = draw(st.integers(2, 12))
    order = draw(st.permutations(range(size)))
    targets = draw(st.permutations(range(size)))
    sizes = draw(st.lists(st.integers(0, 50), min_size=size, max_size=size))
    per, links = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    sends = {s: (d, n) for s, (d, n) in enumerate(zip(targets, sizes, strict=True)) if s != d}
    return size, tuple(order), per, links, sends


def exchanged(world, rank, sends):
    request = None
    if rank in sends:
        target, nbytes = sends[rank]
        request = world.post_send(torch.zeros(nbytes, dtype=torch.uint8), target, rank)
    for source, (target, nbytes) in sends.items():
        if target == rank:
            world.post_receive(torch.zeros(nbytes, dtype=torch.uint8), source, source).wait()
    if request is not None:
        request.wait()


def fluid(paths, works):
    """When each flow ends, with all begun at 0: no events, no components, no rounding."""
    left, now, ends = dict(works), Fraction(0), {flow: Fraction(0) for flow in works}
    while left := {flow: work for flow, work in left.items() if work}:
        flows = sorted(left)
        shares = dict(
            zip(
                flows,
                fair_shares(
                    [paths[flow] for flow in flows],
                    {link: 1 for flow in flows for link in paths[flow]},
                ),
                strict=True,
            )
        )
        step = min(left[flow] / shares[flow] for flow in flows)
        now += step
        for flow in flows:
            left[flow] -= step * shares[flow]
            ends[flow] = now
    return ends


@given(patterns())
def test_an_exchange_on_shared_links_ends_as_the_fluid_model_says(pattern):
    size, order, per, links, sends = pattern
    cluster = nodes(per, "max-min", order=order, links=links)
    world = simulate(lambda world, rank: exchanged(world, rank, sends), size, cluster)
    seat = {rank: place for place, rank in enumerate(order)}
    link = {r: (p // per, p % per % links) for r, p in seat.items()}
    paths, works, arrives = {}, {}, {}
    for source, (target, nbytes) in sends.items():
        if seat[source] // per == seat[target] // per:
            arrives[source] = INSIDE[0] + nbytes * INSIDE[1]
        else:
            paths[source] = [("out", link[source]), ("in", link[target])]
            works[source] = Fraction(nbytes * BETWEEN[1])
    for source, end in fluid(paths, works).items():
        arrives[source] = BETWEEN[0] + end
    expected = [0] * size
    for source, (target, _) in sends.items():
        expected[source] = max(expected[source], arrives[source])
        expected[target] = max(expected[target], arrives[source])
    # each arrival before may have been rounded up, by less than a tick
    assert all(abs(t - e) <= len(sends) for t, e in zip(ended(world), expected, strict=True))
    assert world.messages == len(sends)
    assert world.bytes == sum(nbytes for _, nbytes in sends.values())


@given(patterns(), st.sampled_from(SHARINGS))
def test_the_same_program_takes_the_same_ticks_and_moves_every_byte(pattern, sharing):
    size, order, per, links, sends = pattern
    cluster = nodes(per, sharing, order=order, links=links)

    def twice(world, rank):
        exchanged(world, rank, sends)
        exchanged(world, rank, sends)

    first, second = (simulate(twice, size, cluster) for _ in range(2))
    assert ended(first) == ended(second)
    assert first.messages == second.messages == 2 * len(sends)
    assert first.bytes == 2 * sum(nbytes for _, nbytes in sends.values())
    # no link carries more than one byte in β
    load = Counter()
    placed = cluster.places(size)
    for source, (target, nbytes) in sends.items():
        if placed.nodes[source] != placed.nodes[target]:
            load["out", placed.links[source]] += 2 * nbytes
            load["in", placed.links[target]] += 2 * nbytes
    assert first.now >= max(load.values(), default=0) * BETWEEN[1]


@given(st.lists(patterns(), min_size=1, max_size=4))
def test_links_that_nobody_shares_are_used_alike(several):
    size = min(pattern[0] for pattern in several)
    per = several[0][2]

    def burst(world, rank):
        """Several exchanges at once, so that messages queue at ports."""
        requests = []
        for tag, (_, _, _, _, sends) in enumerate(several):
            for source, (target, nbytes) in sends.items():
                if max(source, target) < size and rank in (source, target):
                    channel, tensor = channel_of(source, tag + 1), torch.zeros(nbytes)
                    if rank == source:
                        requests.append(world.post_send(tensor, target, channel))
                    else:
                        requests.append(world.post_receive(tensor, source, channel))
        for request in requests:
            request.wait()

    queues, shares = (simulate(burst, size, nodes(per, s, links=per)) for s in SHARINGS)
    assert ended(queues) == ended(shares)


# Rings. ----------------------------------------------------------------------


def ring(size, cluster, per_chunk=5):
    tensors = [torch.arange(size * per_chunk, dtype=torch.float64) + r for r in range(size)]
    expected = torch.stack(tensors).sum(0)
    world = simulate(lambda world, rank: ring_all_reduce(world, rank, tensors[rank]), size, cluster)
    assert all(torch.equal(tensor, expected) for tensor in tensors)
    return world.now


def crowd(order, per, links):
    """How many edges of the ring cross nodes over each link, out and in."""
    seat = {rank: place for place, rank in enumerate(order)}
    used = Counter()
    for rank in order:
        following = (rank + 1) % len(order)
        if seat[rank] // per != seat[following] // per:
            used["out", seat[rank] // per, seat[rank] % per % links] += 1
            used["in", seat[following] // per, seat[following] % per % links] += 1
    return set(used.values())


@pytest.mark.parametrize(("count", "per", "links"), [(2, 4, 1), (4, 4, 1), (3, 8, 2), (4, 8, 8)])
def test_a_shuffled_ring_is_slower_by_what_its_links_have_to_carry(count, per, links):
    size, nbytes = count * per, 5 * 8
    laid_out = list(range(size))
    # one rank of each node after the other: every edge crosses
    dealt = [rank for node in range(count) for rank in range(node, size, count)]
    alpha, beta = BETWEEN
    times = {}
    for name, order in (("laid out", laid_out), ("dealt", dealt)):
        (k,) = crowd(order, per, links)
        times[name] = 2 * (size - 1) * (alpha + k * nbytes * beta)
        cluster = nodes(per, "max-min", links=links, order=tuple(order))
        assert ring(size, cluster) == times[name]
    if links < per:
        assert times["dealt"] > times["laid out"]


@pytest.mark.parametrize(("count", "per"), [(2, 4), (4, 4), (3, 8)])
def test_a_dealt_ring_keeps_links_that_queue_busy_all_the_time(count, per):
    size, nbytes = count * per, 5 * 8
    dealt = tuple(rank for node in range(count) for rank in range(node, size, count))
    free = {"alpha_inside": 0, "alpha_between": 0}
    slow = ring(size, nodes(per, order=dealt, **free))
    fast = ring(size, nodes(per, **free))
    assert fast == 2 * (size - 1) * nbytes * BETWEEN[1]
    assert slow == per * fast


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_ring_inside_a_node_costs_what_it_costs_in_a_flat_cluster(size, sharing):
    flat = Flat(NODES["alpha_inside"], NODES["beta_inside"])
    assert ring(size, nodes(8, sharing)) == ring(size, flat)


# Fair shares. ----------------------------------------------------------------


def test_shares_of_flows_with_different_bottlenecks():
    paths = [["a"], ["a", "b"], ["a", "c"], ["b"], ["c"]]
    shares = fair_shares(paths, {"a": 10, "b": 8, "c": 2})
    # c is full first, at 1 for each of two; then b, at 4; what is left of a goes to the first
    assert shares == [5, 4, 1, 4, 1]


def test_shares_need_not_be_whole():
    # 1 for three flows; of the other 1, one has taken a third
    assert fair_shares([["a"]] * 2 + [["a", "b"], ["b"]], {"a": 1, "b": 1}) == [
        Fraction(1, 3),
        Fraction(1, 3),
        Fraction(1, 3),
        Fraction(2, 3),
    ]


@st.composite
def flows(draw):
    capacities = draw(st.dictionaries(st.integers(0, 5), st.integers(1, 20), min_size=1))
    links = st.sets(st.sampled_from(sorted(capacities)), min_size=1).map(sorted)
    return draw(st.lists(links, max_size=12)), capacities


@given(flows())
def test_shares_are_max_min_fair(case):
    paths, capacities = case
    shares = fair_shares(paths, capacities)
    on = {link: [f for f, path in enumerate(paths) if link in path] for link in capacities}
    for link, using in on.items():
        assert sum(shares[flow] for flow in using) <= capacities[link]
    for flow, path in enumerate(paths):
        # it cannot grow, unless at the cost of one that is no larger
        assert shares[flow] > 0
        assert any(
            sum(shares[other] for other in on[link]) == capacities[link]
            and all(shares[other] <= shares[flow] for other in on[link])
            for link in path
        )


# Descriptions. ---------------------------------------------------------------


@pytest.mark.parametrize("cluster", [one.cluster for one in PRESETS.values()], ids=PRESETS)
def test_a_description_survives_its_frame_and_its_file(cluster, tmp_path):
    data = msgspec.msgpack.encode(cluster)
    request = Simulate(b"", "f", b"", [], data, -1, 0, False, True, 0, [], "", False, 0, 0)
    frame = msgspec.msgpack.encode(request)
    assert msgspec.msgpack.decode(frame, type=Simulate) == request
    assert msgspec.msgpack.decode(request.cluster, type=Cluster) == cluster
    path = tmp_path / "mine.json"
    path.write_bytes(msgspec.json.encode(cluster))
    assert cluster_from(str(path)) == cluster


@pytest.mark.parametrize("name", PRESETS)
def test_every_constant_of_a_preset_has_a_source(name):
    preset = PRESETS[name]
    fields = {f for f in preset.cluster.__struct_fields__ if getattr(preset.cluster, f) != ()}
    assert set(preset.sources) == fields
    for source in preset.sources.values():
        assert source.says
        assert source.url.startswith("http") or source.kind in ("measured", "chosen")
    assert cluster_from(name) is preset.cluster
    assert ring(16, preset.cluster) > 0


GOOD = {"type": "nodes", "ranks_per_node": 4, **NODES}


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({"type": "flat", "alfa": 1}, ["unknown field `alfa`", '"flat" it has alpha, beta']),
        ({"type": "flat", "a\x1b[31m": 1}, [r"a\x1b[31m"]),
        ({"alpha": 1}, ["missing required field `type`", '"type": "nodes"']),
        ({"type": "torus"}, ["'torus'"]),
        ({"type": "flat", "alpha": -1}, ["alpha is a time in seconds, at least 0; not -1"]),
        ({"type": "flat", "alpha": "fast"}, ["Expected `float`, got `str`", "$.alpha"]),
        ({"type": "flat", "alpha": 1e300}, ["alpha is a time in seconds"]),
        ({"type": "nodes"}, ["missing required field `ranks_per_node`"]),
        ({**GOOD, "ranks_per_node": 0}, ["ranks_per_node is a whole number, at least 1; not 0"]),
        ({**GOOD, "ranks_per_node": 2.5}, ["Expected `int`", "$.ranks_per_node"]),
        ({**GOOD, "links": -1}, ["links is a whole number, at least 1; not -1"]),
        ({**GOOD, "beta_between": -1}, ["beta_between is a time"]),
        ({**GOOD, "sharing": "round robin"}, ["'round robin'", "$.sharing"]),
        ({**GOOD, "order": [0, 2]}, ["each rank from 0 to 1 once", "(0, 2)"]),
        ({**GOOD, "order": [0] * 99}, ["each rank from 0 to 98 once", "99 in all"]),
        ([], ["Expected `object`, got `array`"]),
    ],
)
def test_a_file_that_describes_no_cluster(described, words, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(described))
    with pytest.raises(RequestError) as caught:
        cluster_from(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path} describes no cluster: ")
    assert message.isprintable()
    for word in words:
        assert word in message


@pytest.mark.parametrize("text", ["", "{", '{"type": "flat", "alpha": NaN}', "\xff"])
def test_a_file_that_is_no_json(text, tmp_path):
    path = tmp_path / "mine.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(RequestError, match="describes no cluster"):
        cluster_from(str(path))


def test_clusters_that_are_not_there(tmp_path):
    with pytest.raises(RequestError, match="'dgx-h10'; did you mean dgx-h100"):
        cluster_from("dgx-h10")
    with pytest.raises(RequestError, match=r"there are dgx-h100, .*loopback, or name a \.json"):
        cluster_from("???")
    with pytest.raises(RequestError, match="does not exist"):
        cluster_from(str(tmp_path / "none.json"))
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(RequestError, match=r"is a folder; name a \.json file in it"):
        cluster_from(str(tmp_path / "folder.json"))


def test_a_description_in_code_is_checked_as_well():
    with pytest.raises(RequestError, match="sharing is 'fifo' or 'max-min', not 'lifo'"):
        nodes(4, "lifo")
    with pytest.raises(RequestError, match=r"at least 1; not 1\.5"):
        nodes(1.5)
    with pytest.raises(RequestError, match="order names 2 ranks, and there are 3; name all"):
        nodes(4, order=(1, 0)).network(3)
    assert ticks_of(NODES["beta_between"]) == BETWEEN[1]
