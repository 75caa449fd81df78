//! The query of a request.

use super::super::status::{ApiError, ApiResult};

/// Names and values, decoded, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`.
    pub fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first value of a name; empty when there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str())
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Whether a name is given and its value is not a no.
    pub fn flag(&self, name: &str) -> bool {
        self.0.iter().any(|(n, value)| n == name && !matches!(value.as_str(), "false" | "0"))
    }

    /// A whole number.
    ///
    /// # Errors
    /// 400 when something else is given.
    pub fn number(&self, name: &str) -> ApiResult<Option<i64>> {
        match self.get(name) {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
            }
        }
    }

    /// Whether nothing is to be stored.
    ///
    /// # Errors
    /// 422 for a value that is not `All`.
    pub fn dry_run(&self) -> ApiResult<bool> {
        let given: Vec<&str> = self.all("dryRun").collect();
        match given.iter().find(|v| **v != "All") {
            Some(other) => {
                let cause = super::super::status::Cause::unsupported("dryRun", &serde_json::json!([other]), &["All"]);
                Err(ApiError::invalid("meta.k8s.io", "CreateOptions", "", &[cause]))
            }
            None => Ok(!given.is_empty()),
        }
    }
}
