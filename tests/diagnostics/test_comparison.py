import json
import random

import pytest
from made_runs import make_prediction, write_run

from spacy_robust_ner.diagnostics.analysis import analyse_run
from spacy_robust_ner.diagnostics.comparison import arrange, percent
from spacy_robust_ner.diagnostics.published import (
    dataset_key,
    find_published,
    published_beside,
    read_published,
)
from spacy_robust_ner.diagnostics.report_tables import score_table
from spacy_robust_ner.diagnostics.results import Masking, Run, read_runs
from spacy_robust_ner.diagnostics.sensitivity import find_sensitivities
from spacy_robust_ner.recipes import METHODS


def run(f1=0.5, **fields):
    result = {
        "dataset": "d",
        "encoder": "cnn",
        "mask_rate": 0.0,
        "mask_kind": "entity",
        "method": "ner",
        "seed": 0,
        "overrides": {},
        "test": {"f1": f1},
        **fields,
    }
    result.setdefault("variant", result["method"])
    result.setdefault("title", result["variant"])
    result.setdefault("cell", json.dumps([result[n] for n in ("variant", "mask_rate", "seed")]))
    return Run(result, None)


def test_sections_rows_columns_and_scores():
    runs = [
        run(0.7, mask_rate=0.5, seed=1),
        run(0.5, mask_rate=0.5, seed=0),
        run(0.9, mask_kind=None),
        run(0.1, encoder="trf"),
        run(0.2, method="span-ns", mask_rate=0.5),
    ]
    first, second = arrange(runs)
    assert (first.title, second.title) == ("d, cnn", "d, trf")
    assert [row.variant for row in first.rows] == ["ner", "span-ns"]
    assert first.columns == [Masking(0.0), Masking(0.5, "entity")]
    assert [first.column_title(column) for column in first.columns] == ["no masking", "50% masked"]
    row, masked = first.rows[0], first.columns[1]
    assert [own.result["seed"] for own in first.runs(row, masked)] == [0, 1]
    score = first.score(row, masked, percent("f1"))
    assert (score.mean, score.seeds) == (pytest.approx(60.0), 2)
    assert str(score) == "60.0 ± 14.1"
    assert str(first.score(row, first.columns[0], percent("f1"))) == "90.0"
    assert first.score(first.rows[1], first.columns[0], percent("f1")) is None


def test_best_of_each_column():
    runs = [
        run(0.50, method="ner"),
        run(0.7001, method="span-ns"),
        run(0.7, method="span-nsv"),
        run(0.3, method="ner", mask_rate=0.5),
        run(0.0, method="ner", mask_rate=0.8),
        run(0.0, method="span-ns", mask_rate=0.8),
    ]
    (section,) = arrange(runs)
    table = score_table(section, percent("f1"))
    assert [row[1:] for row in table.rows] == [
        ["50.0", "30.0", "0.0"],
        ["70.0", "–", "0.0"],
        ["70.0", "–", "–"],
    ]
    assert table.best == {(1, 1), (2, 1)}


def test_kinds_of_masking_are_named_where_there_are_several():
    (section,) = arrange([run(mask_rate=0.5), run(mask_rate=0.5, mask_kind="surface"), run()])
    titles = [section.column_title(column) for column in section.columns]
    assert titles == ["no masking", "50% masked (entity)", "50% masked (surface)"]


def test_rows_follow_the_order_of_the_experiment_and_equal_titles_differ():
    runs = [run(variant="b", title="T"), run(variant="a", title="T")]
    names = [own.result["cell"] for own in reversed(runs)]
    (section,) = arrange(runs, names)
    assert [row.title for row in section.rows] == ["T [a]", "T [b]"]


@pytest.mark.parametrize(
    ("methods", "method", "naive"),
    [
        (["ner", "span-all", "span-ns"], "span-ns", "span-all"),
        (["ner", "span-ns"], "span-ns", "ner"),
        (["ner", "token-softmax", "token-ratio"], "token-ratio", "token-softmax"),
        (["token-softmax", "token-crf", "token-ratio"], "token-ratio", "token-crf"),
        (["token-softmax", "token-crf"], "token-softmax", "token-crf"),
        (["ner", "spancat"], "spancat", "ner"),
        (["ner", "span-all"], "span-all", "span-all"),
        (["span-ns"], "span-ns", None),
        (["span-ns", "token-crf"], "span-ns", None),
    ],
)
def test_the_naive_model_of_a_family(methods, method, naive):
    (section,) = arrange([run(method=name) for name in methods])
    row = next(row for row in section.rows if row.method == method)
    found = section.naive(row, section.columns[0])
    assert (found and found.method) == naive


