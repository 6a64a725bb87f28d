"""Settings of the whole suite: hypothesis, where kernels are kept and how they are compiled, the real matrices.

Kernels are compiled in linear time (`OPENWORK_OPTIMIZE=0`) into a folder that is made for the run and shared by its
workers; tests/codegen, which is about machine code, has all passes. Set either variable to choose otherwise.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
"""Read when NumPy and torch are loaded: their threads wait for each other by spinning, which on cores that others use too
takes fifty times the work."""

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from absent_libraries import why_skipped  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from openwork.checked import CHECKED  # noqa: E402

os.environ.setdefault("OPENWORK_OPTIMIZE", "0")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Of the many subprocesses each would compile our sources again, which is most of their time."""
sys.dont_write_bytecode = False
_DRAWS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
"""What a machine is busy with, or the luck of a draw, is nobody's fault."""
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50, suppress_health_check=_DRAWS)
settings.register_profile("nightly", deadline=None, max_examples=5000, suppress_health_check=_DRAWS)
settings.register_profile("seeded", settings.get_profile("ci"), derandomize=False, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
_KERNELS = pytest.StashKey[str]()
_GARBAGE = 20_000
"""New objects after which garbage is looked for: with Python's 700, a twentieth of the time of the tests went there."""


def pytest_configure(config: pytest.Config) -> None:
    """A fresh folder of kernels, which xdist's workers inherit; `--hypothesis-seed` means that others are drawn."""
    if "OPENWORK_CACHE_DIR" not in os.environ:
        os.environ["OPENWORK_CACHE_DIR"] = config.stash[_KERNELS] = tempfile.mkdtemp("-openwork-kernels", dir=_memory())
    if config.getoption("hypothesis_seed", None) is not None:
        settings.load_profile("seeded")


def _memory() -> str | None:
    """A folder in memory with room for the 20,000 kernels, where the system has one; they are files for as long as the
    run, and to make a file takes a full disk milliseconds."""
    shared = "/dev/shm"
    room = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 2 << 30
    return shared if room else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported stays: to walk over all of it in search of garbage takes seconds, each time."""
    gc.disable()
    try:
        result = yield
        gc.collect()
        gc.freeze()
        return result
    finally:
        gc.enable()
        gc.set_threshold(_GARBAGE)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The folder goes with the run that made it."""
    if _KERNELS in config.stash:
        shutil.rmtree(config.stash[_KERNELS], ignore_errors=True)
        del os.environ["OPENWORK_CACHE_DIR"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden kernels instead of comparing")


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport | None:
    """A file whose imports ask for an optional library that is not installed is one skip, with the library's name."""
    if not isinstance(collector, pytest.Module):
        return None
    try:
        _ = collector.obj
    except collector.CollectError as error:
        if reason := why_skipped(error.__cause__):
            place = str(collector.path), 0, reason
            return pytest.CollectReport(collector.nodeid, "skipped", place, [])  # type: ignore[arg-type]
    except (Exception, pytest.skip.Exception):
        return None  # pytest's own hook comes upon it again, and reports it
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """A case over torch buffers, which its parameter `like` or `library` says, is skipped without torch."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if "torch" in (parameters.get("like"), parameters.get("library")):
        pytest.importorskip("torch")
    return (yield from _skipped_wherewhy_skipped())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    return (yield from _skipped_wherewhy_skipped())


def _skipped_wherewhy_skipped() -> Iterator[None]:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if reason := why_skipped(error):
            pytest.skip(reason)
        raise


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _thin(items)
    if CHECKED:
        for item in items:
            if item.get_closest_marker("unchecked"):
                item.add_marker(pytest.mark.skip(reason="asks about code without checks"))


def _thin(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked `thin(k)` that are not slow already, every k-th stays, and one for each value of each
    parameter where it has several; the others are slow. A step prime to the number of formats pairs each format with
    other operations. Where each case is a thing of its own, as a page or a refusal is, `thin(k, rest="ci")` leaves the others
    to .ci/run."""
    seen: dict[str, int] = {}
    values: set[tuple[object, ...]] = set()
    for item in items:
        marker = item.get_closest_marker("thin")
        if marker is None or not hasattr(item, "callspec") or item.get_closest_marker("slow"):
            continue
        test = item.nodeid.split("[")[0]
        number = seen[test] = seen.get(test, -1) + 1
        axes = [_names(m.args[0]) for m in item.iter_markers("parametrize")]
        params = item.callspec.params
        fresh = {(test, *((name, id(params[name])) for name in axis)) for axis in axes} if len(axes) > 1 else set()
        if number % marker.args[0] and not fresh - values:
            item.add_marker(getattr(pytest.mark, marker.kwargs.get("rest", "slow")))
        else:
            values |= fresh


def _names(given: str | Sequence[str]) -> list[str]:
    """The arguments that a parametrize mark has values for."""
    return re.findall(r"\w+", given) if isinstance(given, str) else list(given)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real matrices, or a skip where there is none."""
    root = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not (root / "MANIFEST.tsv").exists():
        pytest.skip("no real matrices here (set OPENWORK_DATA)")
    return root


@pytest.fixture(autouse=True)
def _errors_of_numbers() -> Iterator[None]:
    """Infinities and NaN are what many cases are about; tests/ops/test_float_errors.py is about the warnings."""
    with np.errstate(all="ignore"):
        yield
