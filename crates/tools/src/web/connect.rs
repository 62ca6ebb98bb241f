//! How connections are made, and why one could not be.

use super::address::{Guard, Refused};
use std::error::Error;
use std::sync::Arc;

/// A client that only connects to what the guard lets through.
pub(super) fn build(guard: Guard, tls: bool) -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls_config(tls)?)
        .dns_resolver(guard)
        // A proxy would resolve names by itself, past the guard.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(2)
        .user_agent(concat!("gaffer/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| why(&error))
}

/// The system's certificates cost milliseconds and megabytes, so they are read only for https.
fn tls_config(tls: bool) -> Result<rustls::ClientConfig, String> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = if tls {
        let verified = builder.with_platform_verifier();
        verified
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
    } else {
        builder
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// A refusal says all there is to say; else the innermost cause tells what happened.
pub(super) fn why(error: &reqwest::Error) -> String {
    let mut inner: &dyn Error = error;
    loop {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return refused.to_string();
        }
        match inner.source() {
            Some(next) => inner = next,
            None => return inner.to_string(),
        }
    }
}