def test_the_naive_model_has_runs_on_the_same_data_and_no_changed_settings():
    runs = [
        run(method="span-all", variant="span-all-wide"),
        run(method="span-all"),
        run(method="span-ns"),
        run(method="span-ns", mask_rate=0.5),
        run(method="ner", mask_rate=0.5),
    ]
    (section,) = arrange(runs)
    row = next(row for row in section.rows if row.method == "span-ns")
    assert [section.naive(row, c).variant for c in section.columns] == ["span-all", "ner"]


RATE = "components.robust_span_ner.sampler.rate"


def test_settings_with_several_values():
    runs = [
        run(
            value * rate,
            method="span-ns",
            variant=f"v{value}",
            mask_rate=rate,
            seed=seed,
            overrides={"training.max_steps": 5, RATE: value},
        )
        for value in (0.1, 0.5)
        for rate in (0.5, 0.8)
        for seed in (0, 1)
    ]
    runs += [run(method="span-ns"), run(method="nrces", overrides={"a.b": 1})]
    (section,) = arrange(runs)
    (found,) = find_sensitivities(section)
    assert (found.method, found.setting, found.others) == ("span-ns", RATE, {})
    assert list(found.lines) == [Masking(0.5, "entity"), Masking(0.8, "entity")]
    assert {value: len(own) for value, own in found.lines[Masking(0.8, "entity")].items()} == {
        0.1: 2,
        0.5: 2,
    }


def test_crossed_settings_give_one_line_for_each_value_of_the_other():
    runs = [
        run(
            method="nrces", variant=f"v{w}{flag}{name}", overrides={"w": w, "flag": flag, "n": name}
        )
        for w in (2, 5, 10)
        for flag in (True, False)
        for name in ("x", "y")
    ]
    (section,) = arrange(runs)
    found = find_sensitivities(section)
    assert {item.setting for item in found} == {"w"}
    assert sorted(map(str, (item.others for item in found))) == sorted(
        str({"flag": flag, "n": name}) for flag in (True, False) for name in ("x", "y")
    )


def test_published_figures_are_those_of_the_same_setting():
    half = Masking(0.5, "entity")
    (entry,) = find_published("CoNLL-2003", half, "nrces")
    assert (entry.f1, entry.encoder) == (89.70, "RoBERTa-base")
    assert find_published("conll03", half, "nrces") == [entry]
    assert find_published("conll2003", Masking(0.5, "surface"), "nrces") == []
    assert find_published("conll2003", Masking(0.55, "entity"), "nrces") == []
    assert find_published("conll2003-2000", half, "nrces") == []
    assert find_published("conll2003", half, "token-ratio") == []
    wikigold = find_published("WikiGold_ds", Masking(0.0), "top-neg")
    assert {(e.f1, e.split) for e in wikigold} == {
        (50.65, "test"),
        (52.86, "test"),
        (55.10, "dev"),
        (57.46, "dev"),
    }
    most = Masking(0.8, "entity")
    (ablation,) = find_published("conll2003", most, "nrces", "nrces-without-sigmoid")
    assert (ablation.f1, ablation.split) == (51.88, "dev")
    assert {e.split for e in find_published("conll2003", most, "nrces")} == {"test", "dev"}


def test_published_table_is_sound():
    entries = read_published()
    assert len(entries) == len(set(entries)) > 200
    assert all(entry.method in METHODS for entry in entries)
    assert all(0 <= entry.mask_rate < 1 < entry.f1 < 100 for entry in entries)
    assert all(entry.source and entry.encoder for entry in entries)
    assert len({dataset_key(e.dataset) for e in entries}) == len({e.dataset for e in entries})


