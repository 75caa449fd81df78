//! Metric pages of engines, routers and GPU exporters.

use jiff::Timestamp;

use super::draft::{Draft, Timed};
use super::folder::Folder;
use super::manifest::{Entry, FileKind};
use crate::engines::exposition::{self, Filter};
use crate::engines::{self, MetricPage};
use crate::model::Subject;

/// Most bytes of a page that are read.
pub(super) const MAX_BYTES: u64 = 32 << 20;

/// Reads a page.
pub(super) fn take(folder: &Folder, entry: &Entry, draft: &mut Draft) {
    let Some(mut subject) = entry.subject.clone() else {
        draft.trouble(&entry.file, "a page needs a subject: whose page it is");
        return;
    };
    if entry.kind == FileKind::Metrics && subject.kind() == "engine" {
        // A file named after a pod alone: the one pod of that name, if there is one.
        match draft.pod_named(subject.name()) {
            Ok(pod) => subject = pod,
            Err(0) => {}
            Err(several) => {
                draft.trouble(
                    &entry.file,
                    format!("{several} pods are named {}: add the namespace, metrics-NAMESPACE_POD.txt", subject.name()),
                );
                return;
            }
        }
    }
    let content = match folder.head(&entry.file, MAX_BYTES) {
        Ok(content) => content,
        Err(why) => return draft.trouble(&entry.file, why),
    };
    if content.left_out > 0 {
        draft.trouble(&entry.file, format!("only the first 32 MiB were read, {} bytes were left out", content.left_out));
    }
    let path = entry.path.as_deref().unwrap_or("/metrics");
    if entry.kind == FileKind::Dcgm {
        let what = self::read(&subject, entry.port, path, &content.bytes, &Filter::All);
        draft.exporters.push(Timed { at: entry.at, what });
    } else {
        draft.pages.push(Timed { at: entry.at, what: page(&subject, entry.port, path, &content.bytes) });
    }
}

/// A page of an engine with what is read of engines; of anything else (a router) all of it.
pub(super) fn page(subject: &Subject, port: Option<u16>, path: &str, bytes: &[u8]) -> MetricPage {
    let page = read(subject, port, path, bytes, &engines::wanted());
    if engines::is_engine_page(&page.page) { page } else { read(subject, port, path, bytes, &Filter::All) }
}

fn read(subject: &Subject, port: Option<u16>, path: &str, bytes: &[u8], filter: &Filter<'_>) -> MetricPage {
    MetricPage {
        subject: subject.clone(),
        port,
        path: path.to_owned(),
        at: Timestamp::UNIX_EPOCH,
        page: std::sync::Arc::new(exposition::read(bytes, filter)),
    }
}
