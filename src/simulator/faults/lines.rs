//! Faults in the stream of a watch, line by line.

use std::collections::VecDeque;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::Value;

use super::super::api::status::ApiError;
use super::{Body, Fault, FaultError};

/// How many past lines are kept to come again.
const KEPT: usize = 16;

struct Disturbed {
    body: Body,
    faults: Vec<Fault>,
    buffer: Vec<u8>,
    ready: VecDeque<Bytes>,
    past: VecDeque<Bytes>,
    told: u32,
    over: bool,
}

/// A watch's body with faults in it.
pub(super) fn disturb(body: Body, faults: Vec<Fault>) -> Body {
    let state = Disturbed { body, faults, buffer: Vec::new(), ready: VecDeque::new(), past: VecDeque::new(), told: 0, over: false };
    let stream = futures::stream::unfold(state, |mut state| async move { state.next().await.map(|frame| (frame, state)) });
    StreamBody::new(stream).boxed_unsync()
}

fn object_of(line: &[u8]) -> Option<String> {
    let event: Value = serde_json::from_slice(line).ok()?;
    (event["type"] == "MODIFIED").then(|| event.pointer("/object/metadata/uid").map(ToString::to_string))?
}

impl Disturbed {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, FaultError>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                for fault in &self.faults {
                    if let Fault::Slow(time) = fault {
                        tokio::time::sleep(*time).await;
                    }
                }
                return Some(Ok(Frame::data(line)));
            }
            if self.over {
                return None;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    self.buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                    self.lines();
                }
                Some(Err(error)) => return Some(Err(error)),
                None => return None,
            }
        }
    }

    fn lines(&mut self) {
        let mut fresh: Vec<Bytes> = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &self.buffer) {
            let rest = self.buffer.split_off(end + 1);
            fresh.push(std::mem::replace(&mut self.buffer, rest).into());
        }
        if self.faults.contains(&Fault::Merge) {
            let names: Vec<Option<String>> = fresh.iter().map(|line| object_of(line)).collect();
            let mut n = 0;
            fresh.retain(|_| {
                n += 1;
                let name = names.get(n - 1).cloned().flatten();
                name.is_none() || !names.get(n..).unwrap_or_default().contains(&name)
            });
        }
        for line in fresh {
            self.line(line);
            if self.over {
                return;
            }
        }
    }

    fn line(&mut self, line: Bytes) {
        self.told += 1;
        let every = |n: u32| n > 0 && self.told.is_multiple_of(n);
        let mut out = vec![line.clone()];
        for fault in &self.faults {
            match fault {
                Fault::Cut(after) if self.told > *after => {
                    out.clear();
                    self.over = true;
                }
                Fault::Expire(after) if self.told > *after => {
                    let error = ApiError::expired("too old resource version").to_value();
                    out = vec![format!("{}\n", serde_json::json!({"type": "ERROR", "object": error})).into()];
                    self.over = true;
                }
                Fault::Drop(n) if every(*n) => out.clear(),
                Fault::Repeat(n) if every(*n) => out.push(line.clone()),
                Fault::Stale(n) if every(*n) => out.extend(self.past.front().cloned()),
                _ => {}
            }
        }
        self.past.push_back(line);
        if self.past.len() > KEPT {
            self.past.pop_front();
        }
        self.ready.extend(out);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rstest::rstest;

    async fn through(lines: &[&str], faults: Vec<Fault>) -> Vec<String> {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let body = http_body_util::Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
        let bytes = disturb(body, faults).collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap().lines().map(str::to_owned).collect()
    }

    #[rstest]
    #[case(Fault::Cut(2), "a b")]
    #[case(Fault::Drop(2), "a c")]
    #[case(Fault::Repeat(3), "a b c c d")]
    #[case(Fault::Stale(3), "a b c a d")]
    fn lines_are_cut_dropped_repeated_and_old(#[case] fault: Fault, #[case] expected: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(through(&["a", "b", "c", "d"], vec![fault])).join(" "), expected);
    }

    #[test]
    fn changes_of_one_object_are_merged_and_a_stream_can_expire() {
        let change = |uid: &str, v: u32| format!("{{\"type\":\"MODIFIED\",\"object\":{{\"metadata\":{{\"uid\":\"{uid}\",\"v\":{v}}}}}}}");
        let lines = [change("a", 1), change("b", 1), change("a", 2)];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(through(&lines, vec![Fault::Merge])), [change("b", 1), change("a", 2)]);
        let told = runtime.block_on(through(&lines, vec![Fault::Expire(1)]));
        assert!(told.len() == 2 && told[1].contains("\"code\":410"));
    }
}
