//! Words and proof that several rules of this family share.

use crate::model::object::meta::Condition;
use crate::model::object::{InferencePool, Object};
use crate::model::{Evidence, Place};

/// A condition of an object as evidence.
pub(super) fn condition_proof(object: &Object, condition: &Condition) -> Evidence {
    Evidence::new(&object.subject(), Place::Condition(condition.kind.clone()), condition.shown(), condition.since).of_uid(&object.meta.uid)
}

/// A condition in a sentence: `ResolvedRefs is False (BackendNotFound: …)`.
pub(super) fn said(condition: &Condition) -> String {
    format!("{} is {}", condition.kind, condition.shown())
}

/// What the gateway is to do while no picker answers.
pub(super) fn mode_words(pool: &InferencePool) -> String {
    match pool.failure_mode.as_str() {
        "FailOpen" => "FailOpen promises that the gateway picks any endpoint by itself meanwhile".into(),
        mode => format!("with {mode} the gateway drops requests meanwhile"),
    }
}
