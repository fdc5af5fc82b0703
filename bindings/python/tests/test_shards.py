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


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 9), st.lists(st.sampled_from(CAPTURES), min_size=1, max_size=3), st.integers(0, 5), st.data())
def test_shards_of_one_survey_are_one_run(partitions: int, captures: list[str], most_flows: int, data: st.DataObject) -> None:
    """With all schemes of a default comparison: of these SCHC and 6LoWPAN use what a survey derives."""
    whole = thinair.analyze(captures, partitions=partitions, most_flows=most_flows)
    survey = thinair.survey(captures, partitions=partitions, most_flows=most_flows)
    if data.draw(st.booleans()):
        survey = pickle.loads(pickle.dumps(survey))
    shards = data.draw(st.integers(1, partitions))
    parts = [thinair.analyze(captures, survey=survey, shard=(i, shards)) for i in range(shards)]
    assert thinair.merge(parts) == whole
    assert {scheme["scheme"] for scheme in whole.totals["schemes"]} >= {"schc", "rohc-v1"}


def test_a_survey_has_the_settings_of_its_shards() -> None:
    survey = thinair.survey(CAPTURES, partitions=4, most_flows=7, schemes=["coap/o", "schc"])
    assert (survey.schemes, survey.partitions, survey.most_flows) == (["coap/o", "schc"], 4, 7)
    assert repr(survey) == "<thinair.Survey: coap/o, schc; 4 partitions>"
    assert thinair.survey(CAPTURES[0]).schemes == ["rohc-v1/u", "rohc-v1/o", "coap/u", "coap/o", "schc"]
    with pytest.raises(ValueError, match="schemes, partitions of a survey cannot be changed"):
        thinair.analyze(CAPTURES, survey=survey, schemes=["schc"], partitions=4)


def test_a_survey_of_other_captures_is_refused() -> None:
    survey = thinair.survey(CAPTURES[0], partitions=4)
    parts = [thinair.analyze(capture, survey=survey, shard=(i, 2)) for i, capture in enumerate(CAPTURES[:2])]
    with pytest.raises(ValueError, match="different inputs"):
        thinair.merge(parts)


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
