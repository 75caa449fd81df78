//! In which form a client wants its answer.

use super::super::status::{ApiError, ApiResult};

/// The form of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// As they are.
    #[default]
    Object,
    /// `as=Table`.
    Table,
    /// `as=PartialObjectMetadata` and `as=PartialObjectMetadataList`.
    Metadata,
    /// `as=APIGroupDiscoveryList`, by its version.
    Discovery(&'static str),
}

/// What is accepted, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accept {
    shapes: Vec<Shape>,
    yaml: bool,
}

impl Accept {
    /// Reads the `Accept` header.
    ///
    /// # Errors
    /// 406 when nothing of what is served is accepted.
    pub fn parse(header: &str) -> ApiResult<Self> {
        let mut accept = Self::default();
        for part in header.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let mut pieces = part.split(';').map(str::trim);
            let media = pieces.next().unwrap_or_default();
            let parameters: Vec<(&str, &str)> = pieces.filter_map(|p| p.split_once('=')).collect();
            let parameter = |name: &str| parameters.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value);
            let shape = match (parameter("as"), parameter("v"), parameter("g")) {
                ("", _, _) => Shape::Object,
                ("Table", "v1" | "v1beta1", "meta.k8s.io") => Shape::Table,
                ("PartialObjectMetadata" | "PartialObjectMetadataList", "v1" | "v1beta1", "meta.k8s.io") => Shape::Metadata,
                ("APIGroupDiscoveryList", "v2", "apidiscovery.k8s.io") => Shape::Discovery("v2"),
                ("APIGroupDiscoveryList", "v2beta1", "apidiscovery.k8s.io") => Shape::Discovery("v2beta1"),
                _ => continue,
            };
            match media {
                "application/json" | "*/*" | "application/*" | "text/plain" | "text/*" => accept.shapes.push(shape),
                "application/yaml" if accept.shapes.is_empty() => {
                    accept.yaml = true;
                    accept.shapes.push(shape);
                }
                // Who prefers protobuf takes JSON too, or is told below.
                _ => {}
            }
        }
        if header.trim().is_empty() {
            accept.shapes.push(Shape::Object);
        }
        match accept.shapes.is_empty() {
            true => Err(ApiError::new(
                406,
                "NotAcceptable",
                "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/json;stream=watch",
            )
            .with_details(serde_json::json!({}))),
            false => Ok(accept),
        }
    }

    /// The form for an object or a list of a resource.
    pub fn object(&self) -> Shape {
        self.shapes.iter().copied().find(|s| !matches!(s, Shape::Discovery(_))).unwrap_or_default()
    }

    /// The version of aggregated discovery that is wanted before the plain form, if it is.
    pub fn discovery(&self) -> Option<&'static str> {
        match self.shapes.first() {
            Some(Shape::Discovery(version)) => Some(version),
            _ => None,
        }
    }

    /// Whether YAML is wanted.
    pub fn yaml(&self) -> bool {
        self.yaml
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_served_wins() {
        let table = Accept::parse("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap();
        assert_eq!(table.object(), Shape::Table);
        let typed = Accept::parse("application/vnd.kubernetes.protobuf,application/json").unwrap();
        assert_eq!(typed.object(), Shape::Object);
        assert_eq!(Accept::parse("application/cbor").unwrap_err().code, 406);
        let discovery = Accept::parse("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json").unwrap();
        assert_eq!(discovery.discovery(), Some("v2"));
    }
}
