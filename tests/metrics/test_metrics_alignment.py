"""Word links: read, scored against gold, and symmetrised."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics import Links, aer, grow_diag_final, intersect, read_links, union

PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))
LINKS = st.builds(Links, PAIRS, PAIRS)


@pytest.fixture
def write(tmp_path):
    """Put bytes or text into a file."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "links.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def data() -> Path:
    here = Path(__file__).parents[2].parent / "shared/data"
    folder = Path(os.environ.get("REGARD_DATA", here)) / "word_alignment"
    if not folder.is_dir():
        pytest.skip("no gold alignments: set REGARD_DATA to the folder that holds word_alignment")
    return folder


def links(line: str) -> Links:
    """Sure links only, from a line of digits: "00 12"."""
    return Links({(int(i), int(j)) for i, j in line.split()})


def test_sure_and_possible_links_are_told_apart(write):
    first, second, third = read_links(write("0-0 12-3 1p2 2?4\n\n3-1\n"))
    assert first.sure == {(0, 0), (12, 3)}
    assert first.possible == {(0, 0), (12, 3), (1, 2), (2, 4)}
    assert second == Links()
    assert third == Links({(3, 1)})


def test_one_based_links_are_counted_from_zero_here(write):
    assert read_links(write("1-1 2p10\n"), one_based=True) == [Links({(0, 0)}, {(1, 9)})]


@pytest.mark.parametrize("content", ["0-1\n1-0", "0-1\n1-0\n", "\ufeff0-1 \r\n\t1-0\r\n"])
def test_the_end_of_a_line_may_be_anyones(write, content):
    path = write(content)
    assert read_links(path) == read_links(str(path)) == [Links({(0, 1)}), Links({(1, 0)})]


def test_only_a_newline_ends_a_line(write):
    assert read_links(write("0-1\x0c1-0\u20282-2\n3-3\n")) == [links("01 10 22"), links("33")]


def test_a_file_with_nothing_in_it_has_no_lines(write):
    assert read_links(write("")) == []
    assert read_links(write("\n")) == [Links()]


@pytest.mark.parametrize(
    "token", ["3", "a-b", "3-", "-3-4", "3--4", "3-4-5", "3:4", "3-4p", "３-4"]
)
def test_what_is_no_link_is_refused_with_file_line_and_token(write, token):
    path = write(f"0-0\n1-1 {token} 2-2\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: {token!r} is not a link")):
        read_links(path)


def test_a_packed_file_is_refused_as_no_links(write):
    with pytest.raises(ValueError, match=r"links.txt, line 1: .*x8b.* is not a link"):
        read_links(write(b"\x1f\x8b\x08\x08 0-0"))


@pytest.mark.parametrize("token", ["0-1", "1-0", "1p0", "0?2"])
def test_a_zero_among_one_based_links_is_refused(write, token):
    path = write(f"1-1\n2-2\n{token}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 3: {token!r} has a 0")):
        read_links(path, one_based=True)
    assert len(read_links(path)) == 3


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt: there is no such file$"):
        read_links(tmp_path / "nowhere.txt")


def test_sure_links_are_possible_too():
    both = Links(sure={(0, 0)}, possible={(1, 1)})
    assert both.possible == {(0, 0), (1, 1)}
    assert both == Links({(0, 0)}, {(0, 0), (1, 1)})


def test_links_print_as_they_are_written_in_files():
    assert str(Links({(10, 0), (2, 3), (2, 1)}, {(2, 2)})) == "2-1 2p2 2-3 10-0"
    assert str(Links()) == ""


@given(st.lists(LINKS))
def test_links_printed_and_read_again_are_the_same(tmp_path_factory, corpus):
    path = tmp_path_factory.mktemp("links") / "links.txt"
    path.write_text("".join(f"{each}\n" for each in corpus), encoding="utf-8")
    assert read_links(path) == corpus


def test_the_error_rate_is_the_one_worked_out_by_hand():
    # A has 4 links; 2 of them are sure, 3 are possible; S has 3: AER = 1 − (2 + 3) / (4 + 3).
    gold = [Links({(0, 0), (1, 1)}, {(1, 2), (2, 2)}), Links({(0, 0)})]
    given = [Links({(0, 0), (1, 2), (2, 1)}), Links({(0, 0)})]
    score = aer(given, gold)
    assert (score.name, score.value) == ("aer", pytest.approx(2 / 7))
    assert score.signature == "gold:sure+possible|lines:2"
    assert score.details == pytest.approx(
        {"precision": 3 / 4, "recall": 2 / 3, "links": 4, "sure": 3, "possible": 5}
    )


def test_the_error_rate_is_over_the_corpus_and_no_mean_over_sentences():
    gold = [Links({(0, 0)}), Links({(0, 0), (1, 1), (2, 2)})]
    given = [Links({(5, 5)}), gold[1]]  # all wrong, all right
    assert aer(given, gold).value == pytest.approx(1 - (3 + 3) / (4 + 4))


def test_without_possible_links_the_error_rate_is_one_minus_f1():
    gold, given = [links("00 11 22")], [links("00 12")]
    score = aer(given, gold)
    precision, recall = score.details["precision"], score.details["recall"]
    assert (precision, recall) == (1 / 2, 1 / 3)
    assert score.value == pytest.approx(1 - 2 * precision * recall / (precision + recall))
    assert score.signature == "gold:sure|lines:1"


def test_every_link_an_aligner_gives_counts_however_it_is_marked():
    gold = [links("00 11")]
    assert aer([Links({(0, 0)}, {(1, 1)})], gold).value == 0.0


