"""Tiny pipelines for the tests of the token component."""

import spacy
from spacy.util import fix_random_seed
from span_pipes import TOK2VEC, misc

NAME = "robust_token_tagger"
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
TRF_LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
    "upstream": "*",
}


def token_config(
    *, tok2vec=None, head="SoftmaxHead", crf=True, loss="CRFLikelihood", dropout=0.0, **settings
):
    """The config of a component; names of parts stand for blocks with default settings."""
    model = {
        "@architectures": "spacy_robust_ner.TokenModel.v1",
        "tok2vec": tok2vec or TOK2VEC,
        "head": {"@architectures": f"spacy_robust_ner.{head}.v1", "dropout": dropout},
        "crf": crf,
    }
    loss = misc(loss) if isinstance(loss, str) else loss
    return {"model": model, "loss": loss, "ratio": None, **settings}


def make_token_nlp(*, seed=1, **settings):
    """A blank pipeline with a tiny token component."""
    fix_random_seed(seed)
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config=token_config(**settings))
    return nlp


def make_shared_token_nlp(*, seed=1, others_after=(), **settings):
    """A pipeline with a shared tok2vec that the token component listens to."""
    fix_random_seed(seed)
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    nlp.add_pipe(NAME, config=token_config(tok2vec=LISTENER, **settings))
    for name in others_after:
        nlp.add_pipe(name, config={"model": {"tok2vec": LISTENER}})
    return nlp


def make_trf_token_nlp(path, *, seed=1, others_after=(), **settings):
    """A pipeline with a tiny transformer that the token component listens to."""
    fix_random_seed(seed)
    nlp = spacy.blank("en")
    transformer = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(path),
        "tokenizer_config": {"use_fast": True},
        "get_spans": {
            "@span_getters": "spacy-transformers.strided_spans.v1",
            "window": 32,
            "stride": 24,
        },
    }
    nlp.add_pipe("transformer", config={"model": transformer})
    nlp.add_pipe(NAME, config=token_config(tok2vec=TRF_LISTENER, **settings))
    for name in others_after:
        nlp.add_pipe(name, config={"model": {"tok2vec": TRF_LISTENER}})
    return nlp


def two_step(**settings):
    return misc("TwoStep", **settings)


def tags_of(nlp, examples):
    """The tags of a training batch as the loss sees them, as names; None for missing."""
    pipe = nlp.get_pipe(NAME)
    decisions, _ = pipe.decisions([example.predicted for example in examples])
    batch = pipe.reader.read(examples, decisions)
    names = [*pipe.tag_set.tags, None]
    return [names[tag] for tag in batch.tags.tolist()], batch
