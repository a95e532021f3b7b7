"""Write the documents of the English sample."""

from collections.abc import Iterator
from dataclasses import dataclass

from .fillers import WORD_KINDS, Fillers
from .frames import DATA_DIR, Story, read_stories
from .names import SPLITS, Parts, Roster, divide_parts, read_parts
from .render import Scene, Sentence, columns, tagged_words
from .rng import StableRandom

# How many of each hundred documents belong to a theme.
THEMES = {
    "news": 17,
    "features": 20,
    "business": 13,
    "sport": 8,
    "products": 13,
    "support": 8,
    "headlines": 5,
    "plain": 16,
}
# Frames that only one of the evaluation splits has, and how many of its documents they make.
_HELD_OUT_SHARE = 0.08
_HELD_OUT_DRAWS = 0.25
_MAX_FOLLOW_UPS = 3
_DOCSTART = "-DOCSTART-\tO\n\n"

Document = tuple[Sentence, ...]


@dataclass(frozen=True)
class SplitSize:
    """How much of a split there is.

    documents (int): Its documents.
    names (int): Its own names of each kind.
    """

    documents: int
    names: int


SIZES = {
    "train": SplitSize(documents=3000, names=420),
    "dev": SplitSize(documents=600, names=110),
    "test": SplitSize(documents=600, names=110),
}


def read_themes() -> dict[str, list[Story]]:
    """RETURNS (Dict[str, List[Story]]): The stories of each theme."""
    return {theme: read_stories(DATA_DIR / f"frames_{theme}.txt") for theme in THEMES}


class EnglishSample:
    """Everything that the English sample is drawn from.

    seed (int): The seed of the sample.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        parts: Parts = read_parts(DATA_DIR / "names.txt")
        self.divided = divide_parts(parts, seed)
        self.fillers = Fillers({kind: parts[kind] for kind in WORD_KINDS})
        self.shared, self.held_out = _divide_stories(read_themes(), seed)
        self.rosters = {
            split: Roster(split, self.divided, seed, size=SIZES[split].names) for split in SPLITS
        }
        self._written: set[tuple[str, ...]] = set()

    def documents(self, split: str, count: int, *, stream: str) -> list[Document]:
        """Write documents. No two of one EnglishSample are the same.

        split (str): The split whose names and frames are used.
        count (int): How many.
        stream (str): The name of the random stream.
        RETURNS (List[Document]): The documents.
        """
        rng = StableRandom(self.seed, f"documents/{stream}")
        decks = {theme: _deck(stories, rng) for theme, stories in self.shared.items()}
        own = self.held_out.get(split)
        own_decks = {theme: _deck(stories, rng) for theme, stories in (own or {}).items()}
        themes = [theme for theme, weight in THEMES.items() for _ in range(weight)]
        documents: list[Document] = []
        while len(documents) < count:
            theme = rng.choice(themes)
            held_out = own is not None and rng.chance(_HELD_OUT_DRAWS)
            story = next((own_decks if held_out else decks)[theme])
            document = self._write(split, story, rng)
            texts = tuple(sentence.text for sentence in document)
            if texts not in self._written:
                self._written.add(texts)
                documents.append(document)
        return documents

    def _write(self, split: str, story: Story, rng: StableRandom) -> Document:
        scene = Scene(self.rosters[split], self.fillers, rng)
        wanted = rng.between(0, min(_MAX_FOLLOW_UPS, len(story.follow_ups)))
        order = sorted(rng.shuffled(range(len(story.follow_ups)))[:wanted])
        frames = [story.lead, *(story.follow_ups[i] for i in order)]
        return tuple(scene.fill(frame) for frame in frames)


def to_columns(documents: list[Document]) -> str:
    """RETURNS (str): The documents as columns, each after a line that marks its start."""
    return "".join(
        _DOCSTART + columns([tagged_words(sentence) for sentence in document])
        for document in documents
    )


def to_raw_text(documents: list[Document]) -> str:
    """RETURNS (str): One document a line, as plain text."""
    return "".join(
        " ".join(sentence.text for sentence in document) + "\n" for document in documents
    )


def _divide_stories(
    themes: dict[str, list[Story]], seed: int
) -> tuple[dict[str, list[Story]], dict[str, dict[str, list[Story]]]]:
    shared: dict[str, list[Story]] = {}
    held_out: dict[str, dict[str, list[Story]]] = {"dev": {}, "test": {}}
    for theme, stories in themes.items():
        shuffled = StableRandom(seed, f"stories/{theme}").shuffled(stories)
        count = round(len(stories) * _HELD_OUT_SHARE)
        held_out["dev"][theme] = shuffled[:count]
        held_out["test"][theme] = shuffled[count : 2 * count]
        shared[theme] = shuffled[2 * count :]
    return shared, held_out


def _deck(stories: list[Story], rng: StableRandom) -> Iterator[Story]:
    while True:
        yield from rng.shuffled(stories)
