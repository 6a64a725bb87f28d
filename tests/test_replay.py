"""`tools/replay.py`: two trees in, the kernels that differ between them out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import replay  # noqa: E402

ONE = "^A @ x of csr, float32$"


def recording(*texts: str, refused: dict[str, str] | None = None) -> replay.Recording:
    kernels = (replay.Kernel(text, call, f"k_{call}") for text, call in (t.split(" by ") for t in texts))
    return replay.Recording(tuple(kernels), refused or {})


def test_equal_recordings_differ_in_nothing() -> None:
    one, other = recording("a by p", "b by q"), recording("b by p", "a by r")
    assert not replay.compare(one, other)
    assert replay.report(one, other, False) == "2 kernels before, 2 after: 0 changed, 0 gone, 0 new"


def test_kernels_of_one_call_are_pairs_and_others_gone_or_new() -> None:
    before = recording("a\nb by p", "c by q", "d\nb by s", refused={"z": "DTypeError"})
    after = recording("a\ne by p", "f by r", "d\ne by s")
    assert replay.report(before, after, False).splitlines() == [
        "changed  k_p, first asked for by p",
        "changed  k_s, first asked for by s",
        *(f"    {line}" for line in ("--- before", "+++ after", "@@ -1,2 +1,2 @@", " a", "-b", "+e")),
        "gone     k_q, first asked for by q",
        "    c",
        "new      k_r, first asked for by r",
        "    f",
        "call     z: DTypeError -> runs",
        "3 kernels before, 3 after: 2 changed, 1 gone, 1 new",
    ]
    assert "    c" not in replay.report(before, after, True)


@pytest.mark.ci
def test_a_patched_tree_is_told_by_its_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "src" / "openwork", tmp_path / "src" / "openwork")
    path = tmp_path / "src" / "openwork" / "compiler" / "simplify.py"
    text = path.read_text()
    path.write_text(
        f"{text}\n_plain = simplify\ndef simplify(kernel):\n    return replace(_plain(kernel), notes=('patched',))\n"
    )
    assert "import replace" in text
    assert replay.main([str(ROOT), str(tmp_path), "--only", ONE]) == 1
    out = capsys.readouterr().out
    assert f"first asked for by {ONE[1:-1]}\n" in out
    assert "\n    +# patched\n" in out
    assert ": 1 changed, 0 gone, 0 new\n" in out


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no repository")
@pytest.mark.slow
def test_a_commit_against_itself_differs_in_nothing_and_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["HEAD", "HEAD", "--only", ONE, "--keep", str(tmp_path)]
    assert replay.main(arguments) == 0
    assert len(list(tmp_path.glob("*.json"))) == 1
    monkeypatch.setattr(replay, "_run", lambda *_: pytest.fail("it has been recorded"))
    assert replay.main(arguments) == 0


def test_an_unknown_commit_is_said_to_be_so() -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no repository")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "replay.py"), "no-such-commit"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "no-such-commit" in done.stderr
