"""The malformed files: each loads as its format defines, or the error names file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

import openwork.io as io
from openwork.errors import FileFormatError

LOADS: dict[str, tuple[str, int]] = {
    "cholmod_tcov/0": ("0x0", 0),
    "cholmod_tcov/1e99": ("2x2", 2),
    "cholmod_tcov/2.tri": ("2x2", 4),
    "cholmod_tcov/2diag.tri": ("2x2", 2),
    "cholmod_tcov/2lo.tri": ("2x2", 4),
    "cholmod_tcov/2up.tri": ("2x2", 4),
    "cholmod_tcov/3_2": ("3x2", 6),
    "cholmod_tcov/3by0.mtx": ("3x0", 0),
    "cholmod_tcov/afiro": ("27x51", 102),
    "cholmod_tcov/diag": ("20x20", 20),
    "cholmod_tcov/fullrsa.mtx": ("2x2", 4),
    "cholmod_tcov/galenet": ("8x14", 22),
    "cholmod_tcov/ibm32": ("32x32", 126),
    "cholmod_tcov/int_overflow.tri": ("9223372036854775806x9223372036854775806", 1),
    "cholmod_tcov/mega.tri": ("4000000000x4000000000", 1),
    "cholmod_tcov/r5lo": ("5x5", 15),
    "cholmod_tcov/r5lo2": ("5x5", 15),
    "cholmod_tcov/rza.mtx": ("3x3", 6),
    "cholmod_tcov/write.tri": ("7x7", 7),
    "fmm/eye3_str.mtx": ("3x3", 3),
    "fmm/overflow/overflow_value_gt_complex128.mtx": ("3x3", 3),
    "fmm/overflow/overflow_value_gt_float128.mtx": ("3x3", 1),
    "fmm/overflow/overflow_value_gt_float64.mtx": ("3x3", 1),
    "fmm/overflow/overflow_value_gt_int32.mtx": ("3x3", 1),
    "fmm/permissive/permissive_banner_leading_spaces_eye3.mtx": ("3x3", 3),
    "fmm/permissive/permissive_banner_one_percent_eye3.mtx": ("3x3", 3),
    "fmm/permissive/permissive_lines_indented.mtx": ("1x1", 1),
    "fmm/permissive/windows_lineendings_nist_ex1_more_freeformat.mtx": ("5x5", 8),
    "fmm/py/long_double/longcomplex_array.mtx": ("1x1", 1),
    "fmm/py/long_double/longcomplex_coordinate.mtx": ("1x1", 1),
    "fmm/py/long_double/longdouble_array.mtx": ("1x1", 1),
    "fmm/py/long_double/longdouble_coordinate.mtx": ("1x1", 1),
    "fmm/py/misc/windows_newlines.mtx": ("3x3", 3),
    "fmm/py/scipy_crashes/dim_over_32_bit.mtx": ("1099511627776x1099511627776", 3),
    "fmm/py/scipy_crashes/vector_array_real_general.mtx": ("4", 4),
    "fmm/py/scipy_crashes/vector_coordinate_real_general.mtx": ("4", 3),
    "fmm/symmetry/coordinate_pattern_symmetric_row_general_dup.mtx": ("3x3", 4),
    "fmm/symmetry/coordinate_symmetric_row_general_dup.mtx": ("3x3", 6),
    "fmm/vector_coordinate_complex_dupes.mtx": ("4", 4),
    "fmm/vector_coordinate_dupes.mtx": ("4", 4),
    "lagraph/comments_cover.mtx": ("7x7", 12),
    "lagraph/comments_full.mtx": ("3x3", 9),
    "lagraph/comments_west0067.mtx": ("67x67", 295),
    "lagraph/empty.mtx": ("3x4", 0),
    "lagraph/mangled5.mtx": ("2x2", 1),
    "lagraph/mangled_int32.mtx": ("7x7", 12),
    "lagraph/mangled_int8.mtx": ("7x7", 12),
    "lagraph/mangled_uint16.mtx": ("7x7", 12),
    "lagraph/mangled_uint32.mtx": ("7x7", 12),
    "lagraph/matrix_uint64.mtx": ("7x7", 12),
    "lagraph/west0067_jumbled.mtx": ("67x67", 294),
    "networkit/comments.edgelist": ("11x11", 20),
    "rbio/5.rb": ("4x4", 16),
    "rbio/6.rb": ("4x4", 16),
    "rbio/m4b.rb": ("4x4", 16),
    "taco/2tensor.mtx": ("32x32", 3),
    "tns/KG_JF17K_4_ids_1based.tns.gz": ("23x6536x6519x6523", 9509),
}

REFUSED: dict[str, tuple[int, str]] = {
    "cholmod/empty.tri": (1, "got 0 fields"),
    "cholmod/mangle1.mtx": (1, "unknown object 'junk'"),
    "cholmod/mangle2.mtx": (1, "unknown layout 'junk'"),
    "cholmod/mangle3.mtx": (1, "unknown field 'junk'"),
    "cholmod/mangle5.tri": (1, "cannot be negative, got -3"),
    "cholmod/mangle6.tri": (2, "got 1 fields"),
    "cholmod/mangle7.tri": (2, "index 999 in column 1"),
    "cholmod_tcov/fullcrud.mtx": (7, "ends after 3 of 4 entries"),
    "cholmod_tcov/fullcrud1.mtx": (1, "expected the banner"),
    "cholmod_tcov/fullcrud2.mtx": (3, "expected a number, got 'garbled'"),
    "cholmod_tcov/one": (2, "got 3 fields"),
    "cholmod_tcov/tri": (2, "got 0 fields"),
    "fmm/invalid/invalid_bad_banner.mtx": (1, "expected the banner"),
    "fmm/invalid/invalid_bad_field.mtx": (1, "unknown field '____'"),
    "fmm/invalid/invalid_bad_format.mtx": (1, "unknown layout '____'"),
    "fmm/invalid/invalid_bad_object.mtx": (1, "unknown object '___'"),
    "fmm/invalid/invalid_bad_symmetry.mtx": (1, "unknown symmetry '___'"),
    "fmm/invalid/invalid_bad_value.mtx": (3, "got 'not_a_double'"),
    "fmm/invalid/invalid_bad_value_2.mtx": (5, "got 'foooooo'"),
    "fmm/invalid/invalid_bad_value_3.mtx": (4, "got 'ffsafdsafas'"),
    "fmm/invalid/invalid_dimensions_out_of_range_1.mtx": (3, "cannot be negative"),
    "fmm/invalid/invalid_dimensions_out_of_range_2.mtx": (3, "cannot be negative"),
    "fmm/invalid/invalid_indices_out_of_range_1.mtx": (5, "index 5000 in column 1 is outside 1..7"),
    "fmm/invalid/invalid_indices_out_of_range_2.mtx": (6, "index 2000 in column 2 is outside 1..7"),
    "fmm/invalid/invalid_indices_out_of_range_3.mtx": (5, "index 0 in column 1 is outside 1..7"),
    "fmm/invalid/invalid_symmetry_vector.mtx": (2, "must be square"),
    "fmm/invalid/invalid_truncated_header_1.mtx": (3, "ends before the line with the sizes"),
    "fmm/invalid/invalid_truncated_header_2.mtx": (1, "the banner ends before its symmetry"),
    "fmm/invalid/invalid_truncated_line_1.mtx": (5, "expected 3 fields per line (2 indices, a value), got 2"),
    "fmm/invalid/invalid_truncated_lines.mtx": (4, "ends after 2 of 12 entries"),
    "fmm/invalid/invalid_vector_array_too_long.mtx": (7, "more entries than the 4"),
    "fmm/invalid/invalid_vector_coord_too_long.mtx": (6, "more entries than the 3"),
    "fmm/invalid/invalid_vector_index_out_of_range_1.mtx": (4, "index 0 in column 1 is outside 1..4"),
    "fmm/invalid/invalid_vector_index_out_of_range_2.mtx": (4, "index 200 in column 1 is outside 1..4"),
    "fmm/invalid/invalid_vector_negative_length.mtx": (2, "cannot be negative, got -4"),
    "fmm/py/matrix_coordinate_complex_hermitian.mtx": (6, "a diagonal element of a Hermitian matrix must be real"),
    "fmm/py/matrix_coordinate_real_skew-symmetric.mtx": (6, "a diagonal element of a skew-symmetric matrix must be 0"),
    "fmm/overflow/overflow_dim_gt_int64.mtx": (2, "does not fit in 64 bits"),
    "lagraph/full_noheader.mtx": (1, "expected the banner"),
    "lagraph/mangled1.mtx": (1, "unknown object 'mangled'"),
    "lagraph/mangled2.mtx": (1, "unknown layout 'mangled'"),
    "lagraph/mangled3.mtx": (1, "unknown field 'mangled'"),
    "lagraph/mangled4.mtx": (1, "unknown symmetry 'mangled'"),
    "lagraph/mangled6.mtx": (5, "got more: '1'"),
    "lagraph/mangled7.mtx": (5, "got 2"),
    "lagraph/mangled8.mtx": (4, "expected the sizes"),
    "lagraph/mangled9.mtx": (4, "must be square, got 3x4"),
    "lagraph/mangled_format.mtx": (1, "an array cannot have the field pattern"),
    "lagraph/matrix_fp32.mtx": (7, "got '-inf'"),
    "lagraph/matrix_fp64.mtx": (7, "got '-inf'"),
    "lagraph/west0067_noheader.mtx": (1, "expected the banner"),
    "mongoose/bad_dimensions.mtx": (4, "ends before the line with the sizes"),
    "mongoose/bad_header.mtx": (1, "unknown symmetry 'bogus'"),
    "rbio/1.rb": (6, "ends after 3 of 5 entries"),
    "rbio/2.rb": (5, "column pointer 1 must be 1, got 42"),
    "rbio/3.rb": (5, "column pointer 3 falls from 42 to 9"),
    "rbio/4.rb": (7, "the file ends"),
    "rbio/7.rb": (6, "row index 9 (entry 9) is outside 1..4"),
    "rbio/8.rb": (8, "ends after 8 of 16 entries"),
    "tns/small4_zeroidx.tns": (2, "index 0 in column 4"),
    "zero_based/a1.mtx": (11, "index 0"),
    "zero_based/a2.mtx": (9, "index 0"),
    "zero_based/a4.mtx": (11, "index 0"),
    "zero_based/az88.mtx": (11, "index 0"),
    "zero_based/c2.mtx": (9, "index 0"),
    "zero_based/r2.mtx": (9, "index 0"),
    "zero_based/row0.mtx": (12, "index 0"),
    "zero_based/tfdp_lesmis.mtx": (3, "index 0"),
    "zero_based/tfdp_netscience.mtx": (3, "index 0"),
    "zero_based/tfdp_sierpinski3d.mtx": (3, "index 0"),
}


@pytest.mark.parametrize("name", LOADS)
def test_loads(data_dir: Path, name: str) -> None:
    t = io.read(data_dir / "tricky" / name)
    assert ("x".join(map(str, t.shape)), t.nse) == LOADS[name]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(data_dir: Path, name: str) -> None:
    line, message = REFUSED[name]
    with pytest.raises(FileFormatError) as caught:
        io.read(data_dir / "tricky" / name)
    first = str(caught.value).splitlines()[0]
    assert f"{name}, line {line}: " in first
    assert message in first


def test_every_other_file_loads(data_dir: Path) -> None:
    root = data_dir / "tricky"
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = path.relative_to(root).as_posix()
        if name not in REFUSED and name not in LOADS:
            assert io.read(path).ndim in (1, 2), name


@pytest.mark.parametrize("name", ["a2.mtx", "a4.mtx", "c2.mtx", "tfdp_lesmis.mtx", "tfdp_netscience.mtx"])
def test_zero_based_on_request(data_dir: Path, name: str) -> None:
    assert io.read(data_dir / "tricky" / "zero_based" / name, base=0).nse > 0


def test_uint64_values(data_dir: Path) -> None:
    t = io.read(data_dir / "tricky/lagraph/matrix_uint64.mtx")
    assert t.dtype == "uint64"
    assert int(t.to_numpy().max()) == 2**64 - 1
