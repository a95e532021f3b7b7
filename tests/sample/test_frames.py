import re
from pathlib import Path

import pytest

from spacy_robust_ner.sample.english import EnglishSample, read_themes
from spacy_robust_ner.sample.fillers import Fillers
from spacy_robust_ner.sample.frames import DATA_DIR, SLOT, Frame, read_stories
from spacy_robust_ner.sample.render import (
    Name,
    Scene,
    Sentence,
    bmes_tags,
    split_words,
    tagged_characters,
    tagged_words,
)
from spacy_robust_ner.sample.rng import StableRandom


class Numbered:
    """Names that count up, to see which slot got which."""

    def __init__(self) -> None:
        self.count = 0

    def __contains__(self, kind: str) -> bool:
        return kind in ("person", "city")

    def draw(self, kind: str, rng: StableRandom) -> Name:
        self.count += 1
        full = f"Ann {kind.title()}{self.count}"
        return Name({"full": full, "last": full.split()[1]}, {"full": "PER", "last": "PER"})


def make_scene() -> Scene:
    return Scene(Numbered(), Fillers({"thing": ["LED lamp"]}), StableRandom(0, "test"))


def frame(text: str, *, capitals: bool = False) -> Frame:
    return Frame(text, capitals, "frames.txt, line 1")


def test_four_hundred_distinct_frames() -> None:
    frames = [f for stories in read_themes().values() for story in stories for f in story.frames]
    # Frames that differ in their slots, choices or capitals alone count once.
    bare = {re.sub(r"\{[^}]*\}|\[[^\]]*\]|\W+", " ", f.text).lower().strip() for f in frames}
    assert len({f.text for f in frames}) == len(frames)
    assert len(bare - {""}) >= 400
    chinese = read_stories(DATA_DIR / "zh_frames.txt")
    assert len(chinese) >= 30
    readme = (Path(__file__).parents[2] / "assets" / "README.md").read_text(encoding="utf8")
    assert f"({len(frames)} English and {len(chinese)} Chinese ones" in readme


def test_every_frame_can_be_filled() -> None:
    sample = EnglishSample(0)
    rng = StableRandom(0, "every frame")
    for theme, stories in read_themes().items():
        for story in stories:
            scene = Scene(sample.rosters["train"], sample.fillers, rng)
            for each in story.frames:
                sentence = scene.fill(each)
                assert not re.search(r"[{}\[\]|#@]", sentence.text), each.place
                assert sentence.text == sentence.text.strip()
                assert theme != "plain" or not sentence.entities, each.place


def test_some_frames_are_held_out() -> None:
    sample = EnglishSample(0)
    shared = {story for stories in sample.shared.values() for story in stories}
    own = {
        split: {story for stories in themes.values() for story in stories}
        for split, themes in sample.held_out.items()
    }
    everything = {story for stories in read_themes().values() for story in stories}
    assert shared | own["dev"] | own["test"] == everything
    assert not shared & own["dev"]
    assert not shared & own["test"]
    assert not own["dev"] & own["test"]
    assert 0.12 < 1 - len(shared) / len(everything) < 0.2


def test_a_number_means_the_same_entity() -> None:
    scene = make_scene()
    first = scene.fill(frame("{person#1} met {person} and {city#1}."))
    assert first.text == "Ann Person1 met Ann Person2 and Ann City3."
    assert scene.fill(frame("{person#1.last} left {city#1}.")).text == "Person1 left Ann City3."
    assert scene.fill(frame("{person#2}")).text == "Ann Person4"


def test_labels_offsets_and_capitals() -> None:
    sentence = make_scene().fill(frame("So {city@ORG} beat {person.last@O}", capitals=True))
    assert sentence.text == "SO ANN CITY1 BEAT PERSON2"
    assert sentence.surface_forms() == [("ANN CITY1", "ORG")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a {person}", "an Ann Person1"),
        ("A {thing}", "An LED lamp"),
        ("Buy a {thing}", "Buy an LED lamp"),
        ("Santa {person}", "Santa Ann Person1"),
        ("a {person.last}", "a Person1"),
    ],
)
def test_article(text: str, expected: str) -> None:
    assert make_scene().fill(frame(text)).text == expected


