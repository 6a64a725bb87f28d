"""Each command of `openwork`, run in this process; bad input is a message on stderr and status 2."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import openwork as ow
from openwork.advice.sizes import bytes_of
from openwork.cli import contests, generate, main
from openwork.cli.main import EXAMPLES, build_parser

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "stencil.mtx"
    scipy.io.mmwrite(path, generate.stencil(5))
    return path


@pytest.fixture
def tensor(tmp_path: Path) -> Path:
    path = tmp_path / "small.tns"
    path.write_text("1 1 1 1.0\n2 3 4 2.0\n2 3 1 3.0\n")
    return path


def test_info(matrix: Path, capsys: Capture) -> None:
    assert main(["info", str(matrix)]) == 0
    out = capsys.readouterr().out
    for text in (
        "50 x 50",
        "symmetric structure, not values",
        "bsr(2, 2)",
        "16 x 16",
        "rows by their number",
        "float64",
    ):
        assert text in out


def test_info_of_the_cache(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path))
    assert main(["info", "--cache"]) == 0
    out = capsys.readouterr().out
    assert f"folder        {tmp_path}\n" in out
    assert "on disk       0 kernels, 0 B\n" in out
    assert all(word in out for word in ("in memory", "hits", "misses", "from disk", "compiled", "evicted"))
    tmp_path.chmod(0o777)
    assert main(["info", "--cache"]) == 0
    assert "not used" in capsys.readouterr().out
    tmp_path.chmod(0o700)
    assert main(["info"]) == 2
    assert "expected a file, or --cache" in capsys.readouterr().err


def test_info_of_a_tensor(tensor: Path, capsys: Capture) -> None:
    assert main(["info", str(tensor)]) == 0
    out = capsys.readouterr().out
    assert "2 x 3 x 4" in out
    assert "csf" in out


def test_info_predicts_the_bytes() -> None:
    """The sizes that info shows are those of the converted tensors."""
    csr = generate.uniform(40, 60, 300).tocsr()
    t = ow.asarray(csr)
    for name, count in bytes_of(csr).items():
        assert t.asformat(name).nbytes == count, name


def test_json(matrix: Path, tensor: Path, capsys: Capture) -> None:
    """What commands find, for programs: the numbers that their tables show as text."""

    def found(*arguments: str) -> dict[str, Any]:
        assert main([*arguments, "--json"]) == 0
        return dict(json.loads(capsys.readouterr().out))

    A = ow.read(matrix)
    info = found("info", str(matrix))
    assert (info["shape"], info["nse"], info["nbytes"]) == (list(A.shape), A.nse, A.nbytes)
    assert info["formats"]["csr"] == A.asformat("csr").nbytes
    assert sum(info["row_lengths"]["histogram"].values()) == 50
    assert found("info", str(tensor))["formats"].keys() == {"coo", "csf"}
    assert found("info", "--cache")["cache"].keys() == ow.cache_info().keys()
    advice = found("advise", str(matrix), "--op", "spmv", "--seconds", "0.001")
    assert advice["best"] == advice["candidates"][0]["format"]
    assert advice["shape"] == [50, 50]
    assert all(c["seconds"] is None or 0 < c["seconds"] < 10 for c in advice["candidates"])
    doctor = found("doctor")
    assert doctor["version"] == ow.__version__
    assert doctor["product"]["equal"] is True
    assert doctor["packages"]["numpy"] == np.__version__


def test_the_version(capsys: Capture) -> None:
    assert exit_status(["--version"]) == 0
    assert capsys.readouterr().out == f"openwork {ow.__version__}\n"


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_of_each_command_has_examples_that_parse(command: str, capsys: Capture) -> None:
    assert exit_status([command, "--help"]) == 0
    out = capsys.readouterr().out
    for example in EXAMPLES[command]:
        assert f"\n  {example}\n" in out
        words = shlex.split(example, comments=True)
        words = words[: next((k for k, word in enumerate(words) if word in "|>"), len(words))]
        assert build_parser().parse_args(words[1:]).command == command


def test_an_unknown_command_says_what_was_meant(capsys: Capture) -> None:
    assert exit_status(["inf"]) == 2
    assert "no command 'inf'; did you mean 'info'?" in capsys.readouterr().err


@pytest.mark.thin(5)
@pytest.mark.parametrize("command", ["info", "advise", "bench", "doctor", "formats"])
def test_tables_are_at_most_a_page_wide(matrix: Path, capsys: Capture, command: str) -> None:
    """100 columns; those without a last column of text 80."""
    given = {
        "info": [str(matrix)],
        "advise": [str(matrix), "--seconds", "0.001"],
        "bench": [str(matrix), "--seconds", "0.0001"],
    }
    assert main([command, *given.get(command, [])]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if str(matrix) not in line) <= (
        100 if command in ("advise", "formats") else 80
    )


def test_convert(matrix: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out.npz"
    assert main(["convert", str(matrix), str(target), "--format", "bsr(2, 2)"]) == 0
    assert "out.npz" in capsys.readouterr().out
    back = ow.read(target)
    assert back.format == ow.format("bsr(2, 2)")
    assert np.array_equal(back.to_numpy(), scipy.io.mmread(matrix).toarray())


def test_bench_json(matrix: Path, capsys: Capture) -> None:
    operations = "spmv,spmm:3,vecmat,sddmm:2,sum,sum:0,sum:1,to_dense,to_csr,to_csc,to_coo,to_bsr:2"
    arguments = ["bench", str(matrix), "--op", operations, "--formats", "csr,coo,csc,bsr(4,4),dia,dcsr"]
    assert main([*arguments, "--seconds", "0.001", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shape"] == [50, 50]
    rows = facts["rows"]
    assert len(rows) == 6 * 12
    assert all(row["equal"] for row in rows if row["seconds"])
    assert {row["peer_format"] for row in rows if row["op"] == "spmv"} <= {"csr", "coo", "csc", "bsr(4,4)", "dia"}
    assert {row["note"] for row in rows if not row["seconds"]} == {"it is in this format already"}
    assert all("scipy" in row["ratios"] for row in rows if row["op"] == "spmv")


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_bench_table(matrix: Path, capsys: Capture, dtype: str) -> None:
    arguments = ["bench", str(matrix), "--op", "spmv,sum", "--formats", "csr", "--dtype", dtype, "--threads", "2"]
    try:
        assert main([*arguments, "--seconds", "0.001"]) == 0
    finally:
        ow.set_num_threads(1)
    out = capsys.readouterr().out
    assert "ratio" in out
    assert "every result is equal to SciPy's" in out
    assert "DIFFERENT" not in out


def test_bench_of_a_tensor(tensor: Path, capsys: Capture) -> None:
    assert main(["bench", str(tensor), "--op", "mttkrp:3,sum,sum:0,sum:1,sum:2", "--seconds", "0.001", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["equal"] for row in rows] == [True] * 10
    assert main(["bench", str(tensor), "--seconds", "0.001"]) == 0
    assert "mttkrp:32" in capsys.readouterr().out


def test_bench_finds_a_wrong_result(matrix: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(problem: contests.Problem, text: str) -> contests.Contest:
        right = contests.spmv(problem, text)
        ours = right.runs["openwork"]
        return contests.Contest({**right.runs, "openwork": lambda: 2 * np.asarray(ours())}, right.equal, "csr")

    monkeypatch.setitem(contests.OPERATIONS, "spmv", broken)
    assert main(["bench", str(matrix), "--op", "spmv", "--formats", "csr", "--seconds", "0.001"]) == 1
    captured = capsys.readouterr()
    assert "DIFFERENT from SciPy's: spmv on csr" in captured.out
    assert "1 results differ" in captured.err


@pytest.mark.parametrize("show", ["loops", "llvm", "asm"])
def test_kernel(capsys: Capture, show: str) -> None:
    assert main(["kernel", "y(i) += A(i,j) * x(j)", "--formats", "A=csr", "--show", show]) == 0
    out = capsys.readouterr().out
    assert {"loops": "for ", "llvm": "define", "asm": "ret"}[show] in out


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("C(i,k) = A(i,j) * B(j,k)", ["A=csr", "B=csr"]),
        ("C[i,j] = A[i,j] + B[i,j]", ["A=csr", "B=coo", "C=csc"]),
        ("C<M>[i,k] = A[i,j] * B[j,k]", ["M=csr"]),
        ("y(i) = b(i) - A(i,j) * x(j); s max= abs(y(i))", ["A=csr"]),
    ],
)
def test_kernels_of_any_statement(capsys: Capture, text: str, formats: list[str]) -> None:
    assert main(["kernel", text, "--formats", *formats]) == 0
    assert "for " in capsys.readouterr().out


def test_formats(capsys: Capture) -> None:
    assert main(["formats"]) == 0
    out = capsys.readouterr().out
    assert "i : dense, j : compressed" in out
    assert "csf" in out


@pytest.mark.ci
def test_tour(capsys: Capture) -> None:
    assert main(["tour", "--scale", "8"]) == 0
    out = capsys.readouterr().out
    for text in ("dcsr", "bsr(2,2)", "dia", "for ", "spmm:32", "every result was compared"):
        assert text in out
    assert "NO" not in out


BAD = {
    "no command": [],
    "unknown command": ["fly"],
    "missing file": ["info", "{tmp}/none.mtx"],
    "a folder": ["info", "{tmp}"],
    "unknown kind of file": ["info", "{tmp}/strange.xyz"],
    "malformed file": ["info", "{tmp}/bad.mtx"],
    "empty file": ["info", "{tmp}/empty.mtx"],
    "unknown format": ["convert", "{tmp}/good.mtx", "{tmp}/out.npz", "--format", "crs"],
    "format with a caret": [
        "convert",
        "{tmp}/good.mtx",
        "{tmp}/out.npz",
        "--format",
        "(i, j) -> (i : dense, k : dense)",
    ],
    "unknown target": ["convert", "{tmp}/good.mtx", "{tmp}/out.xyz"],
    "no such folder": ["convert", "{tmp}/good.mtx", "{tmp}/none/out.npz"],
    "unknown operation": ["bench", "{tmp}/good.mtx", "--op", "fly"],
    "bad argument of an operation": ["bench", "{tmp}/good.mtx", "--op", "spmm:x", "--formats", "csr"],
    "unknown format to measure": ["bench", "{tmp}/good.mtx", "--formats", "crs"],
    "nothing to measure": ["bench", "{tmp}/good.mtx", "--op", ","],
    "a product of a tensor": ["bench", "{tmp}/small.tns", "--op", "spmv"],
    "a dimension that is not there": ["bench", "{tmp}/small.tns", "--op", "sum:3"],
    "no threads": ["bench", "{tmp}/good.mtx", "--threads", "0"],
    "broken expression": ["kernel", "y(i) += A(i,", "--formats", "A=csr"],
    "empty expression": ["kernel", ""],
    "format of nothing": ["kernel", "y(i) += A(i,j) * x(j)", "--formats", "B=csr"],
    "no name": ["kernel", "y(i) += A(i,j) * x(j)", "--formats", "csr"],
    "unknown dtype": ["kernel", "y(i) += A(i,j) * x(j)", "--formats", "A=csr", "--dtypes", "A=float7"],
    "nothing to compile": ["kernel", "y(i) = A(i,j) * x(j)"],
    "wrong rank": ["kernel", "y(i) += A(i) * x(i)", "--formats", "A=csr"],
}


def exit_status(arguments: list[str]) -> object:
    """What the process would exit with."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_message_and_status_2(case: str, tmp_path: Path, capsys: Capture) -> None:
    scipy.io.mmwrite(tmp_path / "good.mtx", sp.eye_array(4))
    (tmp_path / "strange.xyz").write_text("hello")
    (tmp_path / "small.tns").write_text("1 1 1 1.0\n")
    (tmp_path / "empty.mtx").write_text("")
    (tmp_path / "bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 3\n")
    status = exit_status([part.replace("{tmp}", str(tmp_path)) for part in BAD[case]])
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    pointed = [k for k, line in enumerate(lines) if line.strip("^~ ") == ""]
    assert len(lines) == 1 or pointed
    assert all(" " not in lines[k - 1][lines[k].index("^") : lines[k].index("^") + 1] for k in pointed)
    assert captured.err.startswith("openwork")


