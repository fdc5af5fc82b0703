"""Shards of a run add up to it in every bit."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinair

CAPTURES = ["captures/coap_udp4_observe.pcap", "captures/rtp_udp4_h264.pcap", "captures/coap_udp6_observe.pcap"]


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 9), st.data())
def test_shards_are_one_run(partitions: int, data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, partitions))
    parts = [thinair.analyze(CAPTURES, partitions=partitions, shard=(i, shards)) for i in range(shards)]
    data.draw(st.randoms()).shuffle(parts)
    parts[::2] = pickle.loads(pickle.dumps(parts[::2]))
    assert thinair.merge(parts) == thinair.analyze(CAPTURES, partitions=partitions)


def test_parts_that_do_not_fit_are_refused() -> None:
    first, second = (thinair.analyze(CAPTURES, partitions=64, shard=(i, 2), schemes=["coap/o"]) for i in range(2))
    other = thinair.analyze(CAPTURES[0], partitions=64, shard=(1, 2), schemes=["coap/o"])
    for wrong, reason in [([], "no part"), ([first], "in none"), ([first, second, first], "in two parts"), ([first, other], "different")]:
        with pytest.raises(ValueError, match=reason):
            thinair.merge(wrong)


@pytest.mark.parametrize(("partitions", "shard"), [(0, None), (65_537, None), (2, (2, 2)), (2, (0, 3)), (1, (0, 0))])
def test_impossible_shards_are_refused(partitions: int, shard: tuple[int, int] | None) -> None:
    with pytest.raises(ValueError, match="invalid"):
        thinair.analyze(CAPTURES[0], partitions=partitions, shard=shard)
