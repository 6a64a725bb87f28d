"""Every number that was tuned: name, value, unit, what it decides, and the measurement or the machine that gave it.

Modules read their numbers from here; docs/tuning.md is this table, made by `python tools/tuning.py`. A row's last words
say where the value is from: what it is on a machine, what was measured, or the commit that set it.
`benchmarks/tuning.py` times other values of some.
"""

from __future__ import annotations

from typing import TypeVar

from .classes import frozen

__all__ = ["TABLE", "Tuned"]

N = TypeVar("N", int, float)


@frozen(slots=False)
class Tuned:
    """A row of the table: what the number is of, what it decides, and what gave it."""

    value: float
    unit: str
    meaning: str
    origin: str


_ROWS: list[Tuned] = []


def _tuned(value: N, unit: str, meaning: str, origin: str) -> N:
    _ROWS.append(Tuned(value, unit, meaning, origin))
    return value


MERGE_CASES_TOLD_APART = _tuned(
    4, "operands", "up to which each set of those present has code of its own; of more, presence is a value",
    "code grows with the sets of operands; set with 9f09048",
)  # fmt: skip
FUSED_OPERATIONS = _tuned(
    16, "operations", "of a fused kernel, at most; of longer expressions parts are computed before",
    "100 operations of 20 matrices of 3000 x 3000, density 0.003: by 4 34 ms, by 8 20, by 16 11, by 32 24; of 1 to 6 "
    "matrices 8 to 32 are alike; one kernel of 32 with 10 operands compiles in 5.4 s, of 16 in 1.4",
)  # fmt: skip
FUSED_OPERANDS = _tuned(
    10, "operands", "of a fused kernel, at most",
    "100 operations of 20 such matrices: by 4 22 ms, by 6 16, by 10 11",
)  # fmt: skip
ASSUMED_DENSITY = _tuned(
    0.01, "of the elements", "that sparse operands of lazy expressions are taken to store",
    "plans follow from types alone; it decides among results of different shapes, and sums or products",
)  # fmt: skip
LOOP_DIMENSIONS = _tuned(
    16, "dimensions", "of a tensor, above which those of extent 1 are left out of loops",
    "a kernel has a loop for each; LLVM takes 0.5 s for 16, 14 s for 24 of a dense tensor, 57 s for 64",
)  # fmt: skip
UNION_LANES = _tuned(
    16, "coordinates", "compared at a time by a union in vectors",
    "an AVX-512 register of int32; sums of two 1.4 to 1.9 times as fast: 19faaa9",
)  # fmt: skip
UNION_GROUP = _tuned(8, "elements", "put in their places at a time", "an AVX-512 register of float64")
MERGE_NEST_LIMIT = _tuned(
    40, "loops", "of a nest in which cases are told apart at every level, about",
    "chains over many levels compile in a fraction of a second: 6617003",
)  # fmt: skip
INTERSECTION_LANES = _tuned(
    8, "coordinates", "of each row compared all with all by an intersection in vectors",
    "an AVX2 register of int32",
)  # fmt: skip
RADIX_DIGIT = _tuned(
    11, "bits", "of a key per pass of the radix sort",
    "2048 counters of 8 bytes are half of a first cache of 32 KiB",
)  # fmt: skip
DIAGONAL_TILE = _tuned(
    4096, "coordinates", "of the last dimension for which diagonals are walked together",
    "32 KiB of float64; set with 44a9c61",
)  # fmt: skip
SCATTER_PREFETCH_DISTANCE = _tuned(
    32, "elements", "between a prefetch and the write that it is for",
    "set with ab68aa0",
)  # fmt: skip
SCATTER_PROBE_LINES = _tuned(
    1024, "lines", "lately used, which the probe of a histogram remembers",
    "64 KiB of cache lines; set with ec9fd94",
)  # fmt: skip
SCATTER_PROBE_LINE_BITS = _tuned(
    4, "bits", "2 ** so many parents count as one line",
    "16 counters of int32 are a cache line of 64 bytes",
)  # fmt: skip
VECTOR_BYTES = _tuned(64, "bytes", "of a vector register, at most", "an AVX-512 register")
MAX_ACCUMULATORS = _tuned(
    16, "registers", "that hold the sums of a register tile",
    "half of the 32 registers of AVX-512",
)  # fmt: skip
ROWS_SIDE_BY_SIDE = _tuned(
    4, "rows", "of n:m formats that are walked side by side, at most, in register tiles that fit",
    "4096 x 4096 of 2:4, float32, batch 32: 12 ms by one, 10 by two, 9 by four; batch 1: 5.5, 4.2, 3.8, by eight 4.2; "
    "of n:m whose coordinates are not packed, 3:4 say",
)  # fmt: skip
PACKED_TOGETHER = _tuned(
    16, "elements", "of an n:m row whose coordinates are read at once, next to a register tile",
    "2 bits each are one word of 32",
)  # fmt: skip
PACKED_ROWS = _tuned(
    8, "rows", "of n:m formats whose coordinates are packed that are walked side by side without a register tile",
    "4096 x 4096 of 2:4, float32, batch 1: 2.75 ms by four, 2.6 by eight",
)  # fmt: skip
PACKED_PANEL = _tuned(
    128, "rows", "of n:m formats that go through a block of packed coordinates, before the next block",
    "4096 x 4096 of 2:4, float32, batch 32, in C: 8.3 ms by 16, 7.7 by 64, 7.6 by 128, 7.4 by 256; "
    "batch 128: 29, 24.4, 24.3, 24.8",
)  # fmt: skip
PACKED_BLOCK = _tuned(
    32 << 10, "bytes", "of a dense operand's register tiles that such a block reads",
    "the same, batch 32: 9.8 ms without blocks, 8.8 by 32 KiB, 9.3 by 24; batch 128: 52, 25; 512: 778, 155",
)  # fmt: skip
PACKED_REREAD = _tuned(
    64, "reads", "of an element of half precision, on average, from which on products of n:m formats convert it once",
    "4096 x 4096 of 2:4, batch 32: bfloat16 12.7 ms, converted 9.2, float16 13.9 and 8.5; batch 128: 47 and 26, "
    "44 and 24; 64 x 64 is 6 us slower; formats without blocks gain nothing, as memory bounds their reads",
)  # fmt: skip
PACKED_ELEMENTS = _tuned(
    256, "elements", "of an n:m format from which on products read packed coordinates",
    "4096 x 4096 of 2:4: packing takes 2.1 ms of bytes and 5 of int32, a product with a vector 2.5",
)  # fmt: skip
PACKED_PREFETCH = _tuned(
    16, "reads", "of packed coordinates, ahead of which the values of an n:m row are prefetched",
    "4096 x 4096 of 2:4, float32, batch 1: 2.7 ms without, 2.4 by 8, 2.3 by 16 and 32; dense 4.7",
)  # fmt: skip
PACKED_WIDE = _tuned(
    512, "bytes", "of a dense operand's rows from which on products of n:m formats go by slices of as many",
    "4096 x 4096 of 2:4, float32, as a part of dense torch's time: batch 256 0.87 at once, 0.82 by slices; "
    "512 1.39, 0.86; 1024 2.36, 0.93",
)  # fmt: skip
PACKED_BYTES_AHEAD = _tuned(
    256, "bytes", "of a row's packed coordinates in the next block, at most, that are prefetched",
    "4096 x 4096 of 2:4, float32, in C: batch 32 8.1 ms without, 7.4 with; batch 128 22.2, 21.1",
)  # fmt: skip
PERMUTED_VECTORS = _tuned(
    8, "vectors", "at most that the lanes of a vector of n:m elements are taken from",
    "1:8 of float32: seven instructions for 16 elements",
)  # fmt: skip
MAX_CONSTANT_EXTENT = _tuned(
    256, "elements", "extents up to which a vector loop is compiled for the extent itself",
    "bounds the number of kernels; set with 47cd820",
)  # fmt: skip
WIDTH_STEP = _tuned(
    16, "columns", "that widths are multiples of which share kernels; up to it each has its own",
    "a vector register of float32",
)  # fmt: skip
WIDTHS_OWN = _tuned(
    8, "widths", "of a product that have kernels of their own at once, and four times as many that came back",
    "bounds the number of kernels",
)  # fmt: skip
WIDTH_SEEN = _tuned(3, "calls", "of one width after which it has a kernel of its own", "bounds the number of kernels")
MAX_UNROLL = _tuned(64, "elements", "of a block that is unrolled", "a block of 8 x 8; set with 47cd820")
SHORT_ROW_LOOKAHEAD = _tuned(
    3, "rows", "whose ends are read before they are reached",
    "tensor times vector in half the time: d275fe7",
)  # fmt: skip
NONFINITE_OPERANDS = _tuned(
    6, "operands", "beyond which it is taken for granted that infinities matter",
    "64 sets of operands",
)  # fmt: skip
SPGEMM_INSERTION_SORT = _tuned(
    24, "products", "of a row up to which they are sorted by insertion, else by radix",
    "24 and 64 alike, 8 half as slow again for 9 products (swept)",
)  # fmt: skip
SPGEMM_WINDOW_PRODUCTS = _tuned(
    16, "products", "of a row up to which nobody asks how far its columns are apart",
    "a band of three diagonals (9 products) took 1.2 times as long with 8; 25 products half as long as sorted",
)  # fmt: skip
SPGEMM_RUN = _tuned(
    8, "columns", "of a row of B that follow one another and are added at once", "blocks of 16 x 16: half of the time"
)
SPGEMM_PREFETCH_DISTANCE = _tuned(
    8, "elements", "of A ahead of which the rows of B are prefetched",
    "1 and 8 alike in the cache, 32 slower for rows of 144 products (swept)",
)  # fmt: skip
KERNELS_EVICTED = _tuned(
    4, "", "of the kernels in memory one in so many goes at a time",
    "tables of plans are emptied each time",
)  # fmt: skip
LLVM_NO_UNROLL = _tuned(
    24_000, "characters", "of LLVM IR from which on loops are not unrolled",
    "SpGEMM and chains of four operands compile in two thirds of the time: 986de4e",
)  # fmt: skip
LLVM_LINEAR = _tuned(
    150_000, "characters", "of LLVM IR from which on only passes in linear time are run",
    "all passes take minutes for a thousand loops",
)  # fmt: skip
POOL_WAVE = _tuned(
    4, "ranges", "for each thread between which control returns to Python",
    "signals are answered between",
)  # fmt: skip
POOL_SPINS = _tuned(1000, "turns", "that a waiting thread looks before it sleeps", "set with 7793878")
SHORT_CALL = _tuned(
    1 << 14, "elements", "up to which a prepared launch keeps the interpreter's lock, and takes 0.2 us rather than 1",
    "A @ x of 50 x 50: 4.1 -> 2.6 us; at the limit a launch takes some 10 us",
)  # fmt: skip
INTERRUPTIBLE_WORK = _tuned(
    1 << 20, "elements", "from which on work is handed to a helper, so that the main thread answers signals",
    "less is at most some 0.2 s of work",
)  # fmt: skip
LOCKED_BLOCK = _tuned(
    1 << 20, "elements", "that NumPy's repeat and add.at handle at once, as they hold the interpreter's lock",
    "10 to 40 ms; 10 million elements at once took 0.2 to 0.4 s, for which no signal was answered",
)  # fmt: skip
BLOCK_BYTES = _tuned(
    1 << 18, "bytes", "from which on a buffer is a block of pages that may be used again",
    "set with 0958ce1",
)  # fmt: skip
BLOCK_ROUND = _tuned(
    1 << 16, "bytes", "to which the size of such a block is rounded up",
    "16 pages: blocks of about one size serve each other",
)  # fmt: skip
SLICE_PARALLEL = _tuned(
    1 << 17, "elements", "from which on a slice of the outermost dimension is copied by all threads",
    "set with 9440e6e",
)  # fmt: skip
RANGE_VALUES = _tuned(
    1 << 21, "values", "of a range of the outermost dimension, for what takes a temporary buffer for each element",
    "16 MB of float64, which stay in the cache of the last level",
)  # fmt: skip
VISITED_ELEMENTS = _tuned(
    1 << 37, "elements", "up to which a product visits each, stored or not, where its fill value hides digits",
    "about two minutes of dense products in memory",
)  # fmt: skip
CHECK_IN_NUMPY = _tuned(
    4096, "coordinates", "up to which NumPy checks invariants more quickly than a kernel is fetched",
    "set with 647b543",
)  # fmt: skip
CHECK_PATIENCE = _tuned(
    16, "tensors", "of one structure, small ones, after which its checking kernel is fetched all the same",
    "set with 8051991",
)  # fmt: skip
SPLIT_WAVE = _tuned(
    8, "ranges", "and pieces for each thread between which control returns to Python",
    "signals are answered between",
)  # fmt: skip
SPLIT_ROWS = _tuned(
    16, "rows", "that are cut at most; where more are long they keep all threads busy as they are",
    "set with a39e9f1",
)  # fmt: skip
ALIGNED_REUSE = _tuned(
    24, "elements", "for each row of a dense operand from which on a copy of it that begins at a cache line pays",
    "SpMM a quarter faster: a2dbd70",
)  # fmt: skip
DOT_IN_NUMPY = _tuned(
    4096, "elements", "up to which the array library's dot product is quicker to call than a kernel",
    "set with fa3cf50",
)  # fmt: skip
DOT_PARALLEL = _tuned(1 << 17, "elements", "from which on every thread squares a part", "set with fa3cf50")
MERGE_PARALLEL = _tuned(1 << 17, "elements", "below which one thread merges all", "set with 3a445bb")
MERGE_RANGES = _tuned(
    2, "ranges", "for each thread where elements are written to where they belong",
    "set with 3a445bb",
)  # fmt: skip
MERGE_RANGE = _tuned(
    1 << 14, "elements", "of a range whose result is put in its place later",
    "as much as stays in the cache: 080f291",
)  # fmt: skip
MERGE_MOST_RANGES = _tuned(1 << 13, "ranges", "at most", "set with 080f291")
MERGE_SAMPLES = _tuned(
    8, "places", "for each range at which the work is looked at before cuts are searched for",
    "set with 080f291",
)  # fmt: skip
MERGE_COARSE = _tuned(4, "", "what lies between such places may be one part in so many of a range", "set with 080f291")
FUSED_CONVERSION_COST = _tuned(
    20.0, "walks", "what converting an element costs, where walking it costs 1",
    "set with 828dc16",
)  # fmt: skip
GALLOP_RATIO = _tuned(
    16, "", "how many times as many elements the long operand must have for the short one to be walked alone",
    "rows of 20 and of 20 / n: walking the short one takes 2.2 of the time for n = 8, 1 for 32, 0.7 for 128 (swept)",
)  # fmt: skip
GALLOP_SMALL = _tuned(
    2048, "elements", "and rows up to which one kernel serves all sizes",
    "another kernel would have to be compiled: f2d402e",
)  # fmt: skip
BUCKETS_FEW = _tuned(1 << 12, "buckets", "that are always few enough", "16 KiB of counters, in the first cache")
BUCKETS_PER_ELEMENT = _tuned(4, "buckets", "per element that are few enough", "set with e9885e2")
SCATTER_LARGE = _tuned(1 << 20, "elements", "from which on the way of scattering is looked at", "set with ec9fd94")
SCATTER_PREFETCHED = _tuned(
    1 << 12, "parents", "from which on places of scattering are prefetched",
    "fewer keep their places in the first cache",
)  # fmt: skip
SCATTER_PARENTS = _tuned(1 << 16, "parents", "above which a scatter may miss the caches", "a cache line each is 4 MiB")
SCATTER_PROBE = _tuned(1 << 16, "elements", "that the probe looks at", "a sixteenth of the least that is probed")
SCATTER_NEIGHBOURHOODS = _tuned(
    256, "groups", "of parents at least in a scatter of two passes; twice as many at most",
    "set with ec9fd94",
)  # fmt: skip
GROUP_EXTENT = _tuned(
    1 << 24, "coordinates", "above which, and above the number of elements, a workspace is too wide",
    "64 MiB of int32",
)  # fmt: skip
CONVERSION_PARALLEL = _tuned(1 << 18, "elements", "from which on a conversion uses several threads", "set with 162889d")
SUM_ROW = _tuned(
    1024, "elements", "of a row of a full sum: few for small rounding errors, enough for few rows",
    "set with 00dc6df",
)  # fmt: skip
SUM_IN_LIBRARY = _tuned(
    1 << 15, "elements", "below which the array library sums",
    "on one thread, so that sums are the same on any number: 3 x 10^4 of f64 take NumPy 7 us, torch 4, kernels 9",
)  # fmt: skip
SPGEMM_PARALLEL = _tuned(1 << 16, "products", "below which one thread does it all", "set with a22bd41")
SPGEMM_WAVE = _tuned(1 << 26, "products", "between which control returns to Python", "signals are answered between")
SPGEMM_ONE_PASS = _tuned(
    1 << 30, "slots", "up to which the bounds are taken as they are, without counting",
    "memory that is not written to is not used",
)  # fmt: skip
SPGEMM_CACHE = _tuned(
    1 << 20, "bytes", "of a dense accumulator, of a row or of a window of one, that stays in the cache",
    "a second cache of 1 MiB",
)  # fmt: skip
SPGEMM_SORTED = _tuned(
    64, "products", "of a row up to which they are sorted where a dense accumulator stays in the cache",
    "set with a22bd41",
)  # fmt: skip
SPGEMM_SORTED_WIDE = _tuned(
    512, "products", "of a row up to which they are sorted where it does not",
    "set with a22bd41",
)  # fmt: skip
SPGEMM_SMALL_ROWS = _tuned(1 << 12, "rows", "up to which one thread counts what is counted", "with the products")
SPGEMM_SMALL_PRODUCTS = _tuned(
    1 << 17, "products", "up to which one thread multiplies, by two launches",
    "A @ A of new matrices: 2 x 10^4 products 640 -> 250 us, 8 x 10^4 1,320 -> 650, 2.6 x 10^5 2.7 -> 2.2 ms",
)  # fmt: skip
STRUCTURES_COMPARED = _tuned(
    1 << 14, "elements", "of two operands from which on their coordinates are compared before they are merged",
    "A + B of equal rows: 10^4 elements 43 us merged, 70 compared; 10^5 292 and 150; A * B 111 and 73, 602 and 145",
)  # fmt: skip
STRUCTURES_COMPARED_BLOCK = _tuned(
    1 << 15, "elements", "of coordinates that are compared at a time", "128 KiB, and what says where they agree 32"
)
SPGEMM_SMALL_WINDOW = _tuned(
    1 << 12, "columns", "of a dense window of a small product", "32 KiB of doubles, which malloc has at hand"
)
EINSUM_DENSE_RATE = _tuned(
    8, "products", "of dense operands take the time of one of stored elements",
    "BLAS on one core of an AVX-512 machine, 20 to 60 times the rate of a walk, of which small products reach a part",
)  # fmt: skip
EINSUM_BLAS_WORK = _tuned(
    32768, "products", "of dense operands, above which NumPy's einsum is asked for BLAS",
    "finding that out takes 20 to 40 us, 32,768 products without BLAS as long",
)  # fmt: skip
EINSUM_OPTIMAL = _tuned(
    8, "operands", "up to which every order of contraction is looked at",
    "6561 pairs of sets; set with 512b76f",
)  # fmt: skip
MATRICIZE_SPARE = _tuned(
    1 << 12, "rows", "beyond four times the elements up to which a position is kept for every row",
    "32 KiB of int64",
)  # fmt: skip
OVERLAP_COST = _tuned(
    4, "multiplications", "that one more element of a private accumulator costs: cleared, written, read again",
    "cleared, written and read again: a39e9f1",
)  # fmt: skip
OVERLAP_PARTS = _tuned(
    16, "parts", "where they cost less than a hundredth of the work, however many threads there are",
    "results are the same for any number of threads up to so many",
)  # fmt: skip
OVERLAP_WORK = _tuned(
    1 << 21, "multiplications", "below which there are never more parts than threads",
    "set with a39e9f1",
)  # fmt: skip
OVERLAP_LINES = _tuned(256, "bytes", "between parts, or a multiple", "four cache lines: two threads never write to one")
ROW_PIECES = _tuned(16, "pieces", "of a row that is cut, however many threads there are", "set with a39e9f1")
LONG_ROW = _tuned(1 << 21, "elements", "from which on a row is cut whatever the number of threads", "set with a39e9f1")
ROW_SHARE = _tuned(0.6, "", "the part of a thread's share of the work from which on a row is cut", "set with a39e9f1")
OVERLAP_BLOCK = _tuned(
    2048, "elements", "of parts that are combined at a time",
    "16 KiB of float64, half of a first cache",
)  # fmt: skip
FLAGS_IN_PYTHON = _tuned(64, "elements", "that Python adds up more quickly than NumPy is called", "set with the code")
GATHERED_ROWS = _tuned(
    1 << 20, "bytes", "of a gathered matrix from which prefetching its rows pays",
    "a second cache of 1 MiB: 744a50d",
)  # fmt: skip
TAKE_AHEAD = _tuned(
    8,
    "rows",
    "ahead of which what is copied of rows in any order is prefetched",
    "half of 112,225 rows of 9: a fifth less",
)
TAKE_RANKED = _tuned(
    8, "elements", "of a row up to which each is put to its rank among them", "columns of rows of 4 to 5: a fifth less"
)
GATHERED_VECTOR = _tuned(
    6 << 20, "bytes", "of a gathered vector from which prefetching its elements pays",
    "set with 744a50d",
)  # fmt: skip
PRODUCT_PARALLEL = _tuned(1 << 16, "multiplications", "below which one thread does it all", "set with 47cd820")
PRODUCT_WAVE = _tuned(
    1 << 25, "multiplications", "of a thread between which control returns to Python",
    "signals are answered between",
)  # fmt: skip
LONG_FIBRE = _tuned(
    13, "elements", "of a fibre from which on taking them in vector lanes pays",
    "SpMV on long rows a quarter faster: 9bb8c8a, ca8f667",
)  # fmt: skip
FIBRES_SAMPLED = _tuned(64, "fibres", "that are looked at together", "set with ce8c57a")
MEDIUM_FIBRE = _tuned(
    5, "elements", "of a fibre from which on it pays where lanes are masked, on CPUs that gather fast",
    "SpMV of 10 elements in a row, Emerald Rapids: 1.60 -> 0.93 ms (10^6 elements), 123 -> 71 us (10^5)",
)  # fmt: skip
LANES_COST = _tuned(4, "elements", "of long fibres that pay for lanes in a short one", "set with ce8c57a")
SHORT_FIBRE = _tuned(
    3, "elements", "of a fibre, on average, up to which one loop for all fibres pays, if they are of many lengths",
    "tensor times vector in half the time: d275fe7",
)  # fmt: skip
SHORT_WORK = _tuned(1 << 14, "elements", "of all fibres from which on that is looked at", "set with d275fe7")
FIBRE_WINDOW = _tuned(17, "fibres", "side by side that are looked at", "set with d275fe7")
FIBRE_WINDOWS = _tuned(64, "windows", "that are looked at", "set with d275fe7")
FIBRES_ALIKE = _tuned(
    0.6, "", "the part of them that may be as long as the one before",
    "a branch that is right so often is predicted: d275fe7",
)  # fmt: skip
GRID_SPLIT = _tuned(
    32, "elements", "of an ordered list of coordinates that an item of a device's grid takes",
    "not measured: nobody ran it on a GPU; few enough for a million items at 3e7 elements",
)  # fmt: skip
GRID_SHARED_ROW = _tuned(
    24, "elements", "of a row on average from which on the items of a subgroup share it, on a device",
    "not measured on a GPU: most of 32 items have an element then",
)  # fmt: skip
GRID_LONG_ROW = _tuned(
    512, "elements", "of a row on average from which on the items of a group share it, on a device",
    "not measured on a GPU: four for each of 128 items",
)  # fmt: skip
RESULT_ROOM = _tuned(
    1 << 16, "positions", "that a result may always have, however few its elements",
    "512 KiB of float64",
)  # fmt: skip
EINSUM_DENSE_ROOM = _tuned(
    1 << 16, "elements", "of a result that is formed as a dense array whatever its format",
    "512 KiB of float64",
)  # fmt: skip
EINSUM_DENSE_SHARE = _tuned(
    16, "elements", "of a result for each one found, of which the same holds",
    "set with 3c03634",
)  # fmt: skip
MERGE_OPERANDS = _tuned(
    10, "operands", "of one kernel; a larger expression is cut, with temporaries between",
    "set with 9f09048",
)  # fmt: skip
SIEVE_RATIO = _tuned(
    8, "", "a part that is expected to have so many times fewer elements than its operands is computed first",
    "set with 0a75501",
)  # fmt: skip
RECORDED_MERGE = _tuned(
    1 << 20, "elements", "of every operand and result up to which the places of a recorded merge are kept",
    "A + B of 10^5 elements: 14 ms to find them, 0.5 to use them; 16 bytes for each element",
)  # fmt: skip
SLICE_SMALL = _tuned(
    1 << 16, "values", "of a tensor up to which one thread takes rows from it",
    "some microseconds of work",
)  # fmt: skip
SLICE_SMALL_ROWS = _tuned(1 << 10, "rows", "that are taken, up to which the same holds", "some microseconds of work")
MOVES_LITTLE = _tuned(
    1 << 15, "elements", "of a selection, a conversion or a join, up to which it is one launch of one thread",
    "set with the code",
)  # fmt: skip
MOVES_KEPT = _tuned(
    1 << 13, "values", "of a tensor up to which a structure keeps where they are reduced or multiplied to",
    "64 kept ones take some megabytes",
)  # fmt: skip
MOVES_LISTED = _tuned(16, "entries", "of a list or an array that is part of a statement", "set with the code")
MOVES_DIGIT = _tuned(11, "bits", "that a pass of the radix sort of little data takes at most", "16 KiB of counters")
FILLS_PASSED = _tuned(
    3, "operands", "up to which fill values are arguments of a kernel, as every set of them is compared",
    "8 sets of operands",
)  # fmt: skip
RESULT_ALLOCATION = _tuned(1 << 15, "bytes", "of a result whose buffers share one allocation", "set with the code")
LEVEL_SET_WORK = _tuned(
    8192, "elements", "of a level set of a triangular system from which its rows are solved in parallel",
    "some 10 microseconds of work to a start of 4; of 2,048, 8,192 and 32,768 on shuffled and banded meshes",
)  # fmt: skip
SELECTION_SORTED = _tuned(
    16, "elements", "of a row's part that are put in order one by one instead of being partitioned",
    "of 6, 10, 16 and 24 on rows of 50 and 200: within a tenth for the first k, the least for all",
)  # fmt: skip
SELECTION_CANDIDATES = _tuned(
    64, "elements", "of a row kept besides twice the k that are selected",
    "as many as are compared at once: rows of no more are put in order as a whole",
)  # fmt: skip
SELECTION_INSERTED = _tuned(
    16, "elements", "up to which the first of a row are kept in order by insertion", "10 of 50: half of the time"
)
SELECTION_FEW = _tuned(
    8, "elements", "asked for of a short row, from which on all of it is put in order by counting what is less",
    "of 50: 4 by insertion take 11 ms, by counting 14; 10 take 17 and 14",
)  # fmt: skip
SELECTION_LANES = _tuned(
    64, "elements", "of a row that are compared at once with the ends of a range, a bit for each", "set with the code"
)
SELECTION_BLOCK = _tuned(
    1 << 10,
    "elements",
    "of a row that are counted and then compared with the ends of a range",
    "8 KB: they are in the first cache",
)
SELECTION_TAKEN = _tuned(
    4, "elements", "inside a range that are taken of those compared at once, without a branch", "three is usual"
)
SELECTION_SAMPLED = _tuned(
    1024, "elements", "of a row from which ranks are looked for near a sample's", "set with the code"
)
SELECTION_SAMPLE = _tuned(32, "elements", "of that sample", "put in order one by one in a microsecond")
SELECTION_LARGE_SAMPLE = _tuned(
    128, "elements", "of that sample where a row has four times as many", "rows of 12,500: less time than with 32 alone"
)
SELECTION_ASIDE = _tuned(
    1.1, "standard deviations", "of a rank's place in that sample, and one place, within which it is looked for first",
    "a tenth of all ranks lie further, and cost another pass",
)  # fmt: skip
SELECTION_PARTS = _tuned(8, "ranges", "of rows for each thread of a selection", "rows differ in length")
_NAMES = [name for name, value in vars().items() if name.isupper() and isinstance(value, int | float)]
TABLE: dict[str, Tuned] = dict(zip(_NAMES, _ROWS, strict=True))
"""The rows by name."""
