"""What crosses between judge and rank: values and frames."""

from __future__ import annotations

import math
import socket
import struct

import msgspec
import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from headcount.core.codec import (
    MANY_PARTS,
    STRUCTURE,
    pack,
    pack_answer,
    pack_known,
    unpack,
)
from headcount.core.events import Completed, Posted
from headcount.core.values import Opaque
from headcount.core.wire import (
    LONGEST,
    BrokenFrame,
    FrameReader,
    FrameWriter,
    Raised,
    Resolved,
    Returned,
    read_frames,
)

characters = st.characters(exclude_categories=["Cs"])

#: Keys of sets and dicts, where whole numbers have up to 64 bits.
keys = st.text(characters) | st.integers(-(2**63) + 1, 2**63 - 1)

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(characters),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(keys, max_size=4)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=20,
)


@given(trees)
def test_plain_values_come_back_as_they_were(tree):
    assert unpack(pack(tree)) == tree


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64,
        torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_tensors_of_all_kinds(dtype, shape):
    x = torch.ones(shape).to(dtype)
    y = unpack(pack([x]))[0]
    assert y.dtype == x.dtype
    assert torch.equal(x, y)
    y.zero_()  # writable, and no copy of another


def test_tensors_that_share_or_have_strides():
    x = torch.arange(6.0).view(2, 3)
    found = unpack(pack([x, x[0], x.t(), torch.ones(1).expand(4), x.conj(), x]))
    assert [t.shape for t in found] == [(2, 3), (3,), (3, 2), (4,), (2, 3), (2, 3)]
    assert torch.equal(found[2], x.t())


def test_tensors_with_gradients_and_of_other_classes():
    found = unpack(pack([torch.nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True)]))
    assert [type(t) for t in found] == [torch.Tensor] * 2
    assert not any(t.requires_grad for t in found)


@pytest.mark.parametrize("name", sorted(dist.ReduceOp.RedOpType.__members__))
def test_reductions(name):
    assert unpack(pack(getattr(dist.ReduceOp, name))) == getattr(dist.ReduceOp, name)


def test_devices_that_this_machine_need_not_have():
    devices = [torch.device("cpu"), torch.device("cuda"), torch.device("cuda", 63)]
    assert unpack(pack(devices)) == devices


def test_dtypes_and_special_numbers():
    assert unpack(pack(torch.int16)) is torch.int16
    assert unpack(pack(2**200)) == 2**200
    assert math.isnan(unpack(pack(float("nan"))))
    assert unpack(pack(float("-inf"))) == -math.inf


def test_every_dtype_can_be_an_answer():
    every = [value for value in vars(torch).values() if isinstance(value, torch.dtype)]
    assert unpack(pack(every)) == every


def test_a_device_that_only_the_rank_knows_travels_as_its_name():
    # as a rank packs it that has called torch.utils.rename_privateuse1_backend
    data = pack(torch.device("cpu")).replace(b"cpu", b"npu")
    assert unpack(data) == Opaque("the device npu")


def test_numbers_are_whole_or_named():
    assert unpack(pack(-(10**4000))) == -(10**4000)
    assert unpack(pack(10**5000)) == Opaque("an int of 16,610 bits")


def test_a_number_of_numpy_is_as_good_as_pythons():
    came = unpack(pack([np.float64(0.1), np.float64("inf")]))
    assert came == [0.1, math.inf]
    assert [type(number) for number in came] == [float, float]


@pytest.mark.parametrize(
    "value, kind",
    [
        (object(), "an object"),
        ((i for i in ()), "a generator"),
        (torch.ones(2, device="meta"), "a float32 tensor of shape (2,) on device meta"),
        (torch.ones(2).to_sparse(), "a float32 tensor of shape (2,) of layout torch.sparse_coo"),
        (torch.ones(2, dtype=torch.complex128), "a complex128 tensor of shape (2,)"),
        ({(1,): 2}, "a dict"),
        (print, "a builtin_function_or_method"),
    ],
)
def test_what_has_no_place_in_an_answer_travels_as_its_name(value, kind):
    found = unpack(pack(value))
    assert isinstance(found, Opaque)
    assert found.kind == kind