def test_publications_stand_beside_the_same_variant_only():
    runs = [
        run(dataset="weibo", method="token-crf", mask_rate=0.7),
        run(dataset="weibo", method="token-crf", variant="x", mask_rate=0.7),
        run(dataset="weibo", method="token-crf"),
    ]
    (section,) = arrange(runs)
    found = [(row.variant, c.rate, entry.f1) for row, c, entry in published_beside(section)]
    assert sorted(found) == [
        ("token-crf", 0.0, 68.32),
        ("token-crf", 0.0, 70.75),
        ("token-crf", 0.7, 8.24),
        ("token-crf", 0.7, 29.34),
        ("token-crf", 0.7, 31.75),
        ("token-crf", 0.7, 42.14),
    ]


def test_analysis_counts_what_the_runner_counted(tmp_path):
    rng = random.Random(1)
    predictions = [make_prediction(rng, "test", recall=0.6) for _ in range(60)]
    predictions += [make_prediction(rng, "train", recall=0.6, rate=0.5) for _ in range(30)]
    result = write_run(tmp_path, predictions)
    (own,) = read_runs(tmp_path)
    analysis = analyse_run(own, limit=10)
    right, spurious, missed = analysis.counts.sum(axis=0).tolist()
    test = result["test"]
    assert (right, right + spurious, right + missed) == (
        test["correct"],
        test["predicted"],
        test["gold"],
    )
    assert len(analysis.counts) == 60
    assert len(analysis.scores) == test["predicted"]
    assert analysis.correct.sum() == test["correct"]
    assert analysis.kinds["train"]["recovered"] == result["recovery"]["recovered"]
    for split, count in (("test", 60), ("train", 30)):
        shown = [passage for passage in analysis.passages if passage.split == split]
        wrong = [
            p
            for p in predictions
            if p["split"] == split
            and (
                p["masked"]
                or {tuple(e) for e in p["gold"]} != {tuple(e[:3]) for e in p["predicted"]}
            )
        ]
        assert len(shown) == 10
        assert len(shown) + analysis.left_out[split] == len(wrong) <= count


def test_all_runs_show_the_same_passages_where_they_have_errors(tmp_path):
    for seed in (0, 1):
        predictions = [
            {**make_prediction(random.Random(i), "test", recall=1.0), "predicted": []}
            for i in range(50)
        ]
        write_run(tmp_path, predictions, seed=seed)
    one, other = (analyse_run(own, limit=5) for own in read_runs(tmp_path))
    assert [p.tokens for p in one.passages] == [p.tokens for p in other.passages]
    assert one.documents == other.documents


def test_predictions_on_tokens_of_which_nothing_is_known_do_not_count(tmp_path):
    prediction = make_prediction(random.Random(0), "test", recall=0.0)
    prediction["predicted"] = [[0, 1, "X", None]]
    write_run(tmp_path / "a", [prediction])
    write_run(tmp_path / "b", [{**prediction, "missing": [0]}])
    spurious = [analyse_run(own).counts[0, 1] for f in "ab" for own in read_runs(tmp_path / f)]
    assert spurious == [1, 0]


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("results.jsonl", "{}\n", "line 2.*without cell"),
        ("results.jsonl", "{\n", "line 2"),
        ("predictions.jsonl", "[]\n", "line 2"),
        ("predictions.jsonl", '{"split": "test"}\n', "line 2.*masked"),
    ],
)
def test_files_that_can_not_be_read(tmp_path, file, text, reason):
    result = write_run(tmp_path, [make_prediction(random.Random(0), "test", recall=1.0)])
    path = tmp_path / (file if file == "results.jsonl" else f"{result['cell']}/{file}")
    path.write_text(path.read_text(encoding="utf8") + text, encoding="utf8")
    with pytest.raises(ValueError, match=f"R221.*{file}, {reason}"):
        [analyse_run(own) for own in read_runs(tmp_path)]


def test_no_finished_runs(tmp_path):
    with pytest.raises(FileNotFoundError, match="R204"):
        read_runs(tmp_path)
    write_run(tmp_path, [])
    with pytest.raises(FileNotFoundError, match="R204"):
        read_runs(tmp_path, {"another"})
    assert analyse_run(read_runs(tmp_path)[0]) is None
