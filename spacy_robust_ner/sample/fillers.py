"""Fill the slots that are not entities: numbers, dates, prices and common nouns."""

from collections.abc import Mapping, Sequence

from .rng import StableRandom

NUMERIC_KINDS = (
    "few",
    "number",
    "big",
    "years",
    "year",
    "future",
    "percent",
    "price",
    "age",
    "dom",
    "time",
    "score",
    "sets",
)
_RANGES = {
    "few": (2, 9),
    "number": (11, 98),
    "years": (3, 45),
    "year": (1921, 2023),
    "future": (2027, 2049),
    "age": (17, 93),
    "dom": (1, 28),
}
_FIRST_SETS = ("6-4", "6-2", "7-5", "7-6")
_SECOND_SETS = ("6-3", "6-1", "6-0", "7-5")
WORD_KINDS = ("day", "month", "season", "ordinal", "colour", "role", "thing")


class Fillers:
    """Fillers by kind.

    words (Mapping[str, Sequence[str]]): The options of the kinds that are filled with words.
    """

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self._words = words

    def __contains__(self, kind: str) -> bool:
        return kind in NUMERIC_KINDS or kind in self._words

    def draw(self, kind: str, rng: StableRandom) -> str:
        """kind (str): The kind of the slot.
        rng (StableRandom): Makes the choice.
        RETURNS (str): The text.
        """
        if kind in self._words:
            return rng.choice(self._words[kind])
        if kind in _RANGES:
            return str(rng.between(*_RANGES[kind]))
        if kind == "big":
            return f"{rng.between(11, 980) * 100:,}"
        if kind == "percent":
            whole = str(rng.between(2, 60))
            return whole if rng.chance(0.5) else f"{whole}.{rng.between(1, 9)}"
        if kind == "price":
            return f"{rng.choice('$$€£')}{rng.between(5, 950)}"
        if kind == "time":
            return f"{rng.between(7, 23)}:{rng.choice(('00', '15', '30', '45'))}"
        if kind == "score":
            loser = rng.between(0, 3)
            return f"{loser + rng.between(1, 3)}-{loser}"
        return f"{rng.choice(_FIRST_SETS)}, {rng.choice(_SECOND_SETS)}"
