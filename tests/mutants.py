"""Change lines of the source at random, run the tests that execute them, and report the changes that no test notices.

    python -m tests.mutants --count 300 --seed 7 --jobs 2

Which tests execute which lines is recorded once per state of the tree, by a run of the whole suite (about twice its
time). The quickest tests of each mutant are tried first, in a fork of one process that has collected them all; what they
do not notice then stands in a scratch copy, where its tests run from the quickest to the slowest, at most --limit CPU
seconds of them. Both stop at the first failure. A run that was cut off goes on where it was. Nothing is written in the tree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from .mutation.changes import Change, changes, makes_sense
from .mutation.in_process import InProcess, Trial
from .mutation.record import Record
from .mutation.trial import Place, Running, options_of_pytest, preload

ROOT = Path(__file__).resolve().parent.parent
_FIRST = 40
"""Tests in the first part, the quickest: mutants that matter mostly die here, before slower files are imported."""
_SECONDS_IN_FORKS = 15.0
"""CPU seconds of tests of one mutant in a fork, as recorded."""
_ENVIRONMENT_OF_FORKS = {
    "OPENWORK_DATA": "/nonexistent", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "OMP_NUM_THREADS": "1",  # a fork has none of the threads that its parent started
}  # fmt: skip
_MODULES = "pytest,_pytest.assertion.rewrite,xdist,hypothesis,numpy,scipy.sparse,llvmlite.binding,torch,pandas,networkx"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a file, and the tests that see it."""

    file: str
    change: Change
    tests: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 where every mutant was noticed."""
    options = _options(arguments)
    root = Path(options.root).resolve()
    state = Path(options.state or Path(tempfile.gettempdir()) / "openwork-mutants") / _digest(root, options)
    state.mkdir(parents=True, exist_ok=True)
    print(f"state: {state}", flush=True)
    record = _recorded(root, state, options)
    mutants = list(_drawn(root / options.source, record, options))
    results = state / f"results-{options.seed}.jsonl"
    _try_in_forks(root, mutants, record, results, options)
    preload(options.modules.split(","))
    _try_all(root, mutants, record, results, options)
    return _report(mutants, results, options)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--count", type=int, default=300, help="mutants (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time (default: cores)")
    parser.add_argument("--limit", type=float, default=90.0, help="CPU seconds of tests for one mutant (default 90)")
    parser.add_argument(
        "--until", type=float, default=0.0, help="minutes after which no mutant is started (default: none)"
    )
    parser.add_argument("--state", help="folder of what is recorded and found (default: in the temporary folder)")
    parser.add_argument("--only", default="", help="files of the source that begin with one of these (commas)")
    parser.add_argument("--root", default=str(ROOT), help="the tree")
    parser.add_argument("--source", default="src/openwork", help="the package in the tree")
    parser.add_argument("--tests", default="tests", help="its tests in the tree")
    parser.add_argument("--record", default="", help="tests to record, where not all: files and folders")
    parser.add_argument("--modules", default=_MODULES, help="imported once, before the tests")
    return parser.parse_args(arguments)


def _digest(root: Path, options: argparse.Namespace) -> str:
    """The state of source and tests."""
    seen = hashlib.sha256(f"{root} {options.source} {options.tests} {options.record}".encode())
    for folder in (options.source, options.tests):
        for path in sorted((root / folder).rglob("*.py")):
            seen.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return seen.hexdigest()[:16]


def _recorded(root: Path, state: Path, options: argparse.Namespace) -> Record:
    """The record of this tree; made where there is none."""
    folder = state / "record"
    if not (folder / "whole").exists():
        folder.mkdir(exist_ok=True)
        print("recording which tests execute which lines", flush=True)
        place = Place(root, options.source, options.tests)
        env = {
            **os.environ, "PYTHONPATH": os.pathsep.join([*place.paths, str(Path(__file__).parent), str(Path(__file__).parent / "mutation/processes")]), "OPENWORK_MUTANTS_RECORD": str(folder),
            "OPENWORK_MUTANTS_SOURCE": str(place.source), "OPENWORK_DATA": "/nonexistent", "COVERAGE_CORE": "ctrace",
        }  # fmt: skip
        many = ["-n", str(options.jobs)] if options.jobs > 1 else ["-n0"]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "mutation.record",
            *many,
            "--timeout=1200",
        ]
        done = subprocess.run([*command, *(options.record or options.tests).split()], cwd=place.root, env=env)
        (folder / "source").write_text(str(place.source))
        place.close()
        if done.returncode not in (0, 1):  # tests that fail by themselves are left out below
            raise SystemExit(f"the tests do not run: status {done.returncode}")
        if not Record(folder, place.source, root / options.source).seconds:
            raise SystemExit("no test was run")
        (folder / "whole").write_text("")
    return Record(folder, Path((folder / "source").read_text()), root / options.source)


def _drawn(source: Path, record: Record, options: argparse.Namespace) -> Iterator[Mutant]:
    """Mutants of lines that some test executes or imports; exchanged names, of which there are most, no oftener than conditions."""
    sites: dict[tuple[str, int, str], list[Change]] = defaultdict(list)
    texts = {p.relative_to(source).as_posix(): p.read_text(encoding="utf-8") for p in sorted(source.rglob("*.py"))}
    for file, text in texts.items():
        if file.startswith(tuple(options.only.split(","))):
            for change in changes(text):
                sites[file, change.start, change.kind].append(change)
    draw = random.Random(options.seed)
    keys = sorted(sites)
    draw.shuffle(keys)
    kinds = Counter(kind for *_, kind in keys)
    share = min(1.0, kinds["condition"] / max(1, kinds["name"]))
    left = options.count
    for key in keys:
        change = draw.choice(sites[key])
        if left and (key[2] != "name" or draw.random() < share) and makes_sense(change, texts[key[0]]):
            left -= 1
            yield Mutant(key[0], change, tuple(record.tests(key[0], change.lines, change.body)))


def _try_in_forks(
    root: Path, mutants: Sequence[Mutant], record: Record, results: Path, options: argparse.Namespace
) -> None:
    """Results of what forks of one process notice."""
    done = set(_read(results))
    trials = [
        Trial(m.file, m.change, tuple(next(_parts(m.tests, record, _SECONDS_IN_FORKS))))
        for m in mutants
        if m.tests and _name(m) not in done
    ]
    counts = {_name(m): len(m.tests) for m in mutants}
    end = time.monotonic() + 60 * options.until if options.until else float("inf")

    def tell(trial: Trial) -> None:
        if trial.verdict not in ("killed", "crashed"):
            return
        name = f"{trial.file}:{trial.change}"
        answer = {
            "name": name, "verdict": trial.verdict, "seconds": round(trial.seconds, 1), "tried": len(trial.tests), "tests": counts[name],
            "change": asdict(trial.change), "file": trial.file, "log": trial.by,
        }  # fmt: skip
        with results.open("a", encoding="utf-8") as out:
            print(json.dumps(answer), file=out)
        print(f"{trial.verdict:9} {trial.seconds:6.1f} s  {name}", flush=True)

    pid = os.fork() if trials else 0
    if pid:
        os.waitpid(pid, 0)
    elif trials:
        try:
            sys.path[:0] = [str((root / options.source).parent), str(root / options.tests)]
            os.environ.update(_ENVIRONMENT_OF_FORKS)
            os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
            os.chdir(root)
            plugin = InProcess(trials, root / options.source, options.jobs, tell, end)
            files = sorted({test.partition("::")[0] for trial in trials for test in trial.tests})
            pytest.main([*options_of_pytest(), "-s", *files], plugins=[plugin])
        finally:
            os._exit(0)


def _try_all(root: Path, mutants: Sequence[Mutant], record: Record, results: Path, options: argparse.Namespace) -> None:
    done = set(_read(results))
    waiting = [m for m in mutants if _name(m) not in done]
    if not waiting:
        return
    places = [Place(root, options.source, options.tests) for _ in range(min(options.jobs, len(waiting)))]
    end = time.monotonic() + 60 * options.until if options.until else float("inf")
    try:
        _control(places[0], waiting, record)
        with results.open("a", encoding="utf-8") as out:
            jobs = [_job(place, root / options.source, waiting, record, options, end) for place in places]
            while jobs:
                for job in list(jobs):
                    answer = next(job, "end")
                    if answer == "end":
                        jobs.remove(job)
                    elif answer is not None:
                        print(json.dumps(answer), file=out, flush=True)
                        print(f"{answer['verdict']:9} {answer['seconds']:6.1f} s  {answer['name']}", flush=True)
                time.sleep(0.05)
    finally:
        for place in places:
            place.close()


def _control(place: Place, mutants: Sequence[Mutant], record: Record) -> None:
    """The tree as it is passes tests of the mutants: otherwise every mutant would be killed."""
    tests = list(dict.fromkeys(t for m in mutants[:20] for t in m.tests[:3]))
    if tests:
        running = place.start(tests, 60 + 10 * sum(record.seconds.get(t, 0) for t in tests))
        while (answer := running.verdict()) is None:
            time.sleep(0.05)
        if answer[0] != "survived":
            raise SystemExit(
                f"control: the tests fail without a mutant ({answer[0]}):\n{place.log.read_text()[-3000:]}"
            )


def _job(
    place: Place, source: Path, waiting: list[Mutant], record: Record, options: argparse.Namespace, end: float
) -> Iterator[dict[str, Any] | None]:
    """Take mutants one by one; what came of each, and None while one runs."""
    while waiting and time.monotonic() < end:
        mutant = waiting.pop(0)
        text = (source / mutant.file).read_text(encoding="utf-8")
        place.put(mutant.file, mutant.change.apply(text))
        verdict, seconds, tried = "not executed", 0.0, 0
        for part in _parts(mutant.tests, record, options.limit):
            running: Running = place.start(part, 30 + 5 * sum(record.seconds.get(t, 0) for t in part))
            while (answer := running.verdict()) is None:
                yield None
            verdict, seconds, tried = answer[0], seconds + answer[1], tried + len(part)
            if verdict != "survived":
                break
        place.put(mutant.file, text)
        yield {
            "name": _name(mutant), "verdict": verdict, "seconds": round(seconds, 1), "tried": tried,
            "tests": len(mutant.tests), "change": asdict(mutant.change), "file": mutant.file,
            "log": place.log.read_text(errors="replace")[-600:] if verdict == "no answer" else "",
        }  # fmt: skip


def _parts(tests: Sequence[str], record: Record, limit: float) -> Iterator[list[str]]:
    """The quickest few, then as far as the limit goes the others: of each file of tests its quickest, then the next."""
    rank: Counter[str] = Counter()
    turns = []
    for test in tests[_FIRST:]:
        file = test.partition("::")[0]
        rank[file] += 1
        turns.append((rank[file], test))
    chosen, total = [], 0.0
    for test in (*tests[:_FIRST], *(test for _, test in sorted(turns, key=lambda turn: turn[0]))):
        total += record.seconds.get(test, 0.0)
        if chosen and total > limit:
            break
        chosen.append(test)
    for part in (chosen[:_FIRST], chosen[_FIRST:]):
        if part:
            yield part


def _name(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.change}"


def _read(results: Path) -> dict[str, dict[str, Any]]:
    if not results.exists():
        return {}
    return {r["name"]: r for r in map(json.loads, results.read_text(encoding="utf-8").splitlines())}


def _report(mutants: Sequence[Mutant], results: Path, options: argparse.Namespace) -> int:
    """Counts, and every survivor as file:line before -> after, with how many of its tests were run."""
    found = _read(results)
    tried = [found[_name(m)] for m in mutants if _name(m) in found]
    counts = Counter(r["verdict"] for r in tried)
    noticed = counts["killed"] + counts["crashed"] + counts["timed out"]
    print(
        f"\n{len(tried)} of {len(mutants)} mutants tried, seed {options.seed}: "
        + ", ".join(f"{n} {v}" for v, n in counts.most_common())
    )
    if tried:
        print(
            f"{noticed / len(tried):.1%} noticed; {sum(r['seconds'] for r in tried) / len(tried):.1f} CPU seconds each"
        )
    for r in tried:
        if r["verdict"] in ("survived", "not executed", "no answer"):
            print(f"{r['verdict']}: {options.source}/{r['name']}  ({r['tried']} of {r['tests']} tests)")
    return 0 if noticed == len(mutants) else 1


if __name__ == "__main__":
    raise SystemExit(main())
