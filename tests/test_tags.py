import itertools
import random

import pytest

from spacy_robust_ner.tags import SCHEMES, SchemeDetector, decode_tags, encode_tags, split_tag

SPANS = [(0, 1, "PER"), (1, 4, "PER"), (4, 6, "ORG"), (7, 8, "LOC"), (8, 9, "LOC")]
TAGS = {
    "iob1": "I-PER B-PER I-PER I-PER I-ORG I-ORG O I-LOC B-LOC O",
    "iob2": "B-PER B-PER I-PER I-PER B-ORG I-ORG O B-LOC B-LOC O",
    "bioes": "S-PER B-PER I-PER E-PER B-ORG E-ORG O S-LOC S-LOC O",
    "bilou": "U-PER B-PER I-PER L-PER B-ORG L-ORG O U-LOC U-LOC O",
    "bmes": "S-PER B-PER M-PER E-PER B-ORG E-ORG O S-LOC S-LOC O",
}


def detect(*sentences):
    detector = SchemeDetector()
    for sentence in sentences:
        detector.update([None if tag == "-" else tag for tag in sentence.split()])
    return detector.result()


@pytest.mark.parametrize("scheme", TAGS)
def test_decode_and_encode_by_hand(scheme):
    tags = TAGS[scheme].split()
    assert decode_tags(tags, scheme) == (SPANS, [])
    assert encode_tags(SPANS, len(tags), scheme) == tags


@pytest.mark.parametrize("scheme", TAGS)
def test_detect_by_hand(scheme):
    assert detect("O O O", TAGS[scheme], "O") == scheme


@pytest.mark.parametrize("scheme", TAGS)
def test_round_trip_of_all_layouts(scheme):
    # Every way to cut five tokens into entities of two labels, O and missing.
    for states in itertools.product(["PER", "ORG", "O", None], repeat=5):
        for cuts in itertools.product([False, True], repeat=4):
            spans, start = [], 0
            for i in range(1, 6):
                same = i < 5 and states[i] == states[i - 1] and not cuts[i - 1]
                if not same:
                    if states[start] in ("PER", "ORG"):
                        spans.append((start, i, states[start]))
                    start = i
            missing = [i for i, state in enumerate(states) if state is None]
            tags = encode_tags(spans, 5, scheme, missing=missing)
            assert decode_tags(tags, scheme) == (spans, [])
            assert [i for i, tag in enumerate(tags) if tag is None] == missing


def test_detection_agrees_with_the_scheme_of_random_corpora():
    rng = random.Random(0)
    for scheme in TAGS:
        detector = SchemeDetector()
        for _ in range(50):
            position, spans = 0, []
            while position < 12:
                width = rng.randint(1, 4)
                if rng.random() < 0.6 and position + width <= 12:
                    spans.append((position, position + width, rng.choice(["PER", "ORG"])))
                position += width
            detector.update(encode_tags(spans, 12, scheme))
        assert detector.result() == scheme


def test_io_joins_neighbours_and_takes_bare_labels():
    assert decode_tags(["I-PER", "I-PER", "O", "I-ORG"], "io").spans == [
        (0, 2, "PER"),
        (3, 4, "ORG"),
    ]
    assert decode_tags(["PER", "PER", "art-music", None], "io").spans == [
        (0, 2, "PER"),
        (2, 3, "art-music"),
    ]


@pytest.mark.parametrize(
    ("scheme", "tags", "spans", "irregular"),
    [
        ("iob2", "O I-PER I-PER", [(1, 3, "PER")], [1]),
        ("iob2", "B-PER I-ORG", [(0, 1, "PER"), (1, 2, "ORG")], [1]),
        ("iob1", "O I-PER I-ORG", [(1, 2, "PER"), (2, 3, "ORG")], []),
        ("bioes", "B-PER O", [(0, 1, "PER")], [0]),
        ("bioes", "O E-PER", [(1, 2, "PER")], [1]),
        ("bioes", "S-PER E-PER", [(0, 1, "PER"), (1, 2, "PER")], [1]),
        ("bilou", "B-PER I-PER", [(0, 2, "PER")], [1]),
        ("bmes", "M-PER", [(0, 1, "PER")], [0]),
    ],
)
def test_irregular_tags_start_or_end_an_entity(scheme, tags, spans, irregular):
    assert decode_tags(tags.split(), scheme) == (spans, irregular)


def test_missing_ends_an_entity():
    spans, irregular = decode_tags(["B-PER", None, "I-PER"], "iob2")
    assert spans == [(0, 1, "PER"), (2, 3, "PER")]
    assert irregular == [2]


def test_labels_keep_hyphens_and_dots():
    assert split_tag("B-PER.NOM") == ("B", "PER.NOM")
    assert split_tag("I-art-music") == ("I", "art-music")
    assert split_tag("X-PER") == ("", "X-PER")


def test_detection_of_slips_and_gaps():
    assert detect("B-PER I-PER O", "O I-PER") == "iob2"
    assert detect("I-PER O I-ORG", "B-PER O") == "iob1"
    # After a missing token, I- is no sign of IOB1.
    assert detect("- I-PER", "- I-PER", "B-PER") == "iob2"
    assert detect("O O") == "iob2"
    assert detect("S-PER O") == "bioes"


def test_errors_name_the_tag_and_the_way_out():
    with pytest.raises(ValueError, match=r"R004.*'S-PER'.*'iob2'.*--scheme"):
        decode_tags(["S-PER"], "iob2")
    with pytest.raises(ValueError, match=r"R004.*'PER'"):
        decode_tags(["PER"], "bioes")
    with pytest.raises(ValueError, match=r"R005.*'biluo'"):
        decode_tags([], "biluo")
    with pytest.raises(ValueError, match=r"R006.*'NN'.*--scheme io"):
        detect("NN O")
    with pytest.raises(ValueError, match=r"R007.*B, E, L"):
        detect("B-PER L-PER", "B-PER E-PER")


def test_scheme_table_is_complete():
    assert set(SCHEMES) == {*TAGS, "io"}
