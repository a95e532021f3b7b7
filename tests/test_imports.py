"""The direction of imports: what each part of the package may use of the others."""

import ast
from pathlib import Path

import pytest

import spacy_robust_ner

PACKAGE = Path(spacy_robust_ner.__file__).parent
BASE = {
    "errors",
    "types",
    "annotation",
    "tags",
    "candidates",
    "decoding",
    "surface_forms",
    "fragments",
    "orthography",
    "label_study",
}
ALLOWED = {
    "errors": set(),
    "types": set(),
    "dropout": set(),
    "ratio_band": {"errors"},
    "annotation": set(),
    "surface_forms": set(),
    "fragments": {"orthography"},
    "orthography": {"annotation"},
    "label_study": {"surface_forms", "orthography"},
    "tags": {"errors"},
    "candidates": {"errors", "types"},
    "decoding": {"errors", "types"},
    "reader": {"errors", "annotation"},
    "augment": {"errors", "annotation", "corpus"},
    "span": {"errors", "types", "candidates", "dropout", "ratio_band"},
    # The positive-unlabeled risk is one of items, whether spans or tokens.
    "tagging": {"errors", "types", "tags", "dropout", "ratio_band", "span"},
    "architectures": {"errors", "types", "span", "tagging"},
    "pipeline": BASE | {"span", "tagging", "architectures"},
    "recipes": {"errors"},
    "corpus": {"errors", "annotation", "tags", "surface_forms", "label_study", "fragments"},
    "sample": {"errors", "tags"},
    "diagnostics": BASE | {"corpus", "pipeline", "span", "tagging", "recipes", "reader"},
    "experiments": {"errors", "annotation", "corpus", "recipes", "diagnostics", "pipeline"},
    "benchmarks": BASE | {"corpus", "pipeline", "architectures", "span", "tagging", "recipes"},
}
FOREIGN = {
    "span": {"spacy", "thinc", "spacy_transformers"},
    "tagging": {"spacy", "thinc", "spacy_transformers"},
    "types": {"spacy", "thinc"},
    "dropout": {"spacy", "thinc"},
    "ratio_band": {"spacy", "thinc"},
    "candidates": {"spacy", "thinc"},
    "decoding": {"spacy", "thinc"},
}


def parts():
    modules = (path for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py")
    return sorted({path.stem for path in modules if part_files(path.stem)})


def part_files(part):
    if part.startswith("__") or part == "cli":
        return []
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]


def imports(path):
    """All modules that a file imports, as absolute dotted names."""
    package = ("spacy_robust_ner", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            yield prefix
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("part", parts())
def test_each_part_imports_only_what_it_may(part):
    assert part in ALLOWED, f"say in this test what '{part}' may import"
    for path in part_files(part):
        for name in imports(path):
            top, *rest = name.split(".")
            assert top not in FOREIGN.get(part, set()), f"{path} imports {name}"
            if top == "spacy_robust_ner" and rest:
                used = rest[0]
                known = used in ALLOWED or used == "cli"
                if known and used != part:
                    assert used in ALLOWED[part], f"{path} imports {name}"


def test_only_plots_import_matplotlib():
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.split(".")[0] == "matplotlib" for name in imports(path))
    }
    assert users == {"diagnostics/plots.py"}
