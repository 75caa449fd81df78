//! Which numbers stand alone, and when a word stands in a text.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use crate::judge::words::{has_word, missing, numbers};

#[rstest]
#[case::bare("8 of 9", &[8.0, 9.0])]
#[case::fraction("mean 2.75.", &[2.75])]
#[case::punctuation("(7), [8]; \"9\" =10 >11 +12", &[7.0, 8.0, 9.0, 10.0, 11.0, 12.0])]
#[case::ratio("3/4 Ready", &[3.0, 4.0])]
#[case::units("45s 3min 80GiB 2x 5th 16 GPUs 7tokens", &[45.0, 3.0, 80.0, 2.0, 5.0, 16.0, 7.0])]
#[case::no_unit("4foo 5s2 6_", &[])]
#[case::range("20-45 s", &[20.0, 45.0])]
#[case::range_of_fractions("0.5-1.5", &[0.5, 1.5])]
#[case::range_with_long_dash("20\u{2013}45", &[20.0, 45.0])]
#[case::range_inside_a_name("x20-45", &[])]
#[case::three_parts("20-45-60", &[])]
#[case::key("restarts:6", &[6.0])]
#[case::minus("-5", &[5.0])]
#[case::name("m-6f7 pod-3 a.4 _5 b6", &[])]
#[case::device("node/n/gpu/5", &[])]
#[case::date("2026-03-01", &[])]
#[case::instant("2026-03-01T12:34:56Z", &[])]
#[case::time_of_day("at 12:34:56", &[])]
#[case::address("10.1.2.3", &[])]
#[case::address_and_port("10.1.2.3:8000", &[])]
#[case::version("v0.11 and 0.11.2", &[])]
fn numbers_that_stand_alone(#[case] text: &str, #[case] wanted: &[f64]) {
    assert_eq!(numbers(text), wanted);
}

#[rstest]
#[case::number("6", "6 pods", true)]
#[case::same_number_other_digits("6", "6.0 pods", true)]
#[case::part_of_a_number("6", "60 pods", false)]
#[case::whole_part_of_a_fraction("6", "6.5 pods", false)]
#[case::fraction("0.5", "ratio .5 or 0.50", true)]
#[case::case_folds("MaxSurge", "set maxsurge", true)]
#[case::inside_a_word("surge", "maxSurge", true)]
#[case::absent("surge", "max", false)]
#[case::minus_sign("read-only", "read\u{2212}only", true)]
#[case::long_dash("read-only", "read\u{2013}only", true)]
#[case::spaces("two  words", "two\nwords", true)]
#[case::hard_space("two words", "two\u{a0}words", true)]
#[case::number_at_the_end("rank 1", "rank 12", false)]
#[case::number_at_the_end_later("rank 1", "rank 12, Rank 1", true)]
#[case::number_at_the_start("5%", "45%", false)]
#[case::number_at_the_start_of_a_fraction("5%", "1.5%", false)]
#[case::number_at_the_start_stands("5%", "is 5%", true)]
fn words_in_texts(#[case] word: &str, #[case] text: &str, #[case] wanted: bool) {
    assert_eq!(has_word(word, text), wanted);
}

#[rstest]
#[case::all_there(json!(["shards", 12, 0.5]), &[])]
#[case::one_of_a_list_is_enough(json!([["nothing", "shards"]]), &[])]
#[case::one_absent(json!(["shards", "pages"]), &["pages"])]
#[case::none_of_a_list(json!([["pages", 13]]), &["pages | 13"])]
#[case::empty_list_is_never_there(json!([[]]), &[""])]
fn missing_words(#[case] words: serde_json::Value, #[case] wanted: &[&str]) {
    let found = missing(words.as_array().unwrap(), "12 shards at 0.5 GiB/s");
    assert_eq!(found.unwrap(), wanted);
}

#[rstest]
#[case(json!([true]))]
#[case(json!([null]))]
#[case(json!([[["nested"]]]))]
fn not_a_word(#[case] words: serde_json::Value) {
    assert!(missing(words.as_array().unwrap(), "true null nested").is_err());
}

proptest! {
    #[test]
    fn a_number_between_spaces_is_found(number in 0_u32..1_000_000, before in "[a-z -]{0,8}", after in "[a-z .:-]{0,8}") {
        let text = format!("{before} {number} {after}");
        prop_assert!(has_word(&number.to_string(), &text));
    }

    #[test]
    fn a_number_in_a_name_is_not_found(number in 0_u32..1_000_000, name in "[a-z]{1,8}[-._]?") {
        let text = format!("{name}{number}");
        prop_assert!(!has_word(&number.to_string(), &text));
    }

    #[test]
    fn any_text_can_be_searched(word in any::<String>(), text in any::<String>()) {
        has_word(&word, &text);
        prop_assert!(has_word(&text, &text) || text.contains(|c: char| c.is_numeric()));
    }
}