def test_an_aligner_that_links_nothing_is_wholly_wrong():
    score = aer([Links()], [links("00")])
    assert score.value == 1.0
    assert (score.details["precision"], score.details["recall"]) == (0.0, 0.0)


@given(st.lists(LINKS, min_size=1).filter(lambda corpus: any(each.possible for each in corpus)))
def test_gold_against_itself_has_no_error(gold):
    assert aer(gold, gold).value == 0.0


@given(st.lists(st.tuples(LINKS, LINKS), min_size=1))
def test_an_error_rate_is_a_share(corpus):
    given, gold = map(list, zip(*corpus, strict=True))
    if any(each.possible for each in given) or any(each.sure for each in gold):
        assert 0.0 <= aer(given, gold).value <= 1.0


def test_different_numbers_of_lines_are_refused_with_both():
    with pytest.raises(ValueError, match=r"links \(2 lines\) and gold \(3 lines\) must be equally"):
        aer([Links()] * 2, [Links()] * 3)


@pytest.mark.parametrize("lines", [0, 2])
def test_an_error_rate_over_no_links_is_refused(lines):
    with pytest.raises(ValueError, match=rf"gold \({lines} lines\) hold no links to compare"):
        aer([Links()] * lines, [Links((), {(0, 0)})] * lines)


def test_the_hansards_output_of_awesome_align_scores_as_published(data):
    score = aer(
        read_links(data / "enfr.awesome-align.out"),
        read_links(data / "enfr.gold", one_based=True),
    )
    assert round(100 * score.value, 2) == 4.07
    assert round(100 * score.details["precision"], 2) == 96.27
    assert round(100 * score.details["recall"], 2) == 95.42
    assert score.details["links"] == 6038
    assert score.details["sure"] == 4038
    assert score.details["possible"] == 4038 + 13400


def test_the_romanian_gold_has_sure_links_only(data):
    gold = read_links(data / "roen.gold", one_based=True)
    assert (len(gold), sum(len(each.sure) for each in gold)) == (248, 6198)
    assert all(each.sure == each.possible for each in gold)


def test_both_directions_or_either():
    forward, backward = links("00 11 12"), links("00 11 21")
    assert intersect(forward, backward) == links("00 11")
    assert union(forward, backward) == links("00 11 12 21")


def test_growing_takes_neighbours_that_link_a_new_word_and_leaves_the_rest():
    # From 1-1 to its neighbours: 1-2 and 2-1 link a new word each. 0-2 is a neighbour across, and
    # comes when both its words are linked already. 3-3 and 4-3 are far off, and added at the end.
    forward, backward = links("00 11 12 33"), links("00 11 21 02 43")
    assert grow_diag_final(forward, backward) == links("00 11 12 21 33 43")


def test_growing_goes_across_corners():
    # Without the step from 0-0 to 1-1, 2-1 and 1-2 would come first and leave 1-1 no new word.
    forward, backward = links("00 12 21"), links("00 11")
    assert grow_diag_final(forward, backward) == links("00 11 12 21")


def test_growing_goes_on_until_nothing_is_added():
    # From 2-2 up to 1-1, which is passed by then, and from there to 0-0 the next time round.
    forward, backward = links("22 50 05"), links("22 11 00")
    assert grow_diag_final(forward, backward) == links("22 11 00 50 05")


def test_links_left_over_come_forward_first():
    # Nothing to grow from. 3-4 and 4-3 leave 3-3 no new word; after 3-3 each still has one.
    one, other = links("34 43"), links("33")
    assert grow_diag_final(one, other) == links("34 43")
    assert grow_diag_final(other, one) == links("33 34 43")


def on_a_grid(forward: Links, backward: Links) -> set[tuple[int, int]]:
    """The pseudocode of Koehn et al., word by word: target words outside, source words inside."""
    size = 6
    inside = [[(i, j) in forward.possible and (i, j) in backward.possible for i in range(size)]
              for j in range(size)]  # fmt: skip
    either = [[(i, j) in forward.possible or (i, j) in backward.possible for i in range(size)]
              for j in range(size)]  # fmt: skip

    def has_new_word(target: int, source: int) -> bool:
        return not any(inside[target]) or not any(row[source] for row in inside)

    steps = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    before = None
    while before != inside:
        before = [list(row) for row in inside]
        for target in range(size):
            for source in range(size):
                if not inside[target][source]:
                    continue
                for down, right in steps:
                    t, s = target + down, source + right
                    if 0 <= t < size and 0 <= s < size and either[t][s] and has_new_word(t, s):
                        inside[t][s] = True
    for direction in (forward, backward):
        for target in range(size):
            for source in range(size):
                if (source, target) in direction.possible and has_new_word(target, source):
                    inside[target][source] = True
    return {(i, j) for j in range(size) for i in range(size) if inside[j][i]}


@given(PAIRS, PAIRS, PAIRS)
def test_symmetrised_links_are_those_of_the_pseudocode(common, one, other):
    forward, backward = Links(common | one), Links(common | other)
    assert grow_diag_final(forward, backward).sure == on_a_grid(forward, backward)


@given(LINKS, LINKS)
def test_symmetrised_links_lie_between_intersection_and_union(forward, backward):
    grown = grow_diag_final(forward, backward).sure
    assert intersect(forward, backward).sure <= grown <= union(forward, backward).sure
    for side in (0, 1):  # and no word is left without a link that had one
        words = {link[side] for link in union(forward, backward).sure}
        assert {link[side] for link in grown} == words


@given(LINKS)
def test_directions_that_agree_are_left_as_they_are(both):
    assert grow_diag_final(both, both) == intersect(both, both) == union(both, both)
