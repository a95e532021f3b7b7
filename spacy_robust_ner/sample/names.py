"""Build the names of the English sample from their parts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .render import Name
from .rng import StableRandom

SPLITS = ("train", "dev", "test")
# Of each hundred parts, how many all splits share and how many each split has for itself.
_COMMON_SHARE = 0.2
_OWN_SHARES = {"train": 0.5, "dev": 0.15, "test": 0.15}
_DIVIDED = ("coined", "first", "last", "cities", "countries", "languages", "lines", "work nouns")

Parts = Mapping[str, Sequence[str]]


def read_parts(path: Path) -> dict[str, list[str]]:
    """Read a file of name parts: "[section]" lines, entries between commas, "# " comments.

    path (Path): The file.
    RETURNS (Dict[str, List[str]]): The entries of each section.
    """
    parts: dict[str, list[str]] = {}
    section: list[str] = []
    for line in path.read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            section = parts.setdefault(line.strip("[]"), [])
        elif not line.startswith("# "):
            section.extend(entry.strip() for entry in line.split(",") if entry.strip())
    return parts


def divide_parts(parts: Parts, seed: int) -> dict[str, dict[str, list[str]]]:
    """Give each split name parts of its own, so that dev and test names are new to a model.

    parts (Parts): All parts.
    seed (int): The seed of the sample.
    RETURNS (Dict[str, Dict[str, List[str]]]): The parts of "common" (what all splits share) and
        of each split, which include the common ones.
    """
    whole = dict(parts)
    whole["coined"] = [
        start + end for start in parts["coined starts"] for end in parts["coined ends"]
    ]
    divided = {split: {k: list(v) for k, v in whole.items()} for split in ("common", *SPLITS)}
    for section in _DIVIDED:
        entries = StableRandom(seed, f"parts/{section}").shuffled(whole[section])
        start = round(len(entries) * _COMMON_SHARE)
        common = entries[:start]
        divided["common"][section] = common
        for split in SPLITS:
            end = start + round(len(entries) * _OWN_SHARES[split])
            divided[split][section] = entries[start:end] + common
            start = end
    return divided


def _simple(label: str, **forms: str) -> Name:
    return Name(forms, dict.fromkeys(forms, label))


def _surname(parts: Parts, rng: StableRandom) -> str:
    return rng.choice(parts["coined"] if rng.chance(0.3) else parts["last"])


def _place(parts: Parts, rng: StableRandom) -> str:
    if rng.chance(0.3):
        return rng.choice(parts["cities"])
    if rng.chance(0.55):
        return rng.choice(parts["coined"])
    stem = rng.choice(parts["coined starts"])
    return stem + rng.choice(parts["city endings"])


def _acronym(rng: StableRandom) -> str:
    return "".join(rng.choice("ABCDEFGIKLMNOPRSTUV") for _ in range(rng.between(3, 4)))


def _person(parts: Parts, rng: StableRandom) -> Name:
    first, last = rng.choice(parts["first"]), _surname(parts, rng)
    if rng.chance(0.06):
        first = f"{first} {rng.choice('ABCDEFHJKLMRST')}."
    full = f"{first} {last}"
    return _simple(
        "PER", full=full, first=first.split()[0], last=last, initial=f"{full[0]}. {last}"
    )


def _company(parts: Parts, rng: StableRandom) -> Name:
    brand = rng.choice((_surname, _surname, _place))(parts, rng)
    if rng.chance(0.3):
        brand = rng.choice(parts["coined"])
    industry, ending = rng.choice(parts["industries"]), rng.choice(parts["company endings"])
    pattern = rng.between(1, 7)
    if pattern == 1:
        return _simple("ORG", full=f"{brand} & {_surname(parts, rng)}", short=brand)
    if pattern == 2:
        return _simple("ORG", full=f"{brand} {industry} {ending}", short=brand)
    if pattern == 3:
        return _simple("ORG", full=f"{brand} {industry}", short=brand)
    if pattern == 4:
        name = _acronym(rng)
        return _simple("ORG", full=f"{name} {ending}" if rng.chance(0.5) else name, short=name)
    if pattern == 5:
        return _simple("ORG", full=brand, short=brand)
    return _simple("ORG", full=f"{brand} {ending}", short=brand)


def _agency(parts: Parts, rng: StableRandom) -> Name:
    field = rng.choice(parts["agency fields"])
    if rng.chance(0.4):
        full = f"{rng.choice(parts['agency heads'])} {field}"
    elif rng.chance(0.5):
        full = f"{_place(parts, rng)} {field} {rng.choice(parts['agency ends'])}"
    else:
        full = f"National {field} {rng.choice(parts['agency ends'])}"
    short = "".join(word[0] for word in full.split()).upper()
    return _simple("ORG", full=full, short=short)


def _club(parts: Parts, rng: StableRandom) -> Name:
    place = _place(parts, rng)
    return _simple("ORG", full=f"{place} {rng.choice(parts['club words'])}", short=place)


def _university(parts: Parts, rng: StableRandom) -> Name:
    place = _place(parts, rng)
    if rng.chance(0.6):
        return _simple("ORG", full=f"University of {place}", short=place)
    kind = rng.choice(("University", "College", "Institute of Technology", "School of Art"))
    return _simple("ORG", full=f"{place} {kind}", short=place)


def _media(parts: Parts, rng: StableRandom) -> Name:
    return _simple("ORG", full=f"{_place(parts, rng)} {rng.choice(parts['media words'])}")


def _city(parts: Parts, rng: StableRandom) -> Name:
    return _simple("LOC", full=_place(parts, rng))


def _country(parts: Parts, rng: StableRandom) -> Name:
    if rng.chance(0.55):
        country, adjective, people = rng.choice(parts["countries"]).split("/")
    else:
        stem = rng.choice(parts["coined"]).rstrip("aeiouy")
        country, adjective, people = rng.choice(
            (
                (f"{stem}ia", f"{stem}ian", f"{stem}ians"),
                (f"{stem}land", f"{stem}ish", f"{stem}landers"),
                (f"{stem}istan", f"{stem}i", f"{stem}is"),
                (f"{stem}o", f"{stem}ese", f"{stem}ese"),
            )
        )
    return Name(
        {"full": country, "adj": adjective, "people": people},
        {"full": "LOC", "adj": "MISC", "people": "MISC"},
    )


def _region(parts: Parts, rng: StableRandom) -> Name:
    if rng.chance(0.5):
        return _simple("LOC", full=f"{rng.choice(parts['region words'])} {_place(parts, rng)}")
    if rng.chance(0.5):
        return _simple("LOC", full=f"{_place(parts, rng)} {rng.choice(parts['region endings'])}")
    return _simple("LOC", full=rng.choice(parts["coined"]))


def _nature(parts: Parts, rng: StableRandom) -> Name:
    stem = rng.choice(parts["coined"])
    if rng.chance(0.6):
        return _simple("LOC", full=f"{rng.choice(parts['nature words'])} {stem}")
    return _simple("LOC", full=f"{stem} {rng.choice(parts['nature endings'])}")


def _river(parts: Parts, rng: StableRandom) -> Name:
    stem = rng.choice(parts["coined"])
    return _simple("LOC", full=f"River {stem}" if rng.chance(0.7) else f"{stem} Creek")


def _mountain(parts: Parts, rng: StableRandom) -> Name:
    stem = rng.choice(parts["coined"])
    return _simple("LOC", full=f"Mount {stem}" if rng.chance(0.7) else f"{stem} Peak")


def _venue(parts: Parts, rng: StableRandom) -> Name:
    if rng.chance(0.5):
        start = rng.choice(parts["things at streets"]) if rng.chance(0.5) else _surname(parts, rng)
        return _simple("LOC", full=f"{start} {rng.choice(parts['street words'])}")
    start = rng.choice((_surname, _place))(parts, rng)
    return _simple("LOC", full=f"{start} {rng.choice(parts['hall words'])}")


def _event(parts: Parts, rng: StableRandom) -> Name:
    start = rng.choice((_surname, _place, _place))(parts, rng)
    if rng.chance(0.5):
        return _simple("MISC", full=f"{start} {rng.choice(parts['cup words'])}")
    theme = rng.choice(parts["event themes"])
    return _simple("MISC", full=f"{start} {theme} {rng.choice(parts['event words'])}")


def _work(parts: Parts, rng: StableRandom) -> Name:
    adjective, noun = rng.choice(parts["work adjectives"]), rng.choice(parts["work nouns"])
    pattern = rng.between(1, 5)
    if pattern <= 2:
        return _simple("MISC", full=f"The {adjective} {noun}")
    if pattern == 3:
        return _simple("MISC", full=f"A {noun} in {_place(parts, rng)}")
    if pattern == 4:
        return _simple("MISC", full=f"{adjective} {noun}")
    return _simple("MISC", full=_surname(parts, rng))


def _law(parts: Parts, rng: StableRandom) -> Name:
    words = f"{rng.choice(parts['law adjectives'])} {rng.choice(parts['law nouns'])}"
    return _simple("MISC", full=f"{words} {rng.choice(('Act', 'Act', 'Bill', 'Treaty'))}")


def _award(parts: Parts, rng: StableRandom) -> Name:
    start = rng.choice((_surname, _place))(parts, rng)
    return _simple("MISC", full=f"{start} {rng.choice(parts['award words'])}")


def _language(parts: Parts, rng: StableRandom) -> Name:
    return _simple("MISC", full=rng.choice(parts["languages"]))


def _product(parts: Parts, rng: StableRandom) -> Name:
    line = rng.choice(parts["lines"]) if rng.chance(0.6) else rng.choice(parts["coined"])
    letter = rng.choice("ACDEGKLMQRSTVXZ")
    model = rng.choice(
        (
            str(rng.between(2, 12)),
            str(rng.between(1, 90) * 10),
            f"{letter}{rng.between(1, 9)}",
            f"{letter}-{rng.between(1, 80) * 10}",
            rng.choice(parts["model suffixes"]),
            f"{rng.between(2, 9)} {rng.choice(parts['model suffixes'])}",
        )
    )
    brand = _surname(parts, rng) if rng.chance(0.3) else rng.choice(parts["coined"])
    pattern = rng.between(1, 5)
    if pattern <= 2:
        return _simple(
            "PRODUCT", full=f"{brand} {line} {model}", short=f"{line} {model}", line=line
        )
    if pattern == 3:
        return _simple("PRODUCT", full=f"{line} {model}", short=line, line=line)
    if pattern == 4:
        full = f"{brand} {model}"
        return _simple("PRODUCT", full=full, short=full, line=brand)
    return _simple("PRODUCT", full=line, short=line, line=line)


def _app(parts: Parts, rng: StableRandom) -> Name:
    pattern = rng.between(1, 4)
    if pattern == 1:
        return _simple("PRODUCT", full=rng.choice(parts["coined"]))
    if pattern == 2:
        return _simple(
            "PRODUCT", full=f"{rng.choice(parts['lines'])} {rng.choice(parts['app starts'])}"
        )
    return _simple("PRODUCT", full=rng.choice(parts["app starts"]) + rng.choice(parts["app ends"]))


_MAKERS: dict[str, Callable[[Parts, StableRandom], Name]] = {
    "person": _person,
    "company": _company,
    "agency": _agency,
    "club": _club,
    "university": _university,
    "media": _media,
    "city": _city,
    "country": _country,
    "region": _region,
    "nature": _nature,
    "river": _river,
    "mountain": _mountain,
    "venue": _venue,
    "event": _event,
    "work": _work,
    "law": _law,
    "award": _award,
    "language": _language,
    "product": _product,
    "app": _app,
}


class Roster:
    """The entities of one split, drawn with a skew: a few are mentioned often, most hardly ever.

    split (str): The split.
    divided (Mapping[str, Parts]): The parts from divide_parts.
    seed (int): The seed of the sample.
    size (int): How many entities of each kind the split has for itself.
    common_size (int): How many of each kind all splits share.
    common_share (float): How many of the mentions go to the shared ones.
    """

    def __init__(
        self,
        split: str,
        divided: Mapping[str, Parts],
        seed: int,
        *,
        size: int,
        common_size: int = 40,
        common_share: float = 0.15,
    ) -> None:
        self._own = _make_all(divided[split], StableRandom(seed, f"roster/{split}"), size)
        self._common = _make_all(
            divided["common"], StableRandom(seed, "roster/common"), common_size
        )
        self._common_share = common_share

    def __contains__(self, kind: str) -> bool:
        return kind in self._own

    def draw(self, kind: str, rng: StableRandom) -> Name:
        """kind (str): The kind of entity.
        rng (StableRandom): Makes the choice.
        RETURNS (Name): The entity.
        """
        names = self._common if rng.chance(self._common_share) else self._own
        return rng.skewed_choice(names[kind])

    def all_names(self) -> list[Name]:
        """RETURNS (List[Name]): The split's own entities of all kinds."""
        return [name for names in self._own.values() for name in names]


def _make_all(parts: Parts, rng: StableRandom, size: int) -> dict[str, list[Name]]:
    # People are the most numerous in any news; there are fewer countries than anything else.
    factors = {"person": 3.0, "city": 1.5, "company": 1.5, "product": 1.5, "country": 0.3}
    return {
        kind: [make(parts, rng) for _ in range(max(2, round(size * factors.get(kind, 1.0))))]
        for kind, make in _MAKERS.items()
    }
