"""The suite itself: no test asserts what depends on hypothesis's draws, and each has one name in all workers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from absent_libraries import OPTIONAL, why_skipped

HERE = Path(__file__).parent
COLLECTED = """
def test_some_pass():
    passed = []

    @given(numbers())
    def attempt(n):
        passed.append(n)

    attempt()
    assert len(passed) > 10
"""
COUNTED = """
count = 0

@given(numbers())
def test_each(n):
    global count
    count += 1

def test_many():
    assert count > 10
"""
HARMLESS = """
@given(numbers())
def test_each(n):
    seen = [n]
    assert len(seen) == 1

def test_fixed():
    want = [3]

    @given(numbers())
    def attempt(n):
        assert n in want

    attempt()
    assert want == [3]
"""


def counts_of_draws(tree: ast.Module) -> list[int]:
    """Lines that assert on a name which a function under `given` changes and does not own."""
    drawn = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and any(map(_is_given, f.decorator_list))]
    changed = {name for f in drawn for name in _changed(f)}
    inside = {id(n) for f in drawn for n in ast.walk(f)}
    asserts = [n for n in ast.walk(tree) if isinstance(n, ast.Assert) and id(n) not in inside]
    return [a.lineno for a in asserts if changed & {n.id for n in ast.walk(a) if isinstance(n, ast.Name)}]


def _is_given(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func).split(".")[-1] == "given"


def _changed(f: ast.FunctionDef) -> set[str]:
    nodes = list(ast.walk(f))
    own = {a.arg for n in nodes if isinstance(n, ast.arguments) for a in (*n.args, *n.kwonlyargs)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    shared = {name for n in nodes if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
    methods = [n.func for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    grown = {m.value.id for m in methods if m.attr in _GROWS and isinstance(m.value, ast.Name)}
    stored = [n.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return shared | ((grown | {v.id for v in stored if isinstance(v, ast.Name)}) - own)


_GROWS = ("append", "add", "extend", "update", "setdefault")


@pytest.mark.parametrize("text", [COLLECTED, COUNTED])
def test_counts_of_draws_are_found(text: str) -> None:
    assert len(counts_of_draws(ast.parse(text))) == 1
    assert counts_of_draws(ast.parse(HARMLESS)) == []


@pytest.mark.ci
def test_no_test_counts_draws() -> None:
    """Other draws come with other versions of hypothesis, other seeds, other settings: the README's command must pass."""
    found = [
        f"{path.relative_to(HERE)}:{line}"
        for path in sorted(HERE.rglob("test_*.py"))
        if "given" in (text := path.read_text())
        for line in counts_of_draws(ast.parse(text))
    ]
    assert found == []


def test_names_hold_no_addresses(request: pytest.FixtureRequest) -> None:
    """An object's address in a parameter's name is another one in each of xdist's workers, which then refuse to start."""
    assert [item.nodeid for item in request.session.items if " at 0x" in item.nodeid] == []


class Case:
    """A parametrized test, as far as conftest looks at it."""

    nodeid = "test_pairs[...]"

    def __init__(self, marks: list[pytest.Mark], **params: object) -> None:
        self.marks, self.params, self.callspec = marks, params, self

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [m for m in self.marks if m.name == name]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.marks = [*self.marks, marker.mark]


def test_thin_families_keep_a_share_and_every_value(request: pytest.FixtureRequest) -> None:
    thin = next(p._thin for p in request.config.pluginmanager.get_plugins() if hasattr(p, "_thin"))
    marks = [pytest.mark.thin(3).mark, *(pytest.mark.parametrize(names, []).mark for names in ("a", "b, c"))]
    cases = [Case(marks, a=a, b=b, c=c) for b, c in ((0, 0), (1, 0), (2, 0), (2, 1)) for a in "abcdef"]
    alone = [Case(marks[:2], a=a) for a in "abcdef"]
    thin(cases)
    thin(alone)
    kept, ones = ([c.params for c in part if not c.get_closest_marker("slow")] for part in (cases, alone))
    assert [c["a"] for c in ones] == ["a", "d"]
    assert 8 <= len(kept) <= 12  # of 24
    assert {c["a"] for c in kept} == set("abcdef")
    things = [Case([pytest.mark.thin(3, rest="ci").mark, marks[1]], a=a) for a in "abcdef"]
    thin(things)
    assert [c.params["a"] for c in things if c.get_closest_marker("ci")] == ["b", "c", "e", "f"]
    assert not any(c.get_closest_marker("slow") for c in things)
    assert {(c["b"], c["c"]) for c in kept} == {(0, 0), (1, 0), (2, 0), (2, 1)}


def test_no_folder_of_tests_hides_a_library() -> None:
    """tests/ is on the path of imports: a folder tests/torch was torch, where torch is not installed."""
    assert "torch" in OPTIONAL
    assert [p.name for p in HERE.iterdir() if p.name in OPTIONAL] == []


def test_an_import_in_vain_is_a_skip_where_a_test_asks_for_it_and_a_failure_where_openwork_does() -> None:
    def reason(file: str, name: str) -> str | None:
        code = compile(f"raise ModuleNotFoundError('absent', name={name!r})", str(HERE.parent / file), "exec")
        with pytest.raises(ModuleNotFoundError) as caught:
            exec(code, {})
        return why_skipped(caught.value)

    assert reason("tests/test_x.py", "torch.nn") == "needs torch.nn"
    assert reason("docs/torch.md", "torch") == "needs torch"
    assert reason("src/openwork/ops/x.py", "torch") is None
    assert reason("tests/test_x.py", "a_misspelt_module") is None
