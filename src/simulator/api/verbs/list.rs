//! Get and list: the newest state, a state of the recent past, and pages of one.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::super::http::Shape;
use super::super::kinds::fields::FieldSelector;
use super::super::kinds::labels::LabelSelector;
use super::super::registry::Resource;
use super::super::state::State;
use super::super::status::{ApiError, ApiResult, Cause};
use super::super::store::{Place, Range};
use super::super::table;
use super::update::home;
use super::{Answer, Call, Served, is_served_as_stored, outgoing};

/// What a list or a watch selects.
#[derive(Debug, Clone)]
pub struct Selection {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
    /// The one name of a watch on one object, or empty.
    pub name: String,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
}

impl Selection {
    /// Reads it from a request.
    ///
    /// # Errors
    /// 400 for what is no selector.
    pub fn of(call: &Call, resource: &Resource) -> ApiResult<Self> {
        let more = resource.custom.as_ref().map(|c| c.selectable.clone()).unwrap_or_default();
        let fields = FieldSelector::parse(call.query.get("fieldSelector"), &resource.gr.group, &resource.kind, &more)?;
        let namespace = (resource.namespaced && !call.target.namespace.is_empty()).then(|| call.target.namespace.clone());
        let name = if call.query.get("fieldSelector").is_empty() { call.target.name.clone() } else { String::new() };
        Ok(Self { labels: LabelSelector::parse(call.query.get("labelSelector"))?, fields, name, namespace })
    }

    /// Whether a stored object is selected. `resource` says how its fields are named in the version that was asked for.
    pub fn matches(&self, resource: &Resource, object: &Value) -> bool {
        let named = self.name.is_empty() || object.pointer("/metadata/name").and_then(Value::as_str) == Some(&self.name);
        let at_home = self.namespace.as_deref().is_none_or(|n| object.pointer("/metadata/namespace").and_then(Value::as_str) == Some(n));
        if !named || !at_home || !self.labels.matches(object.pointer("/metadata/labels")) {
            return false;
        }
        match self.fields.is_everything() || is_served_as_stored(resource) {
            true => self.fields.matches(object),
            false => self.fields.matches(&outgoing(resource, object)),
        }
    }

    /// Whether all objects of its namespaces are selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.name.is_empty()
    }
}

/// Serves a GET of one object.
///
/// # Errors
/// 404.
pub fn get(state: &State, call: &Call, resource: &Served) -> ApiResult<Answer> {
    let target = &call.target;
    let Some(object) = state.get(&resource.stored(), home(resource, &target.namespace), &target.name) else {
        return Err(ApiError::not_found(&resource.gr, &target.name));
    };
    Ok(Answer::ok(outgoing(resource, &object)))
}

/// All selected objects, newest.
///
/// # Errors
/// 400 for what is no selector.
pub fn select(state: &State, call: &Call, resource: &Served) -> ApiResult<Vec<Arc<Value>>> {
    let selection = Selection::of(call, resource)?;
    let stored = resource.stored();
    let range = Range { namespace: selection.namespace.as_deref(), after: None };
    let all = state.store.list(&stored, range).map(|(_, s)| s.object.clone());
    Ok(all.filter(|object| selection.matches(resource, object)).collect())
}

/// A page of a list.
struct Page {
    items: Vec<Arc<Value>>,
    revision: u64,
    next: Option<String>,
    remaining: Option<usize>,
}

/// The token to go on after a place; inside of one namespace it tells the name alone, as the real server's does.
fn token(revision: i64, place: &Place, inside: bool) -> String {
    let start = if inside || place.0.is_empty() { format!("{}\0", place.1) } else { format!("{}/{}\0", place.0, place.1) };
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
}

fn read_token(text: &str, namespace: &str) -> Option<(i64, Place)> {
    let token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?).ok()?;
    let start = token["start"].as_str()?.trim_end_matches('\0').to_owned();
    let (namespace, name) = start.split_once('/').unwrap_or((namespace, &start));
    (token["v"] == "meta.k8s.io/v1").then_some(())?;
    Some((token["rv"].as_i64()?, (namespace.to_owned(), name.to_owned())))
}

/// The 504 for a version that is yet to come.
pub fn too_new(wanted: u64, newest: u64) -> ApiError {
    let mut error = ApiError::new(504, "Timeout", format!("Too large resource version: {wanted}, current: {newest}"))
        .with_details(json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}));
    error.retry_after = Some(1);
    error
}

/// The 410 of a page whose list is no longer kept, with the token to go on without it.
fn expired_page(place: &Place, inside: bool) -> ApiError {
    let next = token(-1, place, inside);
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
    let mut error = ApiError::expired(message);
    error.next = Some(next);
    error
}

