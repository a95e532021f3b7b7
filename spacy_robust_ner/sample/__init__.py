"""The sample corpus: our own sentences, filled with names made by chance.

Frames are plain text, one sentence a line, in ``frames_<theme>.txt`` (English) and
``zh_frames.txt`` (Chinese):

* ``{person}`` is a slot of a kind. The kinds of entities and their labels: person (PER); company,
  agency, club, university, media (ORG); city, region, nature, river, mountain, venue, country
  (LOC); event, work, law, award, language (MISC); product, app (PRODUCT). Anything else fills in
  words and numbers that are no entities: day, month, season, year, future (a year), years (how
  many), dom (day of the month), time, few, number, big, percent, price, age, ordinal, score,
  sets, colour, role, thing.
* ``{person#1}`` is the same person wherever ``#1`` stands in the document. Slots without a
  number are always somebody else.
* ``{person.last}`` is a form of the name. person: last, first, initial ("J. Marsh"); company,
  agency, club, university, product: short; product: line; country: adj and people, both MISC.
* ``{city@ORG}`` gives the mention another label: here a place that stands for its team.
* ``[a|b|c]`` is a choice of words. It may contain slots, but no further choice.
* A line that starts with ``+ `` may follow the sentences before it in the same document; any
  other line can stand alone and starts a new story. After that, ``^ `` prints the sentence in
  capitals. Lines that start with ``# `` are comments.
* ``a`` before a slot becomes ``an`` where the name asks for it.

``names.txt`` and ``zh_names.txt`` hold the parts of the names. The English parts are divided among
the splits, so that most names of dev and test do not occur in train.
"""

from .generate import DEFAULT_SEED, SplitCounts, generate_sample

__all__ = ["DEFAULT_SEED", "SplitCounts", "generate_sample"]
