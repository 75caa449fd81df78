//! What the API server answered to `GET …/scale` (autoscaling/v1 Scale): what an autoscaler sees of its target.

use serde_json::Value;

use super::World;
use super::owners::replicas_of;
use crate::model::engine::HttpAnswer;
use crate::model::{Subject, kind_of_resource};

impl World {
    /// The newest answer to a GET of the object's scale subresource.
    pub fn scale_answer(&self, target: &Subject) -> Option<&HttpAnswer> {
        let all = self.answers.values().flatten().filter(|answer| answer.method == "GET" && answer.route().ends_with("/scale"));
        all.filter(|answer| {
            let parts: Vec<&str> = answer.route().trim_matches('/').split('/').collect();
            matches!(parts.as_slice(), [.., "namespaces", namespace, resource, name, "scale"]
                if *namespace == target.namespace() && *name == target.name() && kind_of_resource(resource) == target.kind())
        })
        .max_by_key(|answer| answer.at)
    }

    /// How many replicas an object asks for, by its own spec, else by its scale subresource.
    pub fn asked_of(&self, target: &Subject) -> Option<u32> {
        let own = self.objects.get(target).and_then(replicas_of);
        own.or_else(|| u32::try_from(scale_of(self.scale_answer(target)?)?.get("spec")?.get("replicas")?.as_u64()?).ok())
    }
}

/// The Scale in an answer; `None` where it is none.
pub fn scale_of(answer: &HttpAnswer) -> Option<Value> {
    let body: Value = serde_json::from_str(answer.body()).ok()?;
    (answer.status() == Some(200) && body.get("kind").and_then(Value::as_str) == Some("Scale")).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::engine::HttpOutcome;
    use crate::world::Facts;
    use jiff::Timestamp;
    use rstest::rstest;

    #[rstest]
    #[case("/apis/x.io/v1/namespaces/s/models/m/scale", r#"{"kind":"Scale","spec":{"replicas":3}}"#, Some(3))]
    #[case("/apis/x.io/v1/namespaces/t/models/m/scale", r#"{"kind":"Scale","spec":{"replicas":3}}"#, None)]
    #[case("/apis/x.io/v1/namespaces/s/models/m/scale", r#"{"kind":"Status","spec":{"replicas":3}}"#, None)]
    #[case("/apis/x.io/v1/namespaces/s/models/m", r#"{"kind":"Scale","spec":{"replicas":3}}"#, None)]
    fn what_is_asked_for(#[case] path: &str, #[case] body: &str, #[case] wanted: Option<u32>) {
        let answer = HttpAnswer {
            target: Subject::parse("apiserver"),
            port: None,
            method: "GET".into(),
            path: path.into(),
            at: Timestamp::UNIX_EPOCH,
            latency_ms: None,
            outcome: HttpOutcome::Answered { status: 200, content_type: String::new(), body: body.into() },
        };
        let world = World::build(Facts { answers: vec![answer], ..Facts::default() }, "bundle", Timestamp::UNIX_EPOCH);
        assert_eq!(world.asked_of(&Subject::parse("model/s/m")), wanted);
    }
}