MEANT = {
    "misspelt option": (
        ["info", "good.mtx", "--jsn"],
        "openwork info: no argument --jsn; help: did you mean '--json'?",
    ),
    "option of another command": (["info", "good.mtx", "--format=csr"], "openwork info: no argument --format=csr ("),
    "a file too many": (["info", "good.mtx", "b.mtx"], "openwork info: no argument b.mtx ("),
    "misspelt operation": (["bench", "good.mtx", "--op", "spvm"], "; help: did you mean 'spmv'?"),
    "no command": ([], "openwork: which command? tour, info, convert"),
    "operation of advise": (["advise", "good.mtx", "--op", "foo"], "openwork advise: op='foo'; supported: spmv"),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", MEANT)
def test_wrong_arguments_name_the_command_and_what_was_meant(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    scipy.io.mmwrite("good.mtx", sp.eye_array(4))
    arguments, text = MEANT[case]
    assert exit_status(arguments) == 2
    assert text in capsys.readouterr().err


POINTED = {
    "y(i) += A(i,j) * x(j": ("A=csr", "  y(i) += A(i,j) * x(j\n                      ^\n"),
    "y(i) += A(i,j) * x(j)": (
        "A=(i, j) -> (i : dense, k : compressed)",
        "(i : dense, k : compressed)\n                        ^\n",
    ),
    "y(i) += A(i,j) *": ("A=csr", "  y(i) += A(i,j) *\n"),
}


@pytest.mark.parametrize("expression", POINTED)
def test_errors_of_kernels_point_at_the_place(expression: str, capsys: Capture) -> None:
    formats, message = POINTED[expression]
    assert main(["kernel", expression, "--formats", formats]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "  expected" in err or "  help" in err


def test_an_interrupted_bench_prints_what_it_measured(
    matrix: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openwork.cli import bench

    def interrupted(problem: contests.Problem, operation: str, budget: float) -> bench.Row:
        if operation == "sum":
            raise KeyboardInterrupt
        return bench.Row(operation, "csr", "csr", True, {"openwork": 1e-6})

    monkeypatch.setattr(bench, "measure", interrupted)
    assert main(["bench", str(matrix), "--op", "spmv,sum,sum:0", "--formats", "csr"]) == 130
    captured = capsys.readouterr()
    assert "spmv" in captured.out
    assert "sum" not in captured.out
    assert captured.err == "openwork bench: interrupted\n"


def test_a_closed_pipe_is_quiet() -> None:
    command = f"{sys.executable} -m openwork.cli formats | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("dense")


def test_real_files(data_dir: Path, capsys: Capture) -> None:
    for name in ("hb_suitesparse/ash85.mtx", "pruned/wavernn_coarseproj_95_4x4.npz", "tensors/splatt_small.tns"):
        assert main(["info", str(data_dir / name)]) == 0
    assert "bytes in each format" in capsys.readouterr().out
    arguments = ["--op", "spmv,spmm:8,to_csc", "--formats", "csr,coo,bsr(4,4)", "--seconds", "0.001"]
    assert main(["bench", str(data_dir / "hb_suitesparse" / "ash85.mtx"), *arguments]) == 0


def test_torch_takes_part_in_sums(matrix: Path) -> None:
    pytest.importorskip("torch")
    csr = scipy.io.mmread(matrix).tocsr()
    for name in ("coo", "csr"):
        problem = contests.Problem.of(csr, name, True)
        for text, axis in (("", None), ("0", 0), ("1", 1)):
            got = contests.total(problem, text).runs["torch"]()
            dense = got.to_dense().numpy()  # type: ignore[attr-defined]
            np.testing.assert_allclose(dense.reshape(-1), np.asarray(csr.sum(axis=axis)).reshape(-1))


def test_torch_takes_part_where_it_has_the_operation(matrix: Path) -> None:
    pytest.importorskip("torch")
    problem = contests.Problem.of(scipy.io.mmread(matrix).tocsr(), "csr", True)
    asked = {*contests.OPERATIONS} - {"to_csr"}
    assert {name for name in asked if "torch" in contests.contest(problem, name).runs} == asked - {"vecmat", "to_bsr"}


def test_dense_operands_of_kernels_have_the_vector_index_inside(capsys: Capture) -> None:
    """Whichever way it is written, B is read along k."""
    texts = []
    for b in ("B(j,k)", "B(k,j)"):
        assert main(["kernel", f"C(i,k) += A(i,j) * {b}", "--formats", "A=csr"]) == 0
        texts.append(capsys.readouterr().out.split("\n", 1)[1].replace("B_stride1", "B_stride0"))
    assert texts[0] == texts[1]


@pytest.mark.thin(2)
@pytest.mark.parametrize("command", [["-m", "openwork", "formats"], ["openwork"]])
def test_an_interrupt_during_imports_is_one_line(command: list[str], tmp_path: Path) -> None:
    """NumPy's import is interrupted, as by Ctrl-C; the script has the form of the one that pip makes."""
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt\n")
    (tmp_path / "openwork").write_text("import sys\nfrom openwork.cli import main\nsys.exit(main())\n")
    source = str(Path(ow.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), source])}
    shell = [shlex.join([sys.executable, *command]) + "; exit $?"]
    done = subprocess.run(["bash", "-c", *shell], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "openwork: interrupted\n")
    (tmp_path / "numpy.py").write_text("raise RuntimeError('no interrupt')\n")
    done = subprocess.run(["bash", "-c", *shell], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert done.returncode == 1
