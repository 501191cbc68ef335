import torch

from regard.lectures.translator import END, PAIRS, START, Vocabulary


def test_the_target_goes_in_shifted_behind_a_start_token(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["source"] == ["You", "are", "welcome"]
    assert numbers["inputs"] == [START, "De", "nada"]
    assert numbers["targets"] == ["De", "nada", END]


def test_both_ways_say_the_same_words(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["predictions"] == numbers["generated"] == ["De", "nada", END]


def test_both_ways_have_the_same_logits(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["largest_difference"] < 1e-5
    torch.testing.assert_close(
        torch.tensor(numbers["logits_teacher_forced"]),
        torch.tensor(numbers["logits_generated"]),
        atol=1e-5,
        rtol=0,
    )
    assert len(numbers["logits_teacher_forced"][0]) == len(numbers["vocabulary"])


def test_the_padding_to_mask_is_that_of_the_source(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["padding"]["masked"] < 1e-5
    assert numbers["as_written"]["source_padding_not_masked"] > 0.01


def test_the_decoder_sees_no_later_word(played):
    decoder, cross = played("teacher-forcing").looks
    assert decoder.mask[0].tolist() == torch.ones(3, 3).tril().bool().tolist()
    assert (decoder.weights.triu(1) == 0).all()
    assert cross.kind == "cross" and cross.weights.shape == (2, 3, 3)


def test_words_become_ids_with_padding_and_come_back():
    words = Vocabulary([spanish for _, spanish in PAIRS])
    ids, lengths = words.encode([["De", "nada"], ["Gracias"]])
    assert lengths.tolist() == [2, 1]
    assert words.decode(ids[1]) == ["Gracias", "<pad>"]
