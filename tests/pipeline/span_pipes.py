"""Tiny pipelines and data for the tests of the span component."""

import spacy
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Config

NAME = "robust_span_ner"
TRAIN_DATA = [
    ("Ada Lovelace lives in London .", [(0, 12, "PER"), (22, 28, "LOC")]),
    ("Nobody has ever come to Paris .", [(24, 29, "LOC")]),
]
TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 16,
    "depth": 1,
    "embed_size": 200,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
HEADS = {
    "concat": {
        "@architectures": "spacy_robust_ner.ConcatProductHead.v1",
        "hidden_width": 16,
        "hidden_dropout": 0.0,
    },
    "width": {
        "@architectures": "spacy_robust_ner.WidthEmbeddingHead.v1",
        "hidden_width": 16,
        "embedding_width": 4,
        "hidden_dropout": 0.0,
    },
    "biaffine": {
        "@architectures": "spacy_robust_ner.BiaffineHead.v1",
        "hidden_width": 8,
        "hidden_dropout": 0.0,
    },
}


# The simplest objective: each span is classified for itself.
INDEPENDENT_SPANS = {
    "sampler": {"@misc": "spacy_robust_ner.AllSampler.v1"},
    "loss": {"@misc": "spacy_robust_ner.CrossEntropy.v1"},
    "ratio": None,
    "flat": False,
    "withdraw_doubtful": False,
    "withdraw_fragments": False,
    "outside_by_writing": False,
}


def misc(name, **settings):
    """A config block of one of the registered parts."""
    return {"@misc": f"spacy_robust_ner.{name}.v1", **settings}


def model_config(*, head="concat", tok2vec=None, **settings):
    return {
        "@architectures": "spacy_robust_ner.SpanModel.v1",
        "tok2vec": tok2vec or TOK2VEC,
        "head": HEADS[head],
        **settings,
    }


def pipe_config(*, head="concat", tok2vec=None, max_width=10, chunk_size=32768, **settings):
    model = model_config(head=head, tok2vec=tok2vec, max_width=max_width, chunk_size=chunk_size)
    return {**INDEPENDENT_SPANS, **settings, "model": model}


def make_nlp(*, seed=1, **settings):
    """A blank pipeline with a tiny span component. The language is one that loads fast."""
    fix_random_seed(seed)
    nlp = spacy.blank("xx")
    nlp.add_pipe(NAME, config=pipe_config(**settings))
    return nlp


def make_shared_nlp(*, seed=1, encoder=None, others_after=(), **settings):
    """A pipeline with a shared tok2vec that the span component listens to."""
    fix_random_seed(seed)
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": encoder or TOK2VEC})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
    nlp.add_pipe(NAME, config=pipe_config(tok2vec=listener, **settings))
    for name in others_after:
        nlp.add_pipe(name, config={"model": {"tok2vec": listener}})
    return nlp


def make_examples(nlp, data=TRAIN_DATA):
    return [Example.from_dict(nlp.make_doc(text), {"entities": ents}) for text, ents in data]


def example_of(nlp, words, ents=(), *, missing=(), complete=None, rejected=()):
    """An example whose reference has the given entities, as (start, end, label) in tokens."""
    from spacy.tokens import Doc, Span

    from spacy_robust_ner.annotation import REJECTED_SPANS_KEY, set_complete

    reference = Doc(nlp.vocab, words=words)
    reference.set_ents(
        [Span(reference, *ent) for ent in ents],
        missing=[reference[i : i + 1] for i in missing],
    )
    if complete is not None:
        set_complete(reference, complete)
    if rejected:
        reference.spans[REJECTED_SPANS_KEY] = [Span(reference, *span) for span in rejected]
    return Example(Doc(nlp.vocab, words=words), reference)


def step(nlp, examples, optimizer):
    """One training step as in `spacy train`. (`nlp.update` with an optimizer applies the gradients
    of a shared encoder one step late.)"""
    losses = nlp.update(examples, sgd=False)
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)
    return losses


def train(nlp, examples, *, steps=30, learn_rate=0.01, initialize=True):
    """Train in a plain loop. Returns the losses of each step."""
    optimizer = nlp.initialize(lambda: examples) if initialize else nlp.resume_training()
    optimizer.learn_rate = learn_rate
    return [step(nlp, examples, optimizer) for _ in range(steps)]


def spans_of(spans):
    return [(span.start, span.end, span.label_) for span in spans]


def scored_ents(doc):
    return [(ent.start, ent.end, ent.label_, ent._.entity_score) for ent in doc.ents]


def assert_same_ents(docs, others, *, tolerance=1e-5):
    for doc, other in zip(docs, others, strict=True):
        assert spans_of(doc.ents) == spans_of(other.ents)
        pairs = zip(scored_ents(doc), scored_ents(other), strict=True)
        assert all(abs(a[3] - b[3]) <= tolerance for a, b in pairs)


def weights(model):
    """All weights of a thinc model and of the torch modules in it, as one list of arrays."""
    found = []
    for node in model.walk():
        found.extend(node.get_param(name).copy() for name in node.param_names)
        for shim in node.shims:
            module = getattr(shim, "_model", None)
            if module is not None:
                found.extend(value.detach().numpy().copy() for value in module.parameters())
    return found


def change(before, after):
    """How far two lists of weights are apart."""
    return max(float(abs(a - b).max()) for a, b in zip(before, after, strict=True))


def save_corpus(nlp, path, data=TRAIN_DATA):
    from spacy.tokens import DocBin

    docs = [example.reference for example in make_examples(nlp, data)]
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def tiny_training(config: Config, *, train_path, dev_path, steps=4):
    """Shrink a complete config to a run of seconds."""
    config = config.copy()
    config["paths"].update(train=str(train_path), dev=str(dev_path))
    config["training"].update(max_steps=steps, eval_frequency=2)
    config["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v3"}
    if "tok2vec" in config["components"]:
        model = config["components"]["tok2vec"]["model"]
        model["embed"]["rows"] = [100, 100, 100, 100]
        model["encode"]["width"] = 16
        model["encode"]["depth"] = 1
    return config