fn page(state: &State, call: &Call, resource: &Served) -> ApiResult<Page> {
    let selection = Selection::of(call, resource)?;
    let query = &call.query;
    let (version, matching, next) = (query.get("resourceVersion"), query.get("resourceVersionMatch"), query.get("continue"));
    check_options(version, matching, next)?;
    let wanted: u64 = match version {
        "" => 0,
        text => text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })?,
    };
    let newest = state.store.revision();
    if wanted > newest {
        return Err(too_new(wanted, newest));
    }
    let limit = match query.number("limit")? {
        // What is served from memory comes whole.
        Some(limit) if limit > 0 && (version != "0" || !next.is_empty()) => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let (revision, after) = match next {
        "" if matching == "Exact" => (wanted, None),
        "" => (newest, None),
        text => {
            let (revision, place) = read_token(text, selection.namespace.as_deref().unwrap_or_default())
                .ok_or_else(|| ApiError::bad_request("invalid continue token: continue key is not valid: it is no token of this server"))?;
            (u64::try_from(revision).unwrap_or(newest), Some(place))
        }
    };
    let range = Range { namespace: selection.namespace.as_deref(), after: after.as_ref() };
    let stored = resource.stored();
    let all: Box<dyn Iterator<Item = (Place, Arc<Value>)>> = match revision >= newest {
        true => Box::new(state.store.list(&stored, range).map(|(place, s)| (place.clone(), s.object.clone()))),
        false => match (state.store.list_at(&stored, range, revision), &after) {
            (Some(past), _) => Box::new(past.into_iter()),
            (None, Some(place)) => return Err(expired_page(place, selection.namespace.is_some())),
            (None, None) => return Err(ApiError::expired("The resourceVersion for the provided list is too old.")),
        },
    };
    let mut all = all.filter(|(_, object)| selection.matches(resource, object));
    let (mut items, mut last) = (Vec::new(), None);
    for (place, object) in all.by_ref().take(limit) {
        items.push(object);
        last = Some(place);
    }
    let rest = if limit == usize::MAX { 0 } else { all.count() };
    let next = last.filter(|_| rest > 0).map(|place| token(i64::try_from(revision).unwrap_or(0), &place, selection.namespace.is_some()));
    Ok(Page { items, revision, next, remaining: (rest > 0 && selection.is_everything()).then_some(rest) })
}

fn check_options(version: &str, matching: &str, next: &str) -> ApiResult<()> {
    let refuse = |cause: Cause| Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &[cause]));
    if !matching.is_empty() {
        if version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            return refuse(Cause::forbidden("resourceVersionMatch", why));
        }
        if !next.is_empty() {
            return refuse(Cause::forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !["Exact", "NotOlderThan"].contains(&matching) {
            return refuse(Cause::unsupported("resourceVersionMatch", &matching.into(), &["Exact", "NotOlderThan", ""]));
        }
        if matching == "Exact" && version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            return refuse(Cause::forbidden("resourceVersionMatch", why));
        }
    }
    if !next.is_empty() && !version.is_empty() && version != "0" {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(())
}

/// An object in a typed list: without apiVersion and kind.
struct Item<'a>(&'a Value, bool);

impl serde::Serialize for Item<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) if !self.1 => {
                serializer.collect_map(members.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind")))
            }
            other => other.serialize(serializer),
        }
    }
}

/// Serves a list; the answer is JSON text, for it can be large.
///
/// # Errors
/// As Kubernetes gives them.
pub fn list(state: &State, call: &Call, resource: &Served) -> ApiResult<Vec<u8>> {
    let page = page(state, call, resource)?;
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some(next) = page.next {
        metadata["continue"] = next.into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    let broken = |error: serde_json::Error| ApiError::internal(error);
    match call.accept.object() {
        Shape::Table => {
            let include = table::Include::parse(call.query.get("includeObject"))?;
            let rows: Vec<Value> = page.items.iter().map(|object| table::row(resource, object, include, state.now)).collect();
            let mut table = table::head(resource);
            table["metadata"] = metadata;
            table["rows"] = rows.into();
            serde_json::to_vec(&table).map_err(broken)
        }
        Shape::Metadata => {
            let items: Vec<Value> = page.items.iter().map(|object| table::metadata_only(object)).collect();
            let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items});
            serde_json::to_vec(&list).map_err(broken)
        }
        _ => {
            let mut out = Vec::with_capacity(256 + page.items.len() * 1024);
            let head = json!({"kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata}).to_string();
            out.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
            out.extend_from_slice(b",\"items\":[");
            let plain = is_served_as_stored(resource);
            for (n, object) in page.items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                let whole = resource.custom.is_some();
                match plain {
                    true => serde_json::to_writer(&mut out, &Item(object, whole)).map_err(broken)?,
                    false => serde_json::to_writer(&mut out, &Item(&outgoing(resource, object), whole)).map_err(broken)?,
                }
            }
            out.extend_from_slice(b"]}\n");
            Ok(out)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_continue_token_is_read_back() {
        let place = ("ns".to_owned(), "name".to_owned());
        assert_eq!(read_token(&token(7, &place, false), ""), Some((7, place.clone())));
        assert_eq!(read_token(&token(7, &place, true), "ns"), Some((7, place)));
        assert_eq!(read_token("nonsense", ""), None);
    }
}
