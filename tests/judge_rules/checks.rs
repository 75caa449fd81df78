//! When a check of each type holds, and when not.

use rstest::rstest;
use serde_json::{Value, json};

use crate::judge::checks::evaluate;
use crate::judge::document::Document;
use crate::{NOW, OTHER, POD, sample};

fn holds(mut check: Value, kind: &str, subject: Option<&str>) -> bool {
    let fields = check.as_object_mut().unwrap();
    fields.insert("check".into(), kind.into());
    if let Some(subject) = subject {
        fields.entry("subject").or_insert(subject.into());
    }
    let document = Document::read(&sample().to_string(), NOW).unwrap();
    evaluate(&document, &check).is_ok()
}

#[rstest]
#[case::one_of(json!({"is": ["serving", "loading"]}), true)]
#[case::another(json!({"is": ["serving"]}), false)]
#[case::not_another(json!({"is": ["loading"], "not": ["ready"]}), true)]
#[case::excluded(json!({"is": ["loading"], "not": ["loading"]}), false)]
#[case::no_such_subject(json!({"subject": "pod/lab/m-9", "is": ["loading"]}), false)]
#[case::asks_nothing(json!({"is": []}), false)]
#[case::lacks_its_field(json!({}), false)]
#[case::wrong_shape(json!({"is": "loading"}), false)]
fn state(#[case] check: Value, #[case] wanted: bool) {
    assert_eq!(holds(check, "state", Some(POD)), wanted);
}

#[rstest]
#[case::equal(json!({"name": "waiting", "equals": 4}), true)]
#[case::equal_as_a_float(json!({"name": "waiting", "equals": 4.0}), true)]
#[case::unequal(json!({"name": "waiting", "equals": 5}), false)]
#[case::number_is_no_text(json!({"name": "waiting", "equals": "4"}), false)]
#[case::number_is_no_flag(json!({"name": "awake", "equals": 1}), false)]
#[case::flag(json!({"name": "awake", "equals": true}), true)]
#[case::text(json!({"name": "engine", "equals": "sglang"}), true)]
#[case::other_text(json!({"name": "engine", "equals": "vllm"}), false)]
#[case::same_instant(json!({"name": "since", "equals": "2026-03-01T11:50:00Z"}), true)]
#[case::other_instant(json!({"name": "since", "equals": "2026-03-01T13:50:00Z"}), false)]
#[case::near(json!({"name": "progress", "approx": 0.29, "within": 0.01}), true)]
#[case::far(json!({"name": "progress", "approx": 0.28, "within": 0.01}), false)]
#[case::near_without_within(json!({"name": "progress", "approx": 0.3}), false)]
#[case::text_is_near_nothing(json!({"name": "engine", "approx": 0, "within": 9}), false)]
#[case::unknown(json!({"name": "kv-usage", "unknown": true}), true)]
#[case::known(json!({"name": "waiting", "unknown": true}), false)]
#[case::unknown_is_not_zero(json!({"name": "kv-usage", "equals": 0}), false)]
#[case::unknown_is_near_nothing(json!({"name": "kv-usage", "approx": 0, "within": 1}), false)]
#[case::unknown_must_be_asked_with_true(json!({"name": "waiting", "unknown": false}), false)]
#[case::not_this(json!({"name": "waiting", "not": 0}), true)]
#[case::not_this_holds_for_unknown(json!({"name": "kv-usage", "not": 0}), true)]
#[case::is_this(json!({"name": "waiting", "not": 4}), false)]
#[case::absent(json!({"name": "swapped", "not": 4}), false)]
#[case::absent_is_not_unknown(json!({"name": "swapped", "unknown": true}), false)]
#[case::unknown_without_reason(json!({"name": "eta-s", "unknown": true}), false)]
#[case::not_without_reason(json!({"name": "eta-s", "not": 0}), false)]
#[case::null(json!({"name": "load-s", "not": 0}), false)]
#[case::value_and_unknown(json!({"name": "grace-s", "equals": 30}), false)]
#[case::asks_nothing(json!({"name": "waiting"}), false)]
#[case::asks_twice(json!({"name": "waiting", "equals": 4, "not": 5}), false)]
#[case::no_such_subject(json!({"subject": "fleet", "name": "waiting", "equals": 4}), false)]
#[case::no_values(json!({"subject": OTHER, "name": "waiting", "equals": 4}), false)]
fn value(#[case] check: Value, #[case] wanted: bool) {
    assert_eq!(holds(check, "value", Some(POD)), wanted);
}

