"""An `.h5` file -> its tensor, by the layout of its groups and attributes: binsparse, AnnData or 10x Genomics."""

from __future__ import annotations

import os

from ...errors import UnsupportedError
from ..shared.records import Buffers, Coordinates, Options
from . import anndata, binsparse, hdf5

__all__ = ["read"]


def read(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """The tensor of the file, or that of the group or element `variable=`."""
    with hdf5.open_hdf5(path, options.ratio) as file:
        is_binsparse = binsparse.ATTRIBUTE in file.root.attrs
        if options.variable is not None and not is_binsparse:
            *group_path, key = options.variable.strip("/").split("/")
            item = file.members(file.group("/".join(group_path))).get(key)
            is_binsparse = item is not None and binsparse.ATTRIBUTE in item.attrs
        kind = "binsparse" if is_binsparse else "AnnData" if anndata.is_anndata(file) else "10x"
    if options.rows is not None and kind != "AnnData":
        raise UnsupportedError(f"{os.fspath(path)}: rows= of a {kind} file\n  help: read it whole, and slice that")
    readers = {"binsparse": binsparse.read, "AnnData": anndata.read, "10x": hdf5.read_tenx}
    return readers[kind](path, options)
