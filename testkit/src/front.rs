//! A front of TLS and HTTP/2 before a server that speaks neither: it hands requests on and counts
//! what they share.
#![expect(
    clippy::disallowed_methods,
    reason = "a server of tests has no supervisor; its runtime ends with it"
)]

use crate::http::read_answer;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What came through.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Runs on a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Front {
    address: SocketAddr,
    authority: String,
    counts: Arc<Counts>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Front {
    /// Stands before a server. Its certificate is for `localhost`, signed by an authority that
    /// nobody trusts who is not told to.
    pub fn before(server: SocketAddr) -> Self {
        let (tls, authority) = certified();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port on loopback");
        let address = listener.local_addr().expect("its address");
        let counts = Arc::new(Counts::default());
        let shared = counts.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, tls.clone(), server, shared.clone()));
            }
        });
        Self {
            address,
            authority,
            counts,
            runtime: Some(runtime),
        }
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// The certificate of the authority, for whoever is to trust it.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// How many requests were under way together at most.
    pub fn most_at_once(&self) -> usize {
        self.counts.most.load(Ordering::Relaxed)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn certified() -> (TlsAcceptor, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("an authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("its certificate");
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let certificate = CertificateParams::new(names).expect("a name");
    let certificate = certificate.signed_by(&own, &issuer).expect("a certificate");
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], secret);
    let mut config = config.expect("a certificate that fits its key");
    config.alpn_protocols = vec![b"h2".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), authority.pem())
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, server: SocketAddr, counts: Arc<Counts>) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    counts.connections.fetch_add(1, Ordering::Relaxed);
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let counts = counts.clone();
        tokio::spawn(async move {
            let now = counts.now.fetch_add(1, Ordering::Relaxed) + 1;
            counts.most.fetch_max(now, Ordering::Relaxed);
            if hand_on(request, &mut respond, server).await.is_none() {
                respond.send_reset(Reason::INTERNAL_ERROR);
            }
            counts.now.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Asks the server, and answers with what it says while it says it.
async fn hand_on(
    request: Request<RecvStream>,
    respond: &mut SendResponse<Bytes>,
    server: SocketAddr,
) -> Option<()> {
    let (parts, mut body) = request.into_parts();
    let mut bytes = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.ok()?;
        body.flow_control().release_capacity(chunk.len()).ok()?;
        bytes.extend_from_slice(&chunk);
    }
    let mut head = format!("{} {} HTTP/1.1\r\n", parts.method, parts.uri.path());
    for (name, value) in &parts.headers {
        if name != "content-length" {
            head.push_str(&format!("{name}: {}\r\n", value.to_str().ok()?));
        }
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", bytes.len()));
    let mut stream = TcpStream::connect(server).await.ok()?;
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(&bytes).await.ok()?;
    let mut answer = read_answer(stream).await.ok()?;
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        if !["transfer-encoding", "content-length", "connection"].contains(&name.as_str()) {
            response = response.header(name, value);
        }
    }
    let mut out = respond.send_response(response.body(()).ok()?, false).ok()?;
    while let Some(piece) = answer.piece().await.ok()? {
        out.send_data(Bytes::from(piece), false).ok()?;
    }
    out.send_data(Bytes::new(), true).ok()
}