#[rstest]
#[case::there(json!({"code": "slow-load", "subjects": [POD]}), true)]
#[case::one_of_codes(json!({"codes": ["else", "slow-load"], "subjects": [POD]}), true)]
#[case::on_all(json!({"code": "slow-load", "subjects": [POD, "node/n1"]}), true)]
#[case::no_one_finding_on_all(json!({"code": "slow-load", "subjects": [POD, OTHER]}), false)]
#[case::other_code(json!({"code": "else", "subjects": [POD]}), false)]
#[case::elsewhere(json!({"code": "slow-load", "subjects": ["node/n2"]}), false)]
#[case::in_summary(json!({"code": "slow-load", "subjects": [POD], "words": ["600"]}), true)]
#[case::in_subjects(json!({"code": "slow-load", "subjects": [POD], "words": ["node/n1"]}), true)]
#[case::in_evidence(json!({"code": "slow-load", "subjects": [POD], "words": [["x", "maxsurge"]]}), true)]
#[case::numbers_of_evidence(json!({"code": "slow-load", "subjects": [POD], "words": [1]}), true)]
#[case::in_remedies(json!({"code": "slow-load", "subjects": [POD], "words": ["faster"]}), true)]
#[case::in_not(json!({"code": "slow-load", "subjects": [POD], "words": ["restart"]}), true)]
#[case::keys_are_no_words(json!({"code": "slow-load", "subjects": [POD], "words": ["evidence"]}), false)]
#[case::words_of_another_finding(json!({"code": "slow-load", "subjects": [POD], "words": ["over"]}), false)]
#[case::remedy(json!({"code": "slow-load", "subjects": [POD], "remedies": ["volume"]}), true)]
#[case::remedy_only_in_not(json!({"code": "slow-load", "subjects": [POD], "remedies": ["restart"]}), false)]
#[case::not(json!({"code": "slow-load", "subjects": [POD], "not": ["restart"]}), true)]
#[case::not_only_in_remedies(json!({"code": "slow-load", "subjects": [POD], "not": ["volume"]}), false)]
#[case::no_code(json!({"subjects": [POD]}), false)]
#[case::no_subjects(json!({"code": "slow-load", "subjects": []}), false)]
#[case::words_of_wrong_shape(json!({"code": "slow-load", "subjects": [POD], "words": "6"}), false)]
fn finding(#[case] check: Value, #[case] wanted: bool) {
    assert_eq!(holds(check, "finding", None), wanted);
}

#[rstest]
#[case::none(json!({"code": "else", "subjects": [POD, OTHER]}), true)]
#[case::there(json!({"code": "slow-load", "subjects": [POD]}), false)]
#[case::on_one_of_them(json!({"codes": ["else", "slow-load"], "subjects": [OTHER]}), false)]
#[case::subject_unknown_to_the_document(json!({"code": "else", "subjects": [POD, "node/n1"]}), false)]
#[case::no_code(json!({"subjects": [POD]}), false)]
#[case::no_subjects(json!({"code": "else", "subjects": []}), false)]
fn no_finding(#[case] check: Value, #[case] wanted: bool) {
    assert_eq!(holds(check, "no-finding", None), wanted);
}

#[rstest]
#[case::answer(json!({"verb": "wake", "answer": ["refuse"]}), true)]
#[case::one_answer(json!({"verb": "wake", "answer": "refuse"}), true)]
#[case::one_of(json!({"verb": "drain", "answer": ["refuse", "warn"]}), true)]
#[case::other_answer(json!({"verb": "drain", "answer": ["allow"]}), false)]
#[case::because(json!({"verb": "drain", "answer": ["warn"], "words": ["9"]}), true)]
#[case::instead(json!({"verb": "drain", "answer": ["warn"], "words": ["2", "wait"]}), true)]
#[case::does_not_say(json!({"verb": "drain", "answer": ["warn"], "words": ["10"]}), false)]
#[case::the_answer_is_no_word(json!({"verb": "drain", "answer": ["warn"], "words": ["warn"]}), false)]
#[case::other_verb(json!({"verb": "sleep", "answer": ["refuse"]}), false)]
#[case::asks_nothing(json!({"verb": "drain", "answer": []}), false)]
#[case::lacks_answer(json!({"verb": "drain"}), false)]
#[case::no_such_subject(json!({"subject": "node/n1", "verb": "drain", "answer": ["warn"]}), false)]
fn action(#[case] check: Value, #[case] wanted: bool) {
    assert_eq!(holds(check, "action", Some(POD)), wanted);
}

