//! The rules by which traces are made comparable. There are no others.
//!
//! 1. uids, and resource versions: named by the order in which they appear; those of bookmarks: `<newest>`.
//! 2. times: `<time>`; ages in tables: `<age>`.
//! 3. continue tokens, and names that the server generated: `<continue>`, `<generated>`.
//! 4. addresses and node ports that the server chose: `<address>`, `<port>`.
//! 5. the order of managedFields entries of the same time, and of causes and fields named in one message.
//! 6. lists of the whole cluster are compared by `only` in the script, where others' objects would stand in them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Names {
    seen: BTreeMap<String, String>,
}

fn is_uid(text: &str) -> bool {
    text.len() == 36 && text.bytes().enumerate().all(|(n, b)| if matches!(n, 8 | 13 | 18 | 23) { b == b'-' } else { b.is_ascii_hexdigit() })
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().get(10) == Some(&b'T')
}

impl Names {
    fn name(&mut self, kind: &str, text: &str) -> String {
        let count = self.seen.values().filter(|v| v.starts_with(&format!("<{kind}:"))).count();
        self.seen.entry(format!("{kind} {text}")).or_insert_with(|| format!("<{kind}:{}>", count + 1)).clone()
    }

    /// Normalises a value under a member name.
    pub(crate) fn value(&mut self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) => {
                *text = match name {
                    "resourceVersion" if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() => self.name("version", text),
                    "continue" if !text.is_empty() => "<continue>".to_owned(),
                    "clusterIP" if text.as_str() != "None" && !text.is_empty() => "<address>".to_owned(),
                    "token" => "<token>".to_owned(),
                    _ => self.text(text),
                };
            }
            Value::Number(_) if name == "nodePort" => *value = json!("<port>"),
            Value::Array(items) => {
                if name == "clusterIPs" && items.iter().any(|i| i != "None") {
                    *items = vec![json!("<address>")];
                }
                if name == "managedFields" {
                    items.sort_by_key(|entry| {
                        let of = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
                        (of("operation"), of("manager"), of("subresource"), of("apiVersion"))
                    });
                }
                for item in items.iter_mut() {
                    self.value("", item);
                }
                if name == "causes" {
                    items.sort_by_key(ToString::to_string);
                }
            }
            Value::Object(members) => {
                // Versions are named in the order of keys, which both sides share.
                let named: Vec<String> = members.keys().filter(|k| k.starts_with("k:{\"uid\":")).cloned().collect();
                for key in named {
                    let uid = key.trim_start_matches("k:{\"uid\":\"").trim_end_matches("\"}").to_owned();
                    let name = self.name("uid", &uid);
                    let member = members.remove(&key).unwrap_or_default();
                    members.insert(format!("k:{{\"uid\":\"{name}\"}}"), member);
                }
                for (name, member) in members.iter_mut() {
                    self.value(name, member);
                }
            }
            _ => {}
        }
    }

    /// Normalises what stands in a text.
    pub(crate) fn text(&mut self, text: &str) -> String {
        if is_uid(text) {
            return self.name("uid", text);
        }
        if is_time(text) {
            return "<time>".to_owned();
        }
        let mut words: Vec<String> = Vec::new();
        for word in text.split(' ') {
            let bare = word.trim_matches(|c: char| matches!(c, '"' | '\'' | ',' | '(' | ')' | '.' | ':'));
            if is_uid(bare) {
                let name = self.name("uid", bare);
                words.push(word.replace(bare, &name));
            } else if word.starts_with('(') && bare.len() > 1 && bare.bytes().all(|b| b.is_ascii_digit()) {
                let name = self.name("version", bare);
                words.push(word.replace(bare, &name));
            } else if is_time(bare) {
                words.push(word.replace(bare, "<time>"));
            } else {
                words.push(word.to_owned());
            }
        }
        words.join(" ")
    }
}

/// Replaces ages in the cells of a table.
pub(crate) fn ages(table: &mut Value) {
    let Some(columns) = table.get("columnDefinitions").and_then(Value::as_array).cloned() else { return };
    let Some(rows) = table.get_mut("rows").and_then(Value::as_array_mut) else { return };
    for row in rows {
        for (cell, column) in row["cells"].as_array_mut().into_iter().flatten().zip(&columns) {
            if matches!(column["name"].as_str(), Some("Age" | "Last Seen" | "First Seen")) {
                *cell = json!("<age>");
            }
        }
    }
}
