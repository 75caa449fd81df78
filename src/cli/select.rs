//! Which model services a command is about: MODEL as `name`, `namespace/name` or `system/namespace/name`, and `--namespace`.

use std::collections::BTreeSet;

use super::error::CliError;
use crate::model::service::ServiceId;
use crate::model::text;
use crate::world::World;

/// Most names that an error lists.
const MAX_NEAR: usize = 8;

/// The one model of that name.
pub(super) fn one<'w>(world: &'w World, name: &str, namespace: Option<&str>) -> Result<&'w ServiceId, CliError> {
    let inside: Vec<&ServiceId> = world.services.keys().filter(|id| within(&id.namespace, namespace)).collect();
    let found: Vec<&ServiceId> = inside.iter().copied().filter(|id| is(id, name)).collect();
    match found.as_slice() {
        [id] => Ok(id),
        [] => Err(CliError::UnknownModel { name: text::clean_name(name), near: near(&inside, name) }),
        several => Err(CliError::AmbiguousModel {
            name: text::clean_name(name),
            candidates: several.iter().take(MAX_NEAR).map(|id| shortest(id, several)).collect(),
        }),
    }
}

/// All models of a namespace, or all.
pub(super) fn all<'w>(world: &'w World, namespace: Option<&str>) -> BTreeSet<&'w ServiceId> {
    world.services.keys().filter(|id| within(&id.namespace, namespace)).collect()
}

/// Whether something of namespace `of` is shown.
pub(super) fn within(of: &str, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| namespace == of)
}

fn is(id: &ServiceId, name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [name] => id.name == *name,
        [namespace, name] => id.namespace == *namespace && id.name == *name,
        [system, namespace, name] => id.system == *system && id.namespace == *namespace && id.name == *name,
        _ => false,
    }
}

/// `namespace/name` where that tells it from the others, else the whole name.
fn shortest(id: &ServiceId, among: &[&ServiceId]) -> String {
    let twins = among.iter().filter(|other| other.namespace == id.namespace && other.name == id.name).count();
    if twins > 1 { id.to_string() } else { format!("{}/{}", id.namespace, id.name) }
}

/// Names that look like it; all where none does and they are few.
fn near(ids: &[&ServiceId], name: &str) -> Vec<String> {
    let own = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let mut ranked: Vec<(usize, String)> = ids
        .iter()
        .map(|id| {
            let other = id.name.to_lowercase();
            let holds = !own.is_empty() && (other.contains(&own) || own.contains(&other));
            (if holds { 0 } else { distance(&own, &other) }, format!("{}/{}", id.namespace, id.name))
        })
        .collect();
    ranked.sort();
    let close: Vec<String> = ranked.iter().filter(|(far, _)| *far <= 2).take(MAX_NEAR).map(|(_, name)| name.clone()).collect();
    if close.is_empty() { ranked.into_iter().take(MAX_NEAR).map(|(_, name)| name).collect() } else { close }
}

/// Letters to change, add or drop, of names up to 253 letters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(text::MAX_NAME).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(text::MAX_NAME).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(x != *y)).min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("", "", 0)]
    #[case("qwen-a", "qwen-b", 1)]
    #[case("qwen", "qwen-b", 2)]
    #[case("kitten", "sitting", 3)]
    fn distances(#[case] a: &str, #[case] b: &str, #[case] wanted: usize) {
        assert_eq!((distance(a, b), distance(b, a)), (wanted, wanted));
    }

    #[test]
    fn names_that_fit() {
        let id = |namespace: &str, name: &str, system| ServiceId { namespace: namespace.into(), name: name.into(), system };
        let (a, b, c) = (id("s", "qwen-a", "plain"), id("t", "qwen-a", "plain"), id("t", "qwen-a", "kserve"));
        assert!(is(&a, "qwen-a") && is(&a, "s/qwen-a") && is(&a, "plain/s/qwen-a"));
        assert!(!is(&a, "t/qwen-a") && !is(&a, "plain/s/qwen-a/x") && !is(&a, ""));
        assert_eq!(shortest(&a, &[&a, &b]), "s/qwen-a");
        assert_eq!(shortest(&b, &[&b, &c]), "plain/t/qwen-a");
        assert_eq!(near(&[&a, &b], "qwen-x"), ["s/qwen-a", "t/qwen-a"]);
        assert_eq!(near(&[&a], "zzzzzzzzz"), ["s/qwen-a"]);
        assert_eq!(near(&[], "a"), [""; 0]);
    }
}