#[rstest]
#[case::writer(json!({"field": "spec.replicas", "writer": "hpa/lab/m"}), true)]
#[case::start_of_writer(json!({"field": "spec.replicas", "writer": "hpa/"}), true)]
#[case::end_of_writer(json!({"field": "spec.replicas", "writer": "lab/m"}), false)]
#[case::writer_of_another_field(json!({"field": "spec.replicas", "writer": "helm"}), false)]
#[case::other_field(json!({"field": "spec", "writer": "hpa/"}), false)]
#[case::asks_nothing(json!({"field": "spec.replicas", "writer": ""}), false)]
#[case::lacks_writer(json!({"field": "spec.replicas"}), false)]
#[case::no_owners(json!({"subject": OTHER, "field": "spec.replicas", "writer": "hpa/"}), false)]
fn owner(#[case] check: Value, #[case] wanted: bool) {
    assert_eq!(holds(check, "owner", Some(POD)), wanted);
}

#[rstest]
#[case::why(json!({"all": ["12", "shards"]}), true)]
#[case::state_word(json!({"all": ["loading"]}), true)]
#[case::reason_of_unknown(json!({"all": ["never read"]}), true)]
#[case::source_of_a_value(json!({"all": ["num_queue_reqs"]}), true)]
#[case::text_value(json!({"all": ["2026-03-01T13:50"]}), true)]
#[case::number_value(json!({"all": ["0.3"]}), false)]
#[case::owner(json!({"all": ["helm"]}), true)]
#[case::action(json!({"all": ["not asleep"]}), true)]
#[case::instead(json!({"all": ["wait 2 min"]}), true)]
#[case::finding_on_it(json!({"all": ["600", ["x", "faster"]]}), true)]
#[case::finding_on_another(json!({"all": ["is over"]}), false)]
#[case::none(json!({"all": ["shards"], "none": ["crash"]}), true)]
#[case::none_stands(json!({"all": ["shards"], "none": ["crash", "weights"]}), false)]
#[case::only_none(json!({"all": [], "none": ["crash"]}), true)]
#[case::only_none_of_an_absent_subject(json!({"subject": "fleet", "all": [], "none": ["crash"]}), false)]
#[case::asks_nothing(json!({"all": []}), false)]
#[case::lacks_all(json!({"none": ["crash"]}), false)]
fn words(#[case] check: Value, #[case] wanted: bool) {
    assert_eq!(holds(check, "words", Some(POD)), wanted);
}

#[rstest]
#[case::unknown_type(json!({"check": "guess", "subject": POD}))]
#[case::no_type(json!({"subject": POD}))]
#[case::no_mapping(json!("state"))]
#[case::code_of_wrong_shape(json!({"check": "no-finding", "code": 7, "subjects": [POD]}))]
fn never_holds(#[case] check: Value) {
    let document = Document::read(&sample().to_string(), NOW).unwrap();
    assert!(evaluate(&document, &check).is_err());
}

#[test]
fn an_absent_subject_is_told_with_its_likes() {
    let document = Document::read(&sample().to_string(), NOW).unwrap();
    let check = json!({"check": "state", "subject": "pod/shop/m-0", "is": ["loading"]});
    let told = evaluate(&document, &check).unwrap_err();
    assert!(told.contains(POD) && !told.contains(OTHER), "{told}");
}

/// Words may run over a field and its value, so the order in which the program printed them counts.
#[rstest]
#[case::as_printed(r#"{"field": "maxSurge", "value": 1}"#, true)]
#[case::apart(r#"{"field": "maxSurge", "at": "now", "value": 1}"#, false)]
#[case::turned_round(r#"{"value": 1, "field": "maxSurge"}"#, false)]
fn words_over_two_fields(#[case] evidence: &str, #[case] wanted: bool) {
    let finding = format!(r#"{{"code": "c", "subjects": ["fleet"], "summary": "s", "evidence": [{evidence}]}}"#);
    let text = format!(r#"{{"schemaVersion": "1", "now": "{NOW}", "subjects": {{}}, "findings": [{finding}]}}"#);
    let document = Document::read(&text, NOW).unwrap();
    let check = json!({"check": "finding", "code": "c", "subjects": ["fleet"], "words": ["maxSurge 1"]});
    assert_eq!(evaluate(&document, &check).is_ok(), wanted);
}
