//! What is a valid explain document.

use rstest::rstest;
use serde_json::{Value, json};

use crate::judge::document::Document;
use crate::{NOW, POD, sample};

fn refused(text: &str) -> Option<String> {
    Document::read(text, NOW).err()
}

#[test]
fn the_sample_is_valid() {
    let text = sample().to_string();
    assert_eq!(refused(&text), None);
    assert_eq!(refused(&format!("\n  {text}\n")), None);
}

#[rstest]
#[case::nothing("", "nothing on stdout")]
#[case::blank(" \n", "nothing on stdout")]
#[case::list("[]", "not an object")]
#[case::cut(r#"{"schemaVersion": "1""#, "invalid JSON")]
#[case::text_before("starting\n{}", "invalid JSON")]
#[case::text_after("{} done", "invalid JSON")]
#[case::not_a_number(r#"{"a": NaN}"#, "invalid JSON")]
#[case::twice(r#"{"a": 1, "a": 1}"#, "stands twice")]
#[case::twice_deep_down(r#"{"a": [{"b": {"c": 1, "d": 2, "c": 3}}]}"#, "stands twice")]
fn not_a_document(#[case] text: &str, #[case] told: &str) {
    let found = refused(text).unwrap();
    assert!(found.contains(told), "{found}");
}

#[rstest]
#[case::other_schema("/schemaVersion", json!("2"))]
#[case::schema_as_a_number("/schemaVersion", json!(1))]
#[case::other_now("/now", json!("2026-03-01T12:00:01Z"))]
#[case::now_without_zone("/now", json!("2026-03-01T12:00:00"))]
#[case::now_with_a_zone_name("/now", json!("2026-03-01T12:00:00Z[UTC]"))]
#[case::no_now("/now", json!(null))]
#[case::subjects_as_a_list("/subjects", json!([]))]
#[case::findings_as_an_object("/findings", json!({}))]
#[case::entry("/subjects/pod~1lab~1m-0", json!([]))]
#[case::why("/subjects/pod~1lab~1m-0/why", json!("text"))]
#[case::why_null("/subjects/pod~1lab~1m-0/why", json!(null))]
#[case::values("/subjects/pod~1lab~1m-0/values", json!([]))]
#[case::owners("/subjects/pod~1lab~1m-0/owners", json!({}))]
#[case::actions("/subjects/pod~1lab~1m-0/actions", json!([]))]
#[case::finding("/findings/0", json!("slow-load"))]
#[case::code("/findings/0/code", json!(3))]
#[case::no_subjects("/findings/0/subjects", json!([]))]
#[case::one_subject("/findings/0/subjects", json!(POD))]
#[case::blank_summary("/findings/0/summary", json!(" "))]
#[case::evidence("/findings/0/evidence", json!({}))]
#[case::remedies("/findings/0/remedies", json!("text"))]
#[case::not_null("/findings/0/not", json!(null))]
fn wrong_shape(#[case] at: &str, #[case] becomes: Value) {
    let mut document = sample();
    *document.pointer_mut(at).unwrap() = becomes;
    assert!(refused(&document.to_string()).is_some());
}

#[rstest]
#[case::schema("schemaVersion")]
#[case::now("now")]
#[case::subjects("subjects")]
#[case::findings("findings")]
fn lacks(#[case] key: &str) {
    let mut document = sample();
    document.as_object_mut().unwrap().remove(key);
    assert!(refused(&document.to_string()).is_some());
}

#[rstest]
#[case::other_zone("2026-03-01T13:00:00+01:00")]
#[case::fraction("2026-03-01T12:00:00.000Z")]
fn the_same_now(#[case] now: &str) {
    let mut document = sample();
    document["now"] = now.into();
    assert_eq!(refused(&document.to_string()), None);
}

#[test]
fn a_now_that_is_no_instant_is_never_right() {
    let mut document = sample();
    document["now"] = "soon".into();
    assert!(Document::read(&document.to_string(), "soon").is_err());
}
