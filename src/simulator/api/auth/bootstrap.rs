//! The roles and bindings with which every cluster starts, read from a table that `tests/cluster/schema/bootstrap` makes.

use serde_json::Value;

/// The objects, in an order in which each can be created: kind, labels, rules and references, without what the server adds.
pub fn objects() -> Vec<Value> {
    serde_json::from_str(include_str!("bootstrap.json")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let objects = objects();
        assert!(objects.len() > 100);
        assert!(objects.iter().any(|o| o["kind"] == "ClusterRole" && o["metadata"]["name"] == "view"));
    }
}
