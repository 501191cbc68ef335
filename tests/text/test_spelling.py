"""Words as their bytes, with the numbers of the published models."""

from regard.text.spelling import END_SPELLING, START_SPELLING, spell


def test_a_word_is_its_bytes_plus_one_between_two_marks_filled_up_to_fifty():
    # é is the bytes 0xC3 0xA9; word start, word end and filler are 258, 259 and 260, plus one.
    assert spell("né") == (259, ord("n") + 1, 0xC3 + 1, 0xA9 + 1, 260) + (261,) * 45


def test_a_long_word_is_cut_to_48_bytes():
    spelled = spell("a" * 100)
    assert len(spelled) == 50
    assert (spelled[0], spelled[-1], set(spelled[1:-1])) == (259, 260, {98})


def test_sentence_start_and_end_are_words_that_no_text_can_spell():
    assert START_SPELLING[:4] == (259, 257, 260, 261)
    assert END_SPELLING[:4] == (259, 258, 260, 261)
    assert spell("<S>") != START_SPELLING
