"""Tables from files: columns hold what was written, and no type is guessed."""

import numpy as np
import pandas as pd
import pytest

import expost
from expost import ClassLabel, Number
from expost.data.files import read_columns, read_kinds
from expost.data.tables import open_table
from expost.exceptions import DomainError, FileError

DOMAIN = expost.Domain(
    features=(Number(name="a", low=0.0, high=8.0), Number(name="b", low=0.0, high=8.0)),
    label=ClassLabel(name="y", classes=("0", "1")),
)


def test_a_csv_file_is_read_as_text_with_quotes_bom_and_blank_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa,"b, c"\r\n007,"x\ny"\r\n\r\n,é\r\n'.encode())
    columns = read_columns(path)
    assert {name: column.tolist() for name, column in columns.items()} == {
        "a": ["007", ""],
        "b, c": ["x\ny", "é"],
    }
    assert read_kinds(path) == {"a": None, "b, c": None}


def test_parquet_keeps_types_and_missing_values(tmp_path):
    frame = pd.DataFrame({"n": [1, None], "t": ["x", None], "b": [True, False]})
    frame["c"] = pd.Categorical(["u", "v"])
    frame.to_parquet(tmp_path / "t.parquet")
    columns = read_columns(tmp_path / "t.parquet")
    assert np.isnan(columns["n"][1])
    assert columns["t"].tolist() == ["x", None]
    assert columns["c"].tolist() == ["u", "v"]
    kinds = {"n": "number", "t": "category", "b": "yes_no", "c": "category"}
    assert read_kinds(tmp_path / "t.parquet") == kinds


def test_only_the_names_are_read_for_the_kinds(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2,3,4\n\xff\n")
    assert read_kinds(path) == {"a": None, "b": None}
    with pytest.raises(FileError):
        read_columns(path)


def test_a_mapping_of_columns_is_a_table():
    columns = {"b": [1.0, 8.0, 0.0], "a": np.array([4.0, 2.0, 0.0]), "other": ["x", "y", "z"]}
    table = open_table(columns, DOMAIN)
    frame = open_table(pd.DataFrame(columns), DOMAIN)
    np.testing.assert_array_equal(table.rows(0, 3), frame.rows(0, 3))
    np.testing.assert_array_equal(table.rows(1, 2), [[-0.5, 1.0]])
    with pytest.raises(DomainError, match="one length"):
        open_table({"a": [1.0], "b": [1.0, 2.0]}, DOMAIN)
    with pytest.raises(DomainError, match="lacks the column 'b'"):
        open_table({"a": [1.0]}, DOMAIN)
