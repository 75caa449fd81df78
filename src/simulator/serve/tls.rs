//! Throw-away certificates: an authority, the server's, and those of clients with a user in their subject.
//!
//! Owns keys that never leave the process but by the kubeconfig.

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::super::api::auth::User;
use super::ServeError;

/// The authority that signs for one cluster.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

fn wrong(why: impl fmt::Display) -> ServeError {
    ServeError::Certificates(why.to_string())
}

fn params(name: &str, groups: &[&str], hosts: &[&str]) -> Result<CertificateParams, ServeError> {
    let mut params = CertificateParams::new(hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()).map_err(wrong)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    for group in groups {
        subject.push(DnType::OrganizationName, *group);
    }
    params.distinguished_name = subject;
    Ok(params)
}

impl Authority {
    /// A new one.
    pub(super) fn new() -> Result<Self, ServeError> {
        let mut params = params("modeldeck-embedded-ca", &[], &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(wrong)?;
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, key).map_err(wrong)? })
    }

    /// Its certificate.
    pub(super) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// What the server shows and whom it believes.
    pub(super) fn server(&self) -> Result<Arc<ServerConfig>, ServeError> {
        let mut params = params("kube-apiserver", &[], &["127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc"])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(wrong)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        // Post-quantum key exchange would need a C library; these certificates live for one run on loopback.
        #[allow(deprecated)]
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).map_err(wrong)?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(wrong)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(wrong)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(wrong)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Certificate and key of a client.
    pub(super) fn client(&self, name: &str, groups: &[&str]) -> Result<(String, String), ServeError> {
        let mut params = params(name, groups, &[])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().map_err(wrong)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

/// The user of a client certificate that the authority signed: common name and organizations.
pub(super) fn user(der: &CertificateDer<'_>) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups: Vec<&str> = subject.iter_organization().filter_map(|o| o.as_str().ok()).collect();
    Some(User::known(name, &groups))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    #[test]
    fn a_client_certificate_tells_user_and_groups() {
        let authority = Authority::new().unwrap();
        let (pem, _) = authority.client("alice", &["developers"]).unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let user = user(&der).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.as_slice()),
            ("alice", &["developers".to_owned(), "system:authenticated".to_owned()][..])
        );
        assert!(authority.server().is_ok());
    }
}