def test_choices_all_occur() -> None:
    scene = make_scene()
    texts = {scene.fill(frame("[one|two {thing}|]!")).text for _ in range(60)}
    assert texts == {"one!", "two LED lamp!", "!"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("{planet} rose", "unknown kind 'planet'"), ("{person.nick} rose", "unknown form 'nick'")],
)
def test_unknown_slot(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"R040.*line 1.*{message}"):
        make_scene().fill(frame(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# notes\n\n+ {person} left", "line 3.*without a lead"),
        ("fine\nnot {person fine", "line 2.*'{'"),
        ("{PER} is no kind", "line 1.*'{'"),
        ("one [two|three", r"line 1.*'\['"),
    ],
)
def test_bad_frame_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "frames.txt"
    path.write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=rf"R040.*frames.txt, {message}"):
        read_stories(path)


def test_stories(tmp_path: Path) -> None:
    path = tmp_path / "frames.txt"
    path.write_text("# notes\nLead\n+ then\n+ ^ loud\n\n^ Other\n+1 for this\n", encoding="utf8")
    stories = read_stories(path)
    assert [[f.text for f in story.frames] for story in stories] == [
        ["Lead", "then", "loud"],
        ["Other"],
        ["+1 for this"],
    ]
    assert [f.capitals for story in stories for f in story.frames] == [
        False,
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (
            "Don't wait, it's $1,200.50!",
            ["Do", "n't", "wait", ",", "it", "'s", "$", "1,200.50", "!"],
        ),
        ("Dahl & Sons Ltd.", ["Dahl", "&", "Sons", "Ltd."]),
        ("J. Dahl won 3-1 (6-4).", ["J.", "Dahl", "won", "3-1", "(", "6-4", ")", "."]),
        ('"Wi-Fi," he said at 14:30.', ['"', "Wi-Fi", ",", '"', "he", "said", "at", "14:30", "."]),
        ("Q&A: 20%", ["Q&A", ":", "20", "%"]),
    ],
)
def test_words(text: str, tokens: list[str]) -> None:
    assert split_words(text) == tokens


def test_tags_follow_entity_borders() -> None:
    sentence = Sentence("A New York-born man's Aria X-2.", ((2, 10, "LOC"), (22, 30, "PRODUCT")))
    assert tagged_words(sentence) == [
        ("A", "O"),
        ("New", "B-LOC"),
        ("York", "I-LOC"),
        ("-", "O"),
        ("born", "O"),
        ("man", "O"),
        ("'s", "O"),
        ("Aria", "B-PRODUCT"),
        ("X-2", "I-PRODUCT"),
        (".", "O"),
    ]


def test_bmes() -> None:
    assert bmes_tags(1, "PER") == ["S-PER"]
    assert bmes_tags(2, "PER") == ["B-PER", "E-PER"]
    assert bmes_tags(4, "PER") == ["B-PER", "M-PER", "M-PER", "E-PER"]
    rows = tagged_characters(Sentence("王芳来了。", ((0, 2, "PER"),)))
    assert rows == [("王", "B-PER"), ("芳", "E-PER"), ("来", "O"), ("了", "O"), ("。", "O")]


def test_slot_syntax() -> None:
    match = SLOT.fullmatch("{city#12.full@ORG}")
    assert match is not None
    assert match.groupdict() == {"kind": "city", "id": "12", "form": "full", "label": "ORG"}


def test_stable_random_is_pinned() -> None:
    rng = StableRandom(0, "pinned")
    drawn = [rng.between(0, 99) for _ in range(5)]
    assert drawn == [68, 73, 70, 50, 24]
    assert sorted(StableRandom(0, "x").shuffled(range(50))) == list(range(50))
    assert StableRandom(0, "x").shuffled(range(50)) != StableRandom(0, "y").shuffled(range(50))
    early = sum(StableRandom(1, str(i)).skewed_choice([0, 1]) == 0 for i in range(400))
    assert 240 < early < 330
