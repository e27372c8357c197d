"""Answers as values of Python: attributes, texts, tables, files."""

import copy
import json
import os
import pickle
import stat
from pathlib import Path

import mantile
import pytest
from mantile import types
from mantile._answer import class_of
from mantile._requests import TABLE

SMALL = {"model": "Qwen3-0.6B", "hardware": "1xl40s"}


@pytest.fixture(scope="module")
def answer():
    return mantile.optimize(**SMALL)


@pytest.fixture(scope="module")
def rows():
    return mantile.sweep(**SMALL, vary=["concurrency=1,2,100000", "kv_format=bf16"])


def keys(part):
    """Every key of every object in a schema."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "properties" and isinstance(value, dict):
                yield from value
            yield from keys(value)
    elif isinstance(part, list):
        for value in part:
            yield from keys(value)


def test_no_key_of_an_answer_has_the_name_of_a_method():
    methods = {name for name in dir(mantile.Record) if not name.startswith("_")}
    assert methods == {"get", "keys", "to_dict"}
    of_answers = {name for name in dir(mantile.Answer) if not name.startswith("_")}
    seen = 0
    for entry in TABLE:
        assert not methods & {*keys(entry["report"])}, entry["name"]
        report = entry["report"] if isinstance(entry["report"], dict) else {}
        top = {*class_of(entry["name"]).__annotations__, *report.get("properties", {})}
        assert not of_answers & top, entry["name"]
        seen += len(top)
    assert seen > 100


def test_a_list_is_items():
    glossary = mantile.glossary()
    assert glossary.items == glossary["items"] and {one.term for one in glossary.items} >= {"ttft_ms"}
    assert isinstance(glossary.items[0], types.GlossaryTerm)


def test_a_record_is_read_like_a_dictionary(answer):
    metrics = answer.best.metrics
    assert dict(metrics) == metrics.to_dict() == {**metrics} and len(metrics) == len(list(metrics))
    assert "tpot_ms" in metrics and metrics.get("tpot_ms") == metrics["tpot_ms"] == metrics.tpot_ms
    assert metrics.get("none", 7) == 7 and "tpot_ms" in dir(metrics)
    assert json.loads(answer.to_json()) == answer.to_dict()
    with pytest.raises(AttributeError, match="no `statuss`; it has answer, "):
        answer.statuss
    with pytest.raises(KeyError):
        answer["statuss"]
    # An optional key is None.
    assert "plain" not in answer and answer.plain is None
    for same in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert same == answer and type(same) is type(answer)
    assert pickle.loads(pickle.dumps(metrics)) == metrics


def test_objects_have_their_declared_classes(answer):
    assert isinstance(answer, types.OptimizeAnswer) and isinstance(answer, mantile.Answer)
    assert isinstance(answer.best, types.ReportedDeployment) and isinstance(answer.best.metrics, types.MetricsReport)
    assert all(type(one) is types.ReportedDeployment for one in answer.front)
    assert type(mantile.request("optimize", {"scenario": SMALL})) is types.OptimizeAnswer


def test_a_headline_stands_for_the_answer(answer):
    text = answer.render("table").decode()
    assert str(answer) == text and repr(answer) == text.splitlines()[0]
    assert "output tok/s" in repr(answer) and "\x1b" not in text
    shown = answer._repr_mimebundle_()
    assert shown["text/plain"] == repr(answer)
    assert shown["text/html"].count("<img") == 1 and "data:image/svg+xml;base64," in shown["text/html"]
    assert text.splitlines()[3] in shown["text/html"].replace("&lt;", "<").replace("&amp;", "&")
    undrawn = mantile.glossary()._repr_mimebundle_()["text/html"]
    assert "<img" not in undrawn and "<pre" in undrawn


def test_rows_are_tables_of_every_package(rows):
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    table, frame, old = pyarrow.table(rows), polars.DataFrame(rows), rows.to_pandas()
    assert table.num_rows == frame.height == len(old) == 3
    assert table.column_names == frame.columns == [*old.columns]
    assert frame.equals(rows.to_polars()) and table.equals(rows.to_arrow())
    assert frame["point"].dtype == polars.Int64 and frame["tpot_ms"].dtype == polars.Float64
    assert frame["kv_format"].to_list() == ["bf16"] * 3
    assert frame["tpot_ms"][2] is None and frame["tpot_ms"][0] == rows.rows[0].metrics.tpot_ms
    assert old["tpot_ms"][0] == frame["tpot_ms"][0] and pandas.isna(old["tpot_ms"][2])


def test_every_format_of_the_program_is_saved(answer, rows, tmp_path):
    starts = {
        "txt": b"", "json": b"{", "yaml": b"answer: optimize", "yml": b"answer", "csv": b"model", "md": b"## ",
        "html": b"<!DOCTYPE", "svg": b"<svg", "png": b"\x89PNG", "xlsx": b"PK",
    }
    for ending, start in starts.items():
        file = tmp_path / f"answer.{ending}"
        answer.save(str(file) if ending == "txt" else file)
        assert file.read_bytes().startswith(start) and file.stat().st_size > 100, ending
    assert (tmp_path / "answer.txt").read_text() == str(answer)
    rows.save(tmp_path / "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3
    pytest.importorskip("pyarrow")
    rows.save(tmp_path / "rows.parquet")
    assert __import__("pyarrow.parquet").parquet.read_table(tmp_path / "rows.parquet").equals(rows.to_arrow())
    with pytest.raises(ValueError, match=r"docx.* has no ending of a format; one of \.txt, \.json"):
        answer.save(tmp_path / "answer.docx")
    with pytest.raises(ValueError, match="an answer to glossary has no svg"):
        mantile.glossary().save(tmp_path / "glossary.svg")
    assert {"png", "parquet"} < mantile.FORMATS.keys() and mantile.FORMATS["yaml"] == ["yaml", "yml"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_saved_file_has_the_permissions_of_the_users_files(answer, tmp_path):
    mode = lambda path: stat.S_IMODE(os.stat(path).st_mode)
    before = os.umask(0o027)
    try:
        answer.save(tmp_path / "new.json")
        assert mode(tmp_path / "new.json") == 0o640
        (tmp_path / "old.json").write_text("")
        (tmp_path / "old.json").chmod(0o604)
        answer.save(tmp_path / "old.json")
        assert mode(tmp_path / "old.json") == 0o604
        (tmp_path / "link.json").symlink_to(tmp_path / "linked.json")
        answer.save(tmp_path / "link.json")
        assert (tmp_path / "link.json").is_symlink() and (tmp_path / "linked.json").read_text() == answer.to_json()
    finally:
        os.umask(before)
    with pytest.raises(FileNotFoundError):
        answer.save(tmp_path / "absent" / "new.json")
    assert sorted(path.name for path in Path(tmp_path).iterdir()) == ["link.json", "linked.json", "new.json", "old.json"]
