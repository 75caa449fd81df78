//! Runs a script on a target and writes down what it answered.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use crate::normalise::{Names, ages};
use crate::script::{Script, Step};
use crate::target::{Answer, Target, whole};

struct Run<'a> {
    target: &'a Target,
    names: Names,
    vars: BTreeMap<String, String>,
    watches: BTreeMap<String, (Body, Vec<u8>)>,
}

/// The trace: one entry for each step that is told.
pub(crate) async fn run(target: &Target, script: &Script) -> Vec<Value> {
    let _one_at_a_time = target.lock.try_lock();
    let ns = format!("b-{}", script.name);
    let mut run = Run { target, names: Names::default(), vars: BTreeMap::new(), watches: BTreeMap::new() };
    run.vars.insert("ns".into(), ns.clone());
    run.set_up(&ns).await;
    let mut trace = Vec::new();
    for (n, step) in script.steps.iter().enumerate() {
        let entry = run.step(step).await;
        if !step.quiet {
            trace.push(json!({"step": n + 1, "asked": step.request, "answer": entry}));
        }
    }
    run.tear_down(&ns).await;
    trace
}

fn admin(method: &str, path: &str, body: &Value) -> Request<Vec<u8>> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", "Bearer admin-token")
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

impl Run<'_> {
    async fn set_up(&self, ns: &str) {
        self.tear_down(ns).await;
        let namespace = json!({"apiVersion":"v1","kind":"Namespace","metadata":{"name":ns}});
        let made = self.target.send(admin("POST", "/api/v1/namespaces", &namespace)).await;
        assert_eq!(made.code, 201, "{}", whole(made.body).await);
        for path in
            [format!("/api/v1/namespaces/{ns}/serviceaccounts/default"), format!("/api/v1/namespaces/{ns}/configmaps/kube-root-ca.crt")]
        {
            self.wait(&path, 200).await;
        }
    }

    async fn tear_down(&self, ns: &str) {
        self.target.send(admin("DELETE", &format!("/api/v1/namespaces/{ns}"), &Value::Null)).await;
        self.wait(&format!("/api/v1/namespaces/{ns}"), 404).await;
    }

    async fn wait(&self, path: &str, code: u16) {
        for _ in 0..600 {
            if self.target.send(admin("GET", path, &Value::Null)).await.code == code {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{path} does not come to {code}");
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.vars {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    async fn ask(&self, step: &Step) -> Answer {
        let request = self.fill(&step.request);
        let (method, path) = request.split_once(' ').unwrap_or_else(|| panic!("no request: {request:?}"));
        let mut builder = Request::builder().method(method).uri(path);
        let token = match step.user.as_str() {
            "" | "admin" => "admin-token".to_owned(),
            "alice" => "alice-token".to_owned(),
            "bob" => "bob-token".to_owned(),
            "nobody" => String::new(),
            other => self.fill(other),
        };
        if !token.is_empty() {
            builder = builder.header("authorization", format!("Bearer {token}"));
        }
        let has_body = !step.body.is_null() || !step.text.is_empty();
        if !step.content_type.is_empty() {
            builder = builder.header("content-type", &step.content_type);
        } else if has_body {
            builder = builder.header("content-type", "application/json");
        }
        if !step.accept.is_empty() {
            builder = builder.header("accept", &step.accept);
        }
        builder = builder.header("user-agent", "behaviour/1");
        for (name, value) in &step.headers {
            builder = builder.header(name, self.fill(value));
        }
        let body = if step.text.is_empty() { step.body.to_string() } else { step.text.clone() };
        let body = if has_body { self.fill(&body).into_bytes() } else { Vec::new() };
        self.target.send(builder.body(body).unwrap()).await
    }

    async fn step(&mut self, step: &Step) -> Value {
        if let Some((name, count)) = step.events.iter().next() {
            return self.events(name, *count).await;
        }
        if !step.watch.is_empty() {
            let answer = self.ask(step).await;
            let code = answer.code;
            if code != 200 {
                let mut body = serde_json::from_str(&whole(answer.body).await).unwrap_or(Value::Null);
                self.names.value("", &mut body);
                return json!({"code": code, "body": body});
            }
            self.watches.insert(step.watch.clone(), (answer.body, Vec::new()));
            return json!({ "code": code });
        }
        for _ in 0..200 {
            let answer = self.ask(step).await;
            let (code, headers) = (answer.code, answer.headers);
            let text = whole(answer.body).await;
            let body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            if !step.until.iter().all(|(pointer, wanted)| {
                let found = if pointer == "code" { json!(code) } else { body.pointer(pointer).cloned().unwrap_or(Value::Null) };
                found == *wanted
            }) {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            for (name, pointer) in &step.save {
                let found = body.pointer(pointer).unwrap_or_else(|| panic!("{}: nothing at {pointer} in {body}", step.request));
                let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                self.vars.insert(name.clone(), text);
            }
            return self.told(step, code, &headers, body);
        }
        json!(format!("<never {:?}>", step.until))
    }

    fn told(&mut self, step: &Step, code: u16, headers: &http::HeaderMap, mut body: Value) -> Value {
        ages(&mut body);
        for pointer in &step.except {
            if let Some((parent, name)) = pointer.rsplit_once('/')
                && let Some(members) = body.pointer_mut(parent).and_then(Value::as_object_mut)
            {
                members.remove(name);
            }
        }
        if !step.only.is_empty() {
            let chosen: serde_json::Map<String, Value> =
                step.only.iter().map(|p| (p.clone(), body.pointer(p).cloned().unwrap_or(Value::Null))).collect();
            body = Value::Object(chosen);
            // The last name of a pointer tells what a value is.
            for (pointer, value) in body.as_object_mut().unwrap().iter_mut() {
                let name = pointer.rsplit('/').next().unwrap_or_default().to_owned();
                self.names.value(&name, value);
            }
        } else {
            self.names.value("", &mut body);
        }
        let mut told = json!({"code": code, "body": body});
        for name in ["content-type", "warning", "retry-after"] {
            let values: Vec<String> = headers.get_all(name).iter().map(|v| self.names.text(v.to_str().unwrap_or("?"))).collect();
            let usual = name == "content-type" && values == ["application/json"];
            if !values.is_empty() && !usual {
                told[name] = json!(values);
            }
        }
        told
    }

    async fn events(&mut self, name: &str, count: usize) -> Value {
        let (mut body, mut buffer) = self.watches.remove(name).unwrap_or_else(|| panic!("no watch {name}"));
        let mut events = Vec::new();
        while events.len() < count {
            if let Some(end) = buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).unwrap();
                if let Some(table) = event.get_mut("object") {
                    ages(table);
                }
                if event["type"] == "BOOKMARK" {
                    // The newest version of all: it depends on what else happened.
                    event["object"]["metadata"]["resourceVersion"] = json!("<newest>");
                }
                self.names.value("", &mut event);
                events.push(event);
                continue;
            }
            match tokio::time::timeout(Duration::from_secs(5), body.frame()).await {
                Ok(Some(Ok(frame))) => buffer.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Ok(_) => {
                    events.push(json!("<end>"));
                    break;
                }
                Err(_) => {
                    events.push(json!("<nothing more>"));
                    break;
                }
            }
        }
        self.watches.insert(name.to_owned(), (body, buffer));
        json!({ "events": events })
    }
}
