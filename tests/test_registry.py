from importlib.metadata import distribution

import pytest
import spacy
from spacy.language import Language
from spacy.util import registry

ENTRY_POINTS = list(distribution("spacy-robust-ner").entry_points)
REGISTRIES = {
    "spacy_architectures": "architectures",
    "spacy_augmenters": "augmenters",
    "spacy_callbacks": "callbacks",
    "spacy_misc": "misc",
    "spacy_readers": "readers",
    "spacy_scorers": "scorers",
}
OTHER_GROUPS = {"console_scripts", "spacy_cli", "spacy_factories"}


@pytest.mark.parametrize("entry_point", ENTRY_POINTS, ids=lambda e: f"{e.group}:{e.name}")
def test_every_entry_point_is_found(entry_point):
    loaded = entry_point.load()
    if entry_point.group in REGISTRIES:
        function = registry.get(REGISTRIES[entry_point.group], entry_point.name)
        assert function is loaded
        assert entry_point.name.startswith("spacy_robust_ner.")
        assert entry_point.name.endswith(".v1")
    elif entry_point.group == "spacy_factories":
        spacy.blank("en")
        assert Language.has_factory(entry_point.name)
    else:
        assert entry_point.group in OTHER_GROUPS
        assert callable(loaded)
