//! The kubeconfig of an embedded cluster.

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// The text: JSON, which every reader of kubeconfigs reads.
pub(super) fn text(url: &str, authority: &str, client: Option<&(String, String)>, token: &str) -> String {
    let mut cluster = json!({ "server": url });
    if !authority.is_empty() {
        cluster["certificate-authority-data"] = STANDARD.encode(authority).into();
    }
    let user = match client {
        Some((certificate, key)) => {
            json!({"client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key)})
        }
        None => json!({ "token": token }),
    };
    let name = "modeldeck-embedded";
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}], "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}]});
    format!("{config:#}\n")
}

/// Writes it beside its place and moves it there, readable by its owner only.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut name = path.file_name().map(std::ffi::OsStr::to_os_string).unwrap_or_default();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}
