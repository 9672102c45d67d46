"""STaRK's own graphs, read from their published files without torch.

A processed folder holds `node_info.pkl` (records by node number), `edge_index.pt` (2, E), `edge_types.pt` (E,),
`node_types.pt` (N,), and the names of types in `node_type_dict.pkl` and `edge_type_dict.pkl`; mag comes without these
two. `.pt` files are archives of a pickle and the bytes of tensors.

Source: Wu et al., "STaRK" (arXiv:2404.13207), the published layout.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.errors import DatasetError
from byokg.files import csv_lines, write_file

_MAG_NODES = {0: "author", 1: "institution", 2: "field_of_study", 3: "paper"}
_MAG_EDGES = {0: "affiliated_with", 1: "cites", 2: "has_topic", 3: "writes"}
_NAMES = ("name", "title", "DisplayName")
"""Keys that hold a node's name, the first that is there."""

_STORAGES = {
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
}
_SCALAR = np.int64(0).__reduce__()[0]
"""Pickle's name of the constructor of a numpy number."""
_UNSAID = frozenset(("", "nan", "-1", "None", "[]", "{}", "['']"))


def write_stark_graph(folder: Path, out: Path) -> None:
    """Write `nodes.csv` and `edges.csv` from a processed folder; a node's id is its number.

    Properties come from a node's record, with those under `details`; lists and mappings are JSON; keys with further ids
    are left out.

    Raises:
        DatasetError: a file is missing, damaged or of another layout.
    """
    info = _pickled(folder / "node_info.pkl")
    types = _load_type_names(folder / "node_type_dict.pkl", _MAG_NODES)
    relations = _load_type_names(folder / "edge_type_dict.pkl", _MAG_EDGES)
    edges, kinds = _tensor(folder / "edge_index.pt"), _tensor(folder / "edge_types.pt")
    of_node = _tensor(folder / "node_types.pt")
    if edges.ndim != 2 or len(edges) != 2 or edges.shape[1:] != kinds.shape or len(of_node) != len(info):
        raise DatasetError(
            folder,
            None,
            f"holds {len(info):,} nodes, types of {len(of_node):,}, edges of shape {edges.shape} and {len(kinds):,} "
            "types of edges, which do not fit together; fetch it again",
        )
    out.mkdir(parents=True, exist_ok=True)
    rows = [_described(info[number], folder) for number in range(len(of_node))]
    keys = list(dict.fromkeys(key for _, properties in rows for key in properties))
    nodes = (
        (number, name or number, types.get(int(of_node[number]), ""), *(properties.get(key, "") for key in keys))
        for number, (name, properties) in enumerate(rows)
    )
    write_file(out / "nodes.csv", csv_lines([("id", "name", "type", *(_headed(key, rows) for key in keys)), *nodes]))
    triples = zip(*edges.tolist(), kinds.tolist(), strict=True)
    named = ((head, relations.get(kind, str(kind)), tail) for head, tail, kind in triples)
    write_file(out / "edges.csv", csv_lines(chain([("head", "relation", "tail")], named)))


def _headed(key: str, rows: Sequence[tuple[str, Mapping[str, str | int | float]]]) -> str:
    """Return the header of a property's column, with its kind if all values are numbers."""
    kinds = {type(properties[key]) for _, properties in rows if key in properties}
    return f"{key}:int" if kinds == {int} else f"{key}:float" if kinds <= {int, float} else key


def _described(record: Any, folder: Path) -> tuple[str, dict[str, str | int | float]]:
    """Return a node's name and properties."""
    if not isinstance(record, Mapping):
        raise DatasetError(folder / "node_info.pkl", None, f"says {record!r} of a node, which is no mapping")
    naming = next((key for key in _NAMES if _is_stated(record.get(key))), None)
    told = {**record, **(record["details"] if isinstance(record.get("details"), Mapping) else {})}
    left_out = {naming, "details", "type", "id", "name"}
    properties: dict[str, str | int | float] = {}
    for key, value in told.items():
        if key not in left_out and not str(key).startswith("_") and "_id" not in str(key) and _is_stated(value):
            plain = _unwrap_numpy(value)
            number = isinstance(plain, int | float) and not isinstance(plain, bool)
            kept = number or isinstance(plain, str)
            properties[str(key)] = plain if kept else json.dumps(plain, ensure_ascii=False)
    return ("" if naming is None else " ".join(str(record[naming]).split())), properties


def _is_stated(value: Any) -> bool:
    return str(value) not in _UNSAID


def _unwrap_numpy(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _unwrap_numpy(held) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_unwrap_numpy(held) for held in value]
    return value


def _load_type_names(path: Path, otherwise: Mapping[int, str]) -> dict[int, str]:
    """Return the names of types; a relation's name loses the types of its ends if they are part of it."""
    held = _pickled(path) if path.exists() else otherwise
    return {int(number): _middle(str(name)) for number, name in held.items()}


def _middle(name: str) -> str:
    parts = name.split("___")
    return parts[1] if len(parts) == 3 else name


class _Held(pickle.Unpickler):
    """Reads plain data, numbers of numpy, and tensors as arrays; a pickle can name any function, and no other is."""

    storages: Mapping[str, bytes] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch._utils" and name == "_rebuild_tensor_v2":
            return _rebuilt
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if module.startswith("numpy") and name in ("dtype", "scalar"):
            return np.dtype if name == "dtype" else _SCALAR
        if (module, name) in (("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "dict")):
            return dict if name != "defaultdict" else _default
        if (module, name) in (("builtins", "set"), ("builtins", "list"), ("builtins", "frozenset")):
            return {"set": set, "list": list, "frozenset": frozenset}[name]
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, and STaRK's files hold plain data only")

    def persistent_load(self, pid: Any) -> Any:
        _, kind, key, _, count = pid
        return np.frombuffer(self.storages[key], np.dtype(kind).newbyteorder("<"), count)


def _default(*given: object) -> dict[Any, Any]:
    return {}


def _rebuilt(storage: npt.NDArray[Any], offset: int, size: Any, stride: Any, *rest: object) -> npt.NDArray[Any]:
    width = storage.itemsize
    needed = offset + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True)) + 1
    if not all(size):
        return np.empty(size, storage.dtype)
    if needed > len(storage) or min((*size, *stride, offset, 0)) < 0:
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    strides = [step * width for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides, writeable=False)


def _pickled(path: Path) -> Any:
    try:
        return _Held(io.BytesIO(path.read_bytes())).load()
    except Exception as error:  # a damaged pickle raises almost anything
        raise DatasetError(
            path, None, f"cannot be read: {error}; point dataset.graph at another, or fetch it"
        ) from error


def _tensor(path: Path) -> npt.NDArray[Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {name.partition("/")[2]: name for name in archive.namelist()}
            reader = _Held(io.BytesIO(archive.read(parts["data.pkl"])))
            reader.storages = {name.removeprefix("data/"): archive.read(full) for name, full in _of_data(parts)}
            held = reader.load()
    except Exception as error:  # so does a damaged archive
        raise DatasetError(path, None, f"holds no tensor: {error}; fetch it again") from error
    if not isinstance(held, np.ndarray):
        raise DatasetError(path, None, f"holds a {type(held).__name__}, and should hold a tensor")
    return held


def _of_data(parts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, full) for name, full in parts.items() if name.startswith("data/"))
