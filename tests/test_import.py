"""`import openwork` is light: what it loads is counted, not timed."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from importlib import import_module
from inspect import signature

import pytest

import openwork as ow
from openwork.tables import GRADIENTS

HEAVY = (
    "torch",
    "llvmlite",
    "scipy.sparse.linalg",
    "scipy.linalg",
    "rich",
    "matplotlib",
    "dask",
    "h5py",
    "ml_dtypes",
    "numba",
    "pandas",
    "argparse",
)


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The modules that `import openwork` adds to those of numpy."""
    code = (
        "import json, sys, numpy, numpy.ctypeslib; before = set(sys.modules); import openwork; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("name", HEAVY)
def test_import_does_not_load(loaded: list[str], name: str) -> None:
    assert [m for m in loaded if m == name or m.startswith(name + ".")] == []


def test_import_loads_few_modules(loaded: list[str]) -> None:
    """About 1 ms each: the quarter of a second allows many more."""
    assert len(loaded) < 150, loaded


def test_the_package_is_there(loaded: list[str]) -> None:
    assert "openwork" in loaded


_ORDERS = """
import os, sys, warnings
import torch, torch._dynamo, functorch
warnings.simplefilter("ignore")
for first in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            __import__(first)
            import openwork as ow, openwork.torch.rules, openwork.torch.compiled.products
            a = ow.asarray(torch.eye(2).to_sparse()).requires_grad_()
            assert a.detach().grad is None and a.mT.requires_grad
        except BaseException as error:
            print(first, type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
"""


_FIRST = ("openwork", "openwork.nn")
_OTHERS = tuple(
    f"openwork.{x}"
    for x in (
        "torch",
        "torch.compiled.products",
        "torch.dense_gradient.tensor",
        "masked",
        "linalg",
        "interop.from_torch",
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("names", [_FIRST, _OTHERS], ids=["first", "others"])
def test_whatever_is_imported_first(names: tuple[str, ...]) -> None:
    """torch's tracer before the package, and any of its modules first: gradients are found."""
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", _ORDERS, *names], capture_output=True, text=True, check=True)
    assert done.stdout == ""


_TRACER = "from openwork import nn"
_OTHER_TRACERS = ("import openwork.torch.compiled.traced", "import torch._dynamo")


@pytest.mark.ci
@pytest.mark.parametrize("first", [_TRACER, *(pytest.param(f, marks=pytest.mark.slow) for f in _OTHER_TRACERS)])
def test_the_tracer_is_loaded_by_whatever_comes_first(first: str) -> None:
    """Once there is a tensor over torch buffers, whatever loads the tracer of torch.compile finds what stands in."""
    pytest.importorskip("torch")
    code = f"import openwork as ow, torch\nt = ow.asarray(torch.eye(2).to_sparse_coo())\n{first}\nprint(t.sum())"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_import_star_shadows_nothing_of_pythons() -> None:
    names: dict[str, object] = {}
    exec("from openwork import *", names)
    del names["__builtins__"]
    assert not set(names) & set(dir(builtins))
    assert {"asarray", "Tensor", "einsum", "linalg", "topk"} <= set(names)


def test_dir_lists_what_is_public_and_nothing_else() -> None:
    public = {name for name in dir(ow) if not name.startswith("_")}
    assert {"sum", "abs", "format", "Lazy", "Plan", "masked", "nansum"} <= public
    assert not public & {"import_module", "FunctionType", "TYPE_CHECKING", "HOMES", "NAMES"}
    assert all(hasattr(ow, name) for name in public)


NAMESPACES = (
    "advice", "compat.pydata_sparse", "compat.scipy_sparse", "dask", "decomposition", "format", "graph", "io", "io.cf",
    "lib", "lib.stride_tricks", "linalg", "masked", "nn", "plot", "torch", "torch.func",
    "torch.optim",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMESPACES)
def test_dir_of_a_public_module_lists_its_public_names(name: str) -> None:
    for needed in {"dask": ("dask",), "nn": ("torch",), "torch": ("torch",), "compat": ("sparse",)}.get(
        name.partition(".")[0], ()
    ):
        pytest.importorskip(needed)
    module = import_module(f"openwork.{name}")
    assert [n for n in dir(module) if not n.startswith("__")] == sorted(module.__all__)
    assert {"__all__", "__doc__", "__name__"} <= set(dir(module))


def test_the_signature_says_what_takes_grad() -> None:
    assert str(signature(ow.sin)).startswith("(x: Any, /, *, grad: str | None = None)")
    for name in GRADIENTS:
        grad = signature(getattr(ow, name)).parameters["grad"]
        assert (grad.kind, grad.default) == (grad.KEYWORD_ONLY, None)
    assert list(signature(ow.evaluate).parameters)[-2:] == ["grad", "tensors"]
    assert "grad" not in signature(ow.zeros).parameters


def test_what_needs_torch_says_so() -> None:
    """Without torch `ow.nn` names the command that installs it."""
    code = (
        "import sys; sys.modules['torch'] = None; import openwork as ow\n"
        "try: ow.nn\nexcept ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "openwork.nn and openwork.torch work with torch, which is not installed" in done.stdout
    assert "help: pip install torch" in done.stdout


def test_what_needs_dask_says_so() -> None:
    """Without Dask `ow.dask` names the command that installs it."""
    code = (
        "import sys; sys.modules['dask'] = None; import openwork as ow\n"
        "try: ow.dask\nexcept ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "openwork.dask works with Dask, which is not installed" in done.stdout
    assert "help: pip install 'dask[array]' distributed" in done.stdout