def test_a_repr_that_raises_does_no_harm():
    class Nasty:
        def __repr__(self):
            raise SystemExit

    with pytest.raises(SystemExit):
        repr(Nasty())

    class Rude:
        def __repr__(self):
            raise ValueError

    assert unpack(pack(Rude())).text == ""


def test_large_tensors_are_named_and_not_sent():
    data = pack(torch.ones(1).expand(10**12), limit=1000)
    assert len(data) < 1000
    assert unpack(data).shape == (10**12,)


def test_long_lists_are_cut():
    assert unpack(pack([0] * 10**6)).kind == "a list of 1000000"
    assert len(pack([[0] * 1000] * 1000)) < 10**7


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 100_000] * 1000,
        [10**4000] * 2000,
        ["\0" * 100_000] * 50,
    ],
    ids=["texts", "numbers", "controls"],
)
def test_however_many_there_are_the_structure_stays_small(value):
    data, omitted = pack_answer(value)
    assert len(data) < STRUCTURE / 2
    assert " after " in omitted
    unpack(data)


@pytest.mark.parametrize(
    "value, limit, omitted",
    [
        ([1, torch.ones(3)], 100, ""),
        ([1, torch.ones(300)], 1000, "a float32 tensor of shape (300,) (1.2 kB)"),
        ("x" * 100_001, None, "a str of 100001 characters"),
        ([[0] * 100_001], None, "a list of 100001"),
        ({"a": dict.fromkeys(range(100001), 0)}, None, "a dict of 100001"),
        (2**20_000, None, "an int of 20,001 bits"),
    ],
    ids=["nothing", "tensor", "text", "list", "dict", "number"],
)
def test_what_is_left_out_is_said(value, limit, omitted):
    assert pack_answer(value, limit)[1] == omitted


@pytest.mark.parametrize(
    "value",
    [object(), [1, torch.ones(2).to_sparse()], torch.ones(2, device="meta"), torch.ones(99)],
    ids=["object", "layout", "device", "large"],
)
def test_only_what_is_wholly_known_can_be_compared_by_its_bytes(value):
    assert pack_known([torch.ones(2), {"a": value}], 100) is None
    assert pack_known([torch.ones(2)], 100) == pack_known([torch.ones(2)], 100)


def test_no_memory_in_the_judge_is_no_forgery(monkeypatch):
    def nothing_left(data, dtype):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4")

    monkeypatch.setattr(torch, "frombuffer", nothing_left)
    with pytest.raises(MemoryError):
        unpack(pack(torch.ones(1)))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000, b"\xd6\xff\x00\x00\x00\x00",
        *map(
            msgspec.msgpack.encode,
            [
                {}, {"a": 1}, b"bytes", ["list", [b"bytes"]], ["tuple", 3], ["other"], [1, 2], [],
                ["list", [0] * (MANY_PARTS + 1)], ["list", [["list", [0] * 100_000]] * 3],
                ["set", [1.5]], ["set", [["int", "1"]]], ["dict", [[None, 1]]], ["dict", [[1]]],
                ["int", "x"], ["int", "9" * 5000], ["dtype", "x"], ["reduction", "x"],
                ["tensor", "0"], ["tensor", "float32", [1], b""],
                ["tensor", "float32", [1], 10**13], ["tensor", "float32", [1], b"123"],
                ["tensor", "float32", [2], b"1234"], ["tensor", "float32", [10**12], b""],
                ["tensor", "float32", [], "1234"], ["tensor", "quint8", [1], b"1"],
                ["tensor", "float32", ["1"], b"1234"], ["tensor", "float32", [-1, -1], b"1234"],
                ["tensor", "float32", [0, 2**62, 2**62], b""], ["large", "bits8", [2]],
            ],
        ),
    ],
)  # fmt: skip
def test_bytes_that_are_no_value(data):
    with pytest.raises(BrokenFrame):
        unpack(data)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool])
