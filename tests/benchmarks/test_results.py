"""Results: what the tables say, and what a resumed session keeps."""

from __future__ import annotations

from benchmarks.results_table import Cell, Results


def repeat(rate):
    return {"records_per_second": rate, "cpu_seconds_per_million": 1.0, "neighbour_cores": 0.0}


def latency(p50, p99):
    return {"p50_ms": p50, "p99_ms": p99, "machine_cores": 1.0}


def test_a_table_has_a_line_for_every_cell():
    table = Results([Cell("q5", "penstock", [repeat(10.0)]), Cell("b", "pathway")], {}).table()
    assert "| (q5) Nexmark: hot items" in table
    assert "n/a" in table


def test_no_ratio_unless_every_variant_of_pyflink_was_tried():
    results = Results([Cell("b", "penstock", [repeat(900.0)]), Cell("b", "pyflink", [repeat(10.0)])], {})
    assert results.ratio(results.cell("b", "penstock")) == "no pyflink-process, pyflink-thread"
    results.cell("b", "pyflink-process").repeats.append(repeat(30.0))
    results.cell("b", "pyflink-thread").error = "no result within 300 s"
    assert results.ratio(results.cell("b", "penstock")) == "30"
    assert "| 900 " in results.summary()
    assert "30 (process)" in results.summary()


def test_the_best_latency_is_the_lowest():
    cells = [Cell("l", "penstock", [latency(100.0, 200.0)]), Cell("l", "pyflink", [latency(2_000.0, 3_000.0)])]
    cells += [Cell("l", "pyflink-process", [latency(80.0, 90.0)]), Cell("l", "pyflink-thread", [latency(10.0, 20.0)])]
    summary = Results(cells, {}).summary()
    assert "100 / 200" in summary
    assert "10 / 20 (thread)" in summary


def test_plain_spark_shows_the_same_program_and_the_rewritten_one():
    cells = [Cell("b", "penstock", [repeat(900.0)]), Cell("b", "spark-calls", [repeat(5.0)])]
    assert "| 5 " in Results(cells, {}).summary()
    cells += [Cell("b", "spark", [repeat(40.0)]), Cell("b", "spark-20k", [repeat(15.0)])]
    assert "| 5; rewritten 40 |" in Results(cells, {}).summary()


def test_pyflink_has_no_figure_for_what_it_cannot_say():
    results = Results([Cell("g", "penstock", [repeat(5.0)])], {})
    assert results.ratio(results.cell("g", "penstock")) == ""


def test_a_resumed_session_keeps_what_was_measured(tmp_path):
    first = Results([], {"note": "quiet"})
    first.cell("b", "penstock").repeats.append(repeat(1.0))
    first.cell("a", "spark").error = "failed"
    first.save(tmp_path, plot=False)
    again = Results.load(tmp_path)
    assert again.about == {"note": "quiet"}
    assert again.cell("b", "penstock").values("records_per_second") == [1.0]
    assert again.cell("a", "spark").error == "failed"
    again.cell("a", "penstock")
    assert [(cell.job, cell.system) for cell in again.cells] == [("a", "penstock"), ("a", "spark"), ("b", "penstock")]


def test_there_is_nothing_to_resume_in_an_empty_directory(tmp_path):
    assert Results.load(tmp_path).cells == []
