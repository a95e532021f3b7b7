"""Command line: ``spacy-robust-ner …`` and ``python -m spacy robust-ner …``."""

from . import annotate as _annotate  # noqa: F401
from . import benchmark as _benchmark  # noqa: F401
from . import benchmark_span as _benchmark_span  # noqa: F401
from . import benchmark_tagger as _benchmark_tagger  # noqa: F401
from . import convert as _convert  # noqa: F401
from . import evaluate as _evaluate  # noqa: F401
from . import experiment as _experiment  # noqa: F401
from . import fit_centroids as _fit_centroids  # noqa: F401
from . import follow_spans as _follow_spans  # noqa: F401
from . import generate_sample as _generate_sample  # noqa: F401
from . import init_config as _init_config  # noqa: F401
from . import mask as _mask  # noqa: F401
from . import missampling as _missampling  # noqa: F401
from . import missampling_by_masking as _missampling_by_masking  # noqa: F401
from . import o_values as _o_values  # noqa: F401
from . import phrases as _phrases  # noqa: F401
from . import report as _report  # noqa: F401
from . import select_tokens as _select_tokens  # noqa: F401
from . import span_vectors as _span_vectors  # noqa: F401
from . import stats as _stats  # noqa: F401
from ._app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    app(prog_name="spacy-robust-ner")