def test_a_single_element_may_have_any_stride(dtype):
    x = torch.arange(8).to(dtype)
    for one in (x[5:6:7], x[3:4].as_strided((1, 1), (0, 5)), x[2].expand(1), x[7], x[4:4]):
        assert torch.equal(unpack(pack(one)), one)


def test_no_map_is_read_whatever_its_keys_are():
    """Python's dict of keys that share a hash, as tuples of numbers can, takes quadratic time."""
    body = b"\x81" + msgspec.msgpack.encode([1, 2]) + b"\0"
    assert msgspec.msgpack.decode(body) == {(1, 2): 0}
    with pytest.raises(BrokenFrame, match="got `object`"):
        unpack(body)


def test_keys_that_can_share_a_hash_are_not_sent():
    same = [k * (2**61 - 1) for k in range(100)]
    assert len(set(map(hash, same))) == 1
    assert isinstance(unpack(pack(set(same))), Opaque)
    assert isinstance(unpack(pack(dict.fromkeys(same))), Opaque)


def test_nothing_can_compute_with_a_tensor_that_was_not_sent():
    large = unpack(pack(torch.ones(1).expand(10**6, 10**6), limit=100))
    assert (large.shape, large.dtype) == ((10**6, 10**6), torch.float32)
    assert not isinstance(large, torch.Tensor)


def test_tensors_of_more_bytes_than_are_packed_are_not_unpacked():
    packed = pack([torch.zeros(2), {"x": torch.zeros(3)}])
    assert len(unpack(packed, limit=20)) == 2
    with pytest.raises(BrokenFrame):
        unpack(packed, limit=19)


def test_a_tensor_that_came_may_be_written_to():
    found = unpack(pack([torch.zeros(2)] * 2))
    found[0] += 1
    assert found[1].tolist() == [0, 0]


# Frames. --------------------------------------------------------------------------

EVENT = Posted(0, "send", 1, 0, "world", 4, 16, "float32", "", True, False, "a.py", 3, 99)
MESSAGES = [
    EVENT,
    Completed(0, 100),
    Returned(b"value", b"arguments", ["0"], 101),
    Raised("call", "ValueError", "no", [("a.py", 3, "f")], code=None),
]


def frames():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = FrameWriter(ours)
        for message in MESSAGES:
            writer.write(message, flush=False)
        writer.write(EVENT)
        return theirs.recv(1 << 16)


@given(st.integers(1, 40))
def test_frames_are_cut_wherever_the_chunks_end(size):
    data = frames()
    reader, found = FrameReader(), []
    for start in range(0, len(data), size):
        found += reader.feed(data[start : start + size])
    assert found == [*MESSAGES, EVENT]


def frame(body):
    return struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", LONGEST + 1),
        frame(b"garbage"),
        frame(msgspec.msgpack.encode(["post", "not a number"])),
        frame(msgspec.msgpack.encode(["unknown", 1])),
        frame(b"\x93" * 100_000),
        frame(msgspec.msgpack.encode(["A" * 10**6])),
        frame(msgspec.msgpack.encode(["raised", "call", "E" * 2**23, "", []])),
    ],
)
def test_what_is_no_frame_of_ours(data):
    with pytest.raises(BrokenFrame) as raised:
        list(FrameReader().feed(data))
    assert len(str(raised.value)) < 300


def test_the_ranks_side_reads_until_the_judge_hangs_up():
    ours, theirs = socket.socketpair()
    with theirs:
        FrameWriter(ours).write(Resolved(3, 1))
        ours.close()
        assert list(read_frames(theirs)) == [Resolved(3, 1)]
