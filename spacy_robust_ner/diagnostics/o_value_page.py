"""A page about the O-values of unlabeled entities, for readers who don't know the paper."""

from .detection import SHARES
from .exploration import OUTSIDE, UNLABELED
from .o_value_plots import (
    detection_by_epoch,
    detection_by_share,
    separation_by_epoch,
    values_by_epoch,
)
from .o_value_study import (
    GONE,
    SMALLER,
    TIME_LIMITS,
    OValueStudy,
    check_claims,
    precision_at,
    recall_at,
)
from .page import Block, Heading, Page, Paragraph, Table

# The share that two-step learning removes by default.
DEFAULT_SHARE = SHARES[3]


def o_value_page(study: OValueStudy, *, corpus: str, plots: bool = True) -> Page:
    """Write the page.

    study (OValueStudy): The runs.
    corpus (str): What the training corpus is called.
    plots (bool): Whether to draw, which needs matplotlib.
    RETURNS (Page): The page.
    """
    page = Page(f"O-values of unlabeled entities: {corpus}")
    page.add(*_introduction(study))
    page.add(Heading("What the paper claims, and what came out here"), *_claims(study))
    page.add(
        Heading("O-values by epoch"),
        Paragraph(
            "If the means drift together, the model learns to call the unlabeled entities O, and "
            "exploring longer makes it harder to find them. The probability is that of a token of "
            "an unlabeled entity to have a lower O-value than one that is O by right."
        ),
        *([values_by_epoch(study), separation_by_epoch(study)] if plots else []),
        _values(study),
    )
    epoch = study.detection_epoch
    page.add(
        Heading("What removing low O-values finds"),
        Paragraph(
            f"After epoch {epoch}, as in the paper. Each cell is precision / recall in percent: "
            "how many of the removed tokens are of unlabeled entities, and how many of the tokens "
            "of unlabeled entities are removed. At a given share of removed tokens, more precision "
            "is more recall."
        ),
        *([detection_by_share(study)] if plots else []),
        _detection(study),
        Heading("How long to explore"),
        Paragraph(
            f"Precision / recall in percent with {DEFAULT_SHARE:.1%} of the tokens removed, which "
            "is the default of two-step learning."
        ),
        *([detection_by_epoch(study, DEFAULT_SHARE)] if plots else []),
        _by_epoch(study),
        Heading("Extra training time"),
        Paragraph(
            "Processor time of exploring for n epochs, with the prediction pass after them, by "
            f"that of a run of {study.run_epochs} epochs on the same data without evaluation."
        ),
        _times(study),
    )
    return page


def _introduction(study: OValueStudy) -> list[Paragraph]:
    first = study.runs[0]
    groups = first.epochs[0].groups
    hidden, outside = groups[UNLABELED], groups[OUTSIDE]
    n_hidden, n_outside = (0 if group is None else group.count for group in (hidden, outside))
    base = first.epochs[0].detection.base_rate
    seeds = ", ".join(map(str, study.seeds))
    return [
        Paragraph(
            "A tagger gives each token a value for each tag. The value of the tag O, the O-value, "
            "tells how little the token looks like a part of an entity. Two-step learning (Zhang "
            "et al. 2024) trains on the data as they are for a few epochs. From the training that "
            "follows it removes the tokens with the lowest O-values among those marked O: they "
            "may be of entities that nobody labeled. Here all entities are known, so that one can "
            "see whether they are."
        ),
        Paragraph(
            f"{first.documents:,} training documents, of whose entities "
            f"{first.unlabeled_entities:,} are unlabeled. {n_hidden + n_outside:,} tokens are "
            "marked O and could be removed; "
            f"{n_hidden:,} of them are of unlabeled entities and {n_outside:,} are O by right. So "
            f"whoever removes tokens at random has a precision of {base:.1%}. Trained for "
            f"{study.n_epochs} epochs, {'seed' if len(study.seeds) == 1 else 'seeds'} {seeds}; "
            "figures are means over the seeds, and bands in the drawings reach from the least to "
            "the greatest."
        ),
    ]


def _claims(study: OValueStudy) -> list[Block]:
    claims = check_claims(study)
    verdicts = {(claim.topic, claim.method): claim.verdict for claim in claims}
    topics = list(dict.fromkeys(claim.topic for claim in claims))
    blocks: list[Block] = [
        Table(
            ("claim", *study.names),
            [
                (topic, *(verdicts.get((topic, name), "–") for name in study.names))
                for topic in topics
            ],
            text_columns=frozenset(range(len(study.names) + 1)),
        )
    ]
    blocks.append(
        Paragraph(
            f"A difference of which at most {GONE:.0%} is left has almost disappeared; one of "
            f"which more than {SMALLER:.0%} is left has not become smaller. “In part” is what "
            "holds for some epochs, shares or seeds."
        )
    )
    for topic in topics:
        own = [claim for claim in claims if claim.topic == topic]
        blocks += [Heading(topic, 3), Paragraph(f"{own[0].statement}.")]
        blocks += [Paragraph(f"{c.method}: {c.verdict}. {_sentence(c.figures)}") for c in own]
    return blocks


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _values(study: OValueStudy) -> Table:
    rows = []
    for name in study.names:
        for epoch in range(1, study.n_epochs + 1):
            cells = (
                study.figure(name, epoch, read).mean
                for read in (
                    lambda v: v.mean(UNLABELED),
                    lambda v: v.mean(OUTSIDE),
                    lambda v: v.gap,
                    lambda v: v.separation,
                )
            )
            auc = study.figure(name, epoch, lambda v: v.detection.auc).mean
            figures = [f"{cell:.2f}" for cell in cells]
            rows.append((name, str(epoch), *figures, f"{100 * auc:.1f}"))
    header = ("method", "epoch", "mean, unlabeled", "mean, true O", "difference")
    return Table((*header, "in standard deviations", "unlabeled is lower (%)"), rows)


def _pair(study: OValueStudy, name: str, epoch: int, share: float) -> str:
    precision = study.figure(name, epoch, precision_at(share)).mean
    recall = study.figure(name, epoch, recall_at(share)).mean
    return f"{100 * precision:.1f} / {100 * recall:.1f}"


def _detection(study: OValueStudy) -> Table:
    base = study.runs[0].epochs[0].detection.base_rate
    rows = [
        (
            f"{share:.2%}",
            *(_pair(study, name, study.detection_epoch, share) for name in study.names),
            f"{100 * base:.1f} / {100 * share:.1f}",
            f"{100 * min(1, base / share):.1f} / {100 * min(1, share / base):.1f}",
        )
        for share in SHARES
    ]
    return Table(("removed", *study.names, "by chance", "best possible"), rows)


def _by_epoch(study: OValueStudy) -> Table:
    rows = [
        (str(epoch), *(_pair(study, name, epoch, DEFAULT_SHARE) for name in study.names))
        for epoch in range(1, study.n_epochs + 1)
    ]
    return Table(("epochs", *study.names), rows)


def _times(study: OValueStudy) -> Table:
    rows = [
        (f"n = {n}", *(f"{study.extra_time(name, n):.1%}" for name in study.names), f"{limit:.0%}")
        for n, limit in TIME_LIMITS.items()
        if n <= study.n_epochs
    ]
    return Table(("", *study.names, "paper, at most"), rows)
