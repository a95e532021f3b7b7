"""Write the Chinese sample: single sentences, character by character."""

from .fillers import Fillers
from .frames import DATA_DIR, read_stories
from .names import read_parts
from .render import Name, Scene, Sentence
from .rng import StableRandom

SIZES = {"train": 300, "dev": 60, "test": 60}


class ChineseNames:
    """Draws names for Chinese frames.

    parts (Dict[str, List[str]]): The parts of names.
    """

    KINDS = ("person", "company", "city", "product")

    def __init__(self, parts: dict[str, list[str]]) -> None:
        self._parts = parts

    def __contains__(self, kind: str) -> bool:
        return kind in self.KINDS

    def draw(self, kind: str, rng: StableRandom) -> Name:
        """kind (str): The kind of entity.
        rng (StableRandom): Makes the choices.
        RETURNS (Name): A new entity.
        """
        parts = self._parts
        if kind == "person":
            return _name("PER", rng.choice(parts["surnames"]) + rng.choice(parts["given"]))
        if kind == "city":
            place = _place(parts, rng)
            suffix = rng.choice(parts["place suffixes"]) if rng.chance(0.4) else ""
            return _name("LOC", place + suffix)
        if kind == "company":
            brand = _place(parts, rng) if rng.chance(0.25) else rng.choice(parts["brands"])
            industry = rng.choice(parts["industries"])
            suffix = rng.choice(parts["company suffixes"]) if rng.chance(0.5) else ""
            return _name("ORG", brand + industry + suffix)
        line = rng.choice(parts["lines"])
        brand = rng.choice(parts["brands"]) if rng.chance(0.4) else ""
        model = f"{rng.choice('ACKMSTX')}{rng.between(1, 30)}" if rng.chance(0.7) else ""
        return _name("PRODUCT", brand + line + model)


def chinese_sentences(seed: int) -> dict[str, list[Sentence]]:
    """seed (int): The seed of the sample.
    RETURNS (Dict[str, List[Sentence]]): The sentences of each split, all of them different.
    """
    parts = read_parts(DATA_DIR / "zh_names.txt")
    stories = read_stories(DATA_DIR / "zh_frames.txt")
    names = ChineseNames(parts)
    fillers = Fillers({kind: parts[kind] for kind in ("thing", "day", "colour")})
    written: set[str] = set()
    sentences: dict[str, list[Sentence]] = {split: [] for split in SIZES}
    for split, count in SIZES.items():
        rng = StableRandom(seed, f"chinese/{split}")
        while len(sentences[split]) < count:
            sentence = Scene(names, fillers, rng).fill(rng.choice(stories).lead)
            if sentence.text not in written:
                written.add(sentence.text)
                sentences[split].append(sentence)
    return sentences


def _name(label: str, text: str) -> Name:
    return Name({"full": text}, {"full": label})


def _place(parts: dict[str, list[str]], rng: StableRandom) -> str:
    return rng.choice(parts["place starts"]) + rng.choice(parts["place ends"])
