from math import exp

import pytest

from regard.lectures import sql
from regard.lectures.sql import where


def clauses(lesson):
    return {query["where"]: query for query in lesson.numbers["queries"]}


def test_equality_selects_the_second_person(played):
    query = clauses(played("sql"))["ID = '015843268901'"]
    assert query["similarity"] == [0, 1, 0]
    assert query["weights"] == [0, 1, 0]
    assert query["selected"] == ["Mohammad Reza Ali Mohammadi"]


def test_like_selects_the_first_and_the_third(played):
    query = clauses(played("sql"))["ID LIKE '00512317%'"]
    assert query["similarity"] == [1, 0, 1]
    assert query["weights"] == [1 / 2, 0, 1 / 2]
    assert query["selected"] == ["Ali Ahmadi", "Ashkan Mohammadi"]


def soft_weights(query):
    return {each["temperature"]: each["weights"] for each in query["soft"]["temperatures"]}


def test_a_mistyped_id_selects_nobody_and_softly_the_one_meant(played):
    query = clauses(played("sql"))["ID = '015843268907'"]
    assert query["weights"] == [0, 0, 0] and query["selected"] == []
    for weights in soft_weights(query).values():
        assert weights.index(max(weights)) == 1


def test_softly_the_agreeing_characters_are_counted(played):
    # 015843268901 shares its places 0, 2 and 5 with either of the others.
    agreeing = [query["soft"]["agreeing_characters"] for query in played("sql").numbers["queries"]]
    assert agreeing == [[3, 12, 3], [8, 3, 8], [3, 11, 3]]


def test_the_soft_answer_is_a_softmax_of_the_counts(played):
    like = soft_weights(clauses(played("sql"))["ID LIKE '00512317%'"])
    total = 2 * exp(8) + exp(3)
    assert like[1.0] == pytest.approx([exp(8) / total, exp(3) / total, exp(8) / total], abs=1e-9)
    total = 2 * exp(8 / 5) + exp(3 / 5)
    assert like[5.0][1] == pytest.approx(exp(3 / 5) / total, abs=1e-9)


@pytest.mark.parametrize("clause", ["ID = '015843268901'", "ID LIKE '00512317%'"])
def test_the_colder_the_softmax_the_nearer_to_the_database(clause, played):
    query = clauses(played("sql"))[clause]
    distances = [
        sum(abs(soft - hard) for soft, hard in zip(weights, query["weights"], strict=True))
        for _, weights in sorted(soft_weights(query).items(), reverse=True)
    ]
    assert distances == sorted(distances, reverse=True) and distances[0] > 0.1
    assert distances[-1] < 1e-12


def test_everything_is_like_the_empty_beginning():
    assert where("%").weights.tolist() == [pytest.approx([1 / 3] * 3)]


def test_with_another_pattern_the_lecture_counts_its_places_and_rows(monkeypatch):
    monkeypatch.setattr(sql, "LIKE", "0158%")
    told = sql.lesson().steps[2].text
    assert "only the first 4 are asked for. 1 rows agree" in told
    assert told.endswith("each gets 1.")
