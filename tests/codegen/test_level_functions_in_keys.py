"""Level formats of one name: plans and kernels are those of their level functions, in one process and from disk."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.format.expression import Dim
from openwork.format.format import Format, Level
from openwork.format.forms import COMPRESSED, LOOSE
from openwork.format.functions import LevelFunctions
from openwork.format.level import LevelFormat
from openwork.format.levels import LEVEL_FORMATS, Dense

FORMS: dict[str, LevelFunctions] = {"compressed": COMPRESSED, "loose": LOOSE}
DENSE = np.array([[0.0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 4, 0], [0, 5, 0, 6]])


def mine(functions: LevelFunctions) -> type[LevelFormat]:
    """A level format `mine` of this form: each has the same name, module and text."""
    body: dict[str, Any] = {"name": "mine", "functions": functions, "buffers": ("pos", "crd"), "__module__": __name__}
    return dataclass(frozen=True, slots=True)(type("Mine", (LevelFormat,), body))


def rows(kind: type[LevelFormat]) -> Format:
    return Format(("i", "j"), (Level(Dim(0), Dense()), Level(Dim(1), kind())))


OPERATIONS: dict[str, Callable[[ow.Tensor], Any]] = {
    "product": lambda a: a @ np.arange(4.0),
    "from the left": lambda a: np.arange(4.0) @ a,
    "matrix": lambda a: a @ np.eye(4)[:, :3],
    "merge": lambda a: (a + a).to_numpy(),
    "merge of two formats": lambda a: (a * ow.asarray(DENSE, format="csr")).to_numpy(),
    "reduction": lambda a: ow.sum(a, axis=0),
    "reduced merge": lambda a: ow.sum(abs(a - ow.asarray(DENSE.T.copy(), format="csr"))),
    "conversion": lambda a: a.asformat("csr").to_numpy(),
    "dense": lambda a: a.to_numpy(),
    "selection": lambda a: a[1:, [3, 1]].to_numpy(),
    "product of two": lambda a: (a @ a).to_numpy(),
    "fused": lambda a: ow.fused(lambda x: ow.sum(x * 2 + x, axis=1))(a),
    "stacked": lambda a: ow.concat([a, a]).to_numpy(),
    "softmax": lambda a: ow.softmax(a, 1).to_numpy(),
}


def values(result: Any) -> Any:
    return result.to_numpy() if isinstance(result, ow.Tensor) else np.asarray(result)


@pytest.mark.thin(14, rest="ci")
@pytest.mark.parametrize("name", OPERATIONS)
def test_level_formats_of_one_name_have_kernels_of_their_own(name: str) -> None:
    want = values(OPERATIONS[name](ow.asarray(DENSE, format="csr")))
    for functions in (*FORMS.values(), *reversed(FORMS.values())):
        a = ow.asarray(DENSE).asformat(rows(mine(functions)))
        np.testing.assert_array_equal(values(OPERATIONS[name](a)), want)


def test_formats_tell_level_functions_apart() -> None:
    one, two = rows(mine(COMPRESSED)), rows(mine(LOOSE))
    assert str(one) == str(two)
    assert one.canonical == two.canonical
    assert one != two
    assert one.identity != two.identity
    assert one.identity == rows(mine(COMPRESSED)).identity
    assert ow.format("csr").identity == pickle.loads(pickle.dumps(ow.format("csr"))).identity


def test_a_class_that_is_edited_makes_other_formats() -> None:
    """Its name, module and class object stay: a format that is made of it later is another one."""
    kind = mine(COMPRESSED)
    before = rows(kind)
    a = ow.asarray(DENSE).asformat(before)
    np.testing.assert_array_equal(a @ np.arange(4.0), DENSE @ np.arange(4.0))
    kind.functions = LOOSE
    after = rows(kind)
    assert before != after
    assert hash(before) != hash(after)
    b = ow.asarray(DENSE).asformat(after)
    np.testing.assert_array_equal(b @ np.arange(4.0), DENSE @ np.arange(4.0))


def test_a_text_names_the_level_format_that_is_registered_now(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(i, j) -> (i : dense, j : mine)"
    for functions in FORMS.values():
        kind = mine(functions)
        monkeypatch.setitem(LEVEL_FORMATS, "mine", kind)
        assert type(ow.format(text).levels[1].format) is kind
        np.testing.assert_array_equal(ow.asarray(DENSE, format=text) @ np.arange(4.0), DENSE @ np.arange(4.0))


PROGRAM = """
import sys
sys.path[:0] = [{tests!r}]
from test_level_functions_in_keys import DENSE, FORMS, OPERATIONS, mine, rows, values
import openwork as ow
import numpy as np
a = ow.asarray(DENSE).asformat(rows(mine(FORMS[sys.argv[1]])))
for name, operation in OPERATIONS.items():
    want = values(operation(ow.asarray(DENSE, format="csr")))
    np.testing.assert_array_equal(values(operation(a)), want, err_msg=name)
print(ow.cache_info()["compiled"], ow.cache_info()["from_disk"])
"""


@pytest.mark.ci
def test_kernels_on_disk_are_those_of_the_level_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes whose level format `mine` was edited between them, one folder of kernels."""
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path))
    program = PROGRAM.format(tests=str(Path(__file__).parent))
    counts = []
    for form in ("compressed", "loose", "compressed"):
        run = subprocess.run([sys.executable, "-c", program, form], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr[-2000:]
        counts.append([int(n) for n in run.stdout.split()])
    assert counts[1][0] > 0
    assert counts[2][0] == 0
    assert counts[2][1] > 0
