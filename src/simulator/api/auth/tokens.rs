//! Bearer tokens: fixed ones for users, and signed ones for service accounts (HS256, `TokenRequest`).
//!
//! Owns the signing key of the embedded cluster. A token is good until it expires; whether its account still exists is asked at each use.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::Sha256;

use super::User;

/// What the API calls itself in tokens.
pub const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// Who is known by which token.
#[derive(Debug, Clone)]
pub struct Tokens {
    fixed: BTreeMap<String, User>,
    key: [u8; 32],
}

/// For whom a token is made.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The account's namespace.
    pub namespace: &'a str,
    /// The account's name.
    pub name: &'a str,
    /// The account's uid.
    pub uid: &'a str,
    /// For whom the token is; the API itself when empty.
    pub audiences: Vec<String>,
    /// The object that the token dies with: kind, name, uid.
    pub bound: Option<(String, String, String)>,
    /// A unique id.
    pub id: String,
}

/// What a good token of an account says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The account as a user.
    pub user: User,
    /// Its namespace, name and uid.
    pub account: (String, String, String),
    /// For whom the token is.
    pub audiences: Vec<String>,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// One of a fixed user.
    User(User),
    /// One of a service account, which must still exist.
    Account(Account),
}

impl Tokens {
    /// Knows nobody yet; signs with `key`.
    pub fn new(key: [u8; 32]) -> Self {
        Self { fixed: BTreeMap::new(), key }
    }

    /// From now on `token` is `user`.
    pub fn add(&mut self, token: impl Into<String>, user: User) {
        self.fixed.insert(token.into(), user);
    }

    fn signature(&self, signed: &str) -> Option<Vec<u8>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(signed.as_bytes());
        Some(mac.finalize().into_bytes().to_vec())
    }

    /// A token for an account from `now` on for `seconds`.
    pub fn issue(&self, claim: &Claim<'_>, now: Timestamp, seconds: i64) -> String {
        let audiences = if claim.audiences.is_empty() { vec![AUDIENCE.to_owned()] } else { claim.audiences.clone() };
        let mut own = json!({"namespace": claim.namespace, "serviceaccount": {"name": claim.name, "uid": claim.uid}});
        if let Some((kind, name, uid)) = &claim.bound {
            own[kind.to_lowercase()] = json!({"name": name, "uid": uid});
        }
        let payload = json!({
            "aud": audiences, "iss": AUDIENCE, "jti": claim.id, "iat": now.as_second(), "nbf": now.as_second(),
            "exp": now.as_second().saturating_add(seconds), "sub": format!("system:serviceaccount:{}:{}", claim.namespace, claim.name),
            "kubernetes.io": own});
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(json!({"alg": "HS256", "typ": "JWT"})), encode(payload));
        let signature = self.signature(&signed).unwrap_or_default();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Whose token this is; `None` for nobody's, a forged one or an expired one.
    pub fn look_up(&self, token: &str, now: Timestamp) -> Option<Known> {
        if let Some(user) = self.fixed.get(token) {
            return Some(Known::User(user.clone()));
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(signed.as_bytes());
        mac.verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        let payload: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?).ok()?;
        if payload["exp"].as_i64()? <= now.as_second() {
            return None;
        }
        let own = &payload["kubernetes.io"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (namespace, name) = (text(&own["namespace"])?, text(&own["serviceaccount"]["name"])?);
        let uid = text(&own["serviceaccount"]["uid"])?;
        let mut user = User::known(
            format!("system:serviceaccount:{namespace}:{name}"),
            &["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
        );
        user.uid.clone_from(&uid);
        if let Some(id) = payload["jti"].as_str() {
            user.extra.insert("authentication.kubernetes.io/credential-id".into(), vec![format!("JTI={id}")]);
        }
        let audiences = payload["aud"].as_array().into_iter().flatten().filter_map(text).collect();
        Some(Known::Account(Account { user, account: (namespace, name, uid), audiences }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_until_it_expires_and_a_forged_one_never() {
        let tokens = Tokens::new([7; 32]);
        let claim = Claim { namespace: "a", name: "b", uid: "u", audiences: Vec::new(), bound: None, id: "1".into() };
        let now = Timestamp::from_second(1_000_000).unwrap();
        let token = tokens.issue(&claim, now, 600);
        let Some(Known::Account(account)) = tokens.look_up(&token, now) else { panic!("not known") };
        assert_eq!(account.user.name, "system:serviceaccount:a:b");
        assert_eq!(tokens.look_up(&token, Timestamp::from_second(1_000_600).unwrap()), None);
        assert_eq!(Tokens::new([8; 32]).look_up(&token, now), None);
        assert_eq!(tokens.look_up("x.y.z", now), None);
    }
}
