"""A long random search for differences between openwork and NumPy: formats, values, extents and arguments of all kinds.

    python -m tests.search --count 50000 --seed 1         # says which cases differ, and how many did not
    python -m tests.search --seed 1 --only 1234           # one case, with its operands

Cases run in a process of its own, whose memory is limited to MEMORY bytes more than it starts with and each case to
SECONDS, so that a crash, a hang and memory out of proportion are differences too. A case is drawn from (seed, number)
alone. Every fifth is of huge extents (`search_huge`), compared with a dictionary of coordinates. Kernels are compiled
without passes, which makes it five times quicker; `OPENWORK_OPTIMIZE=1` compiles them as users' kernels.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("OPENWORK_OPTIMIZE", "0")

import search_cases
import search_huge
import search_oracle
from search_oracle import Failed, run

import openwork as ow

__all__ = ["main", "search"]

MEMORY = 1 << 30
SECONDS = 60
BATCH = 500
"""Cases of one process."""
MARK = "#case"
DRAWN = "#drawn"


def search(seed: int, numbers: Sequence[int], limited: bool = True, show: bool = False) -> dict[int, str]:
    """What differs, by number of the case, in this process."""
    if limited:
        _limit()
    found = {}
    for number in numbers:
        if limited:
            print(MARK, number, flush=True)
            signal.alarm(SECONDS)
        huge = number % 5 == 4 and not search_cases.ONLY
        text, made = "", None
        try:
            made = (search_huge if huge else search_cases).case(seed, number)
            text = str(made)
            difference = (search_huge.run if huge else run)(made)
        except Failed as error:
            difference = str(error)
        except TimeoutError:
            difference = f"more than {SECONDS} s"
        except MemoryError as error:
            difference = f"MemoryError: {error}"
        except Exception as error:
            difference = f"while the case is made: {type(error).__name__}: {str(error)[:300]}"
        signal.alarm(0)
        if limited:
            print(DRAWN, "|".join(sorted(set(made.dimensions))) if made is not None else "", flush=True)
        if show:
            print(text, "\n   ", difference or "agrees")
        if difference is not None:
            found[number] = f"{text.partition(chr(10))[0]}: {difference}"
            if limited:
                print("#differs", number, found[number].replace("\n", " ")[:600], flush=True)
    return found


def _limit() -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--time", type=float, default=0, help="stop after so many seconds")
    parser.add_argument("--only", type=int)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--kind", default="", help="cases of one kind: masked, gradients, reduction, ...")
    parser.add_argument("--table", action="store_true", help="print how many cases drew what")
    parser.add_argument("--signs", action="store_true", help="zeros that are only moved keep their signs")
    with search_cases.renamed_level():
        return _run(parser.parse_args(arguments))


def _run(options: argparse.Namespace) -> int:
    search_oracle.SIGNS, search_cases.ONLY = options.signs, options.kind
    if options.only is not None:
        return bool(search(options.seed, [options.only], show=True))
    last = options.first + options.count
    if options.worker:
        ow.set_num_threads(2)
        search(options.seed, range(options.first, last))
        return 0
    more = ["--signs"] * options.signs + (["--kind", options.kind] if options.kind else [])
    return _parent(options.seed, options.first, last, options.time, more, options.table)


def _parent(seed: int, first: int, last: int, seconds: float, more: list[str], table: bool) -> int:
    """Run the cases in processes that are begun again where one ends early."""
    begin, number, bad = time.monotonic(), first, 0
    drawn: Counter[str] = Counter()
    while number < last and not (seconds and time.monotonic() - begin > seconds):
        stop = min(last, number + BATCH)
        command = [sys.executable, __file__, "--worker", "--seed", str(seed)]
        command += ["--first", str(number), "--count", str(stop - number), *more]
        before, number = number, number - 1
        with tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as worker:
                assert worker.stdout is not None
                for line in worker.stdout:
                    word, *rest = line.split(maxsplit=2)
                    if word == MARK:
                        number = int(rest[0])
                    elif word == DRAWN:
                        drawn.update("".join(line.split(maxsplit=1)[1:]).strip().split("|"))
                    elif word == "#differs":
                        bad += 1
                        print(*rest, end="", flush=True)
            if worker.returncode:
                bad += 1
                errors.seek(0)
                print(number, f"process ended with {worker.returncode}: {errors.read()[-300:]}", flush=True)
                if number < before:
                    return 2
        number += 1
    for dimension in sorted(filter(None, drawn)) if table else ():
        print(f"{drawn[dimension]:8} {dimension}")
    print(f"{number - first} cases of seed {seed}, {bad} differ, {time.monotonic() - begin:.0f} s", flush=True)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
