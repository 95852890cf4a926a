//! The client's end against a server made of the same library: who trusts whom, and what becomes of files that change.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::fs;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Ca = Issuer<'static, KeyPair>;

/// An authority, and the text of its certificate.
fn authority(name: &str) -> (Ca, String) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    (Issuer::new(params, key), pem)
}

/// A key and a certificate for a name, which may be none.
fn certificate(ca: &Ca, name: Option<&str>) -> (String, String) {
    let names: Vec<String> = name.into_iter().map(str::to_string).collect();
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(names).expect("a name");
    (key.serialize_pem(), params.signed_by(&key, ca).expect("a certificate").pem())
}

struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        Files { directory: tempfile::tempdir().expect("a directory") }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.path().join(name), text).expect("it can be written");
    }

    fn identity(&self, (key, certificate): (String, String)) {
        self.write("key.pem", &key);
        self.write("cert.pem", &certificate);
    }

    fn trusting(&self) -> TlsOptions {
        TlsOptions::new(self.directory.path().join("ca.pem"))
    }

    fn showing(&self) -> TlsOptions {
        let at = |name| self.directory.path().join(name);
        self.trusting().identity(at("key.pem"), at("cert.pem"))
    }

    /// A message without the directory's name.
    fn plain(&self, error: &TlsError) -> String {
        error.to_string().replace(&format!("{}/", self.directory.path().display()), "")
    }
}

/// A server that demands certificates of `clients` if there are any such; it greets one client.
async fn server((key, chain): (String, String), clients: Option<&str>) -> (u16, tokio::task::JoinHandle<()>) {
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has them");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(certificate(ca)).expect("an authority");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let config = builder.with_single_cert(vec![certificate(&chain)], key).expect("they go together");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        // A client that is refused, or refuses, is the test's to look at.
        if let Ok(mut stream) = acceptor.accept(stream).await {
            let _ = stream.write_all(b"hello").await;
            let _ = stream.shutdown().await;
        }
    });
    (port, task)
}

/// What the client gets from the server, or the reason why it gets nothing.
async fn greeting(client: &TlsClient, port: u16, host: &str) -> Result<String, String> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let mut stream = client.connect(stream, host).await.map_err(|error| reason(&error))?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.map_err(|error| reason(&error))?;
    Ok(text)
}

async fn check(client: &TlsClient, shown: (String, String), clients: Option<&str>, want: Result<&str, &str>) {
    let (port, task) = server(shown, clients).await;
    let got = greeting(client, port, "127.0.0.1").await;
    assert_eq!(got.as_deref().map_err(String::as_str), want);
    task.await.expect("the server ends");
}

#[tokio::test]
async fn the_chain_counts_and_the_name_where_it_is_asked_for() {
    let (ca, ca_pem) = authority("one");
    let (other, other_pem) = authority("two");
    let files = Files::new();
    files.write("ca.pem", &ca_pem);
    files.identity(certificate(&ca, None));
    let client = |options| TlsClient::new(options).expect("the files are good");
    let named = |name| certificate(&ca, Some(name));

    let any = client(files.trusting());
    check(&any, certificate(&ca, None), None, Ok("hello")).await;
    check(&any, named("elsewhere.example"), None, Ok("hello")).await;
    let wrong = "the server's certificate is not signed by an authority of the CA certificate file";
    check(&any, certificate(&other, None), None, Err(wrong)).await;

    let host = client(files.trusting().name_check(NameCheck::Host));
    check(&host, named("127.0.0.1"), None, Ok("hello")).await;
    let (port, _task) = server(named("elsewhere.example"), None).await;
    let refused = greeting(&host, port, "127.0.0.1").await.expect_err("another name");
    assert!(refused.starts_with("the server's certificate is for another name"), "{refused}");
    let by_name = client(files.trusting().name_check(NameCheck::Name("elsewhere.example".to_string())));
    check(&by_name, named("elsewhere.example"), None, Ok("hello")).await;

    let none =
        "the server ended the TLS connection: it demands a certificate of its clients, and none was given";
    check(&any, named("a"), Some(&ca_pem), Err(none)).await;
    let shown = client(files.showing());
    check(&shown, named("a"), Some(&ca_pem), Ok("hello")).await;
    let (port, _task) = server(named("a"), Some(&other_pem)).await;
    let refused = greeting(&shown, port, "a").await.expect_err("another authority");
    assert_eq!(refused, "the server does not trust the authority that signed this client's certificate");
}

#[tokio::test]
async fn a_port_without_tls_is_told_apart() {
    let (_, ca_pem) = authority("one");
    let files = Files::new();
    files.write("ca.pem", &ca_pem);
    let client = TlsClient::new(files.trusting()).expect("the file is good");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        stream.write_all(b"{\"method\":\"echo\",\"params\":[],\"id\":1}").await.expect("it is open");
        // Until the client has seen it.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let refused = greeting(&client, port, "localhost").await.expect_err("no TLS there");
    assert_eq!(refused, "the server does not speak TLS on this port");
    task.await.expect("the server ends");
}

#[test]
fn files_that_are_not_what_they_should_be() {
    let (ca, ca_pem) = authority("one");
    let (key, certificate_pem) = certificate(&ca, None);
    let (other_key, _) = certificate(&ca, None);
    let check = |ca: &str, key: &str, certificate: &str, want: &str| {
        let files = Files::new();
        files.write("ca.pem", ca);
        files.identity((key.to_string(), certificate.to_string()));
        let error = TlsClient::new(files.showing()).expect_err(want);
        assert_eq!(files.plain(&error), want);
    };
    check("", &key, &certificate_pem, "ca.pem: no certificate in it");
    check(&key, &key, &certificate_pem, "ca.pem: no certificate in it");
    check(
        &ca_pem,
        &certificate_pem,
        &certificate_pem,
        "key.pem: no private key in it that can be read without a password",
    );
    check(&ca_pem, &key, &key, "cert.pem: no certificate in it");
    let mismatch = "private key key.pem does not go with certificate cert.pem: it is another one's key";
    check(&ca_pem, &other_key, &certificate_pem, mismatch);

    let files = Files::new();
    let error = TlsClient::new(files.trusting()).expect_err("no file");
    assert_eq!(files.plain(&error), "ca.pem: No such file or directory (os error 2)");
    files.write("ca.pem", &ca_pem);
    let nonsense = files.trusting().name_check(NameCheck::Name("a b".to_string()));
    assert_eq!(TlsClient::new(nonsense).expect_err("no name"), TlsError::Name { name: "a b".to_string() });
    let broken = ca_pem.replacen("MII", "!!!", 1);
    files.write("ca.pem", &broken);
    assert!(matches!(TlsClient::new(files.trusting()), Err(TlsError::Malformed { .. })));
}

#[tokio::test]
async fn changed_files_are_used_when_they_work_as_a_whole() {
    let (old, old_pem) = authority("old");
    let (new, new_pem) = authority("new");
    let files = Files::new();
    files.write("ca.pem", &old_pem);
    files.identity(certificate(&old, None));
    let client = TlsClient::new(files.showing()).expect("the files are good");
    assert_eq!(client.reload(), Ok(false));
    check(&client, certificate(&old, None), Some(&old_pem), Ok("hello")).await;

    // Half of a change: the new key with the old certificate.
    let (key, certificate_pem) = certificate(&new, None);
    files.write("key.pem", &key);
    check(&client, certificate(&old, None), Some(&old_pem), Ok("hello")).await;
    let problem = client.problem().expect("the key is another one's");
    assert!(matches!(problem, TlsError::Mismatch { .. }), "{problem}");
    assert_eq!(client.reload(), Err(problem));

    // The rest of it; a new connection looks by itself.
    files.write("cert.pem", &certificate_pem);
    files.write("ca.pem", &format!("{old_pem}{new_pem}"));
    check(&client, certificate(&new, None), Some(&new_pem), Ok("hello")).await;
    check(&client, certificate(&old, None), None, Ok("hello")).await;
    assert_eq!(client.problem(), None);
    files.write("ca.pem", &new_pem);
    assert_eq!(client.reload(), Ok(true));
    let wrong = "the server's certificate is not signed by an authority of the CA certificate file";
    check(&client, certificate(&old, None), None, Err(wrong)).await;
}

#[test]
fn a_key_is_not_shown_in_logs() {
    let (ca, ca_pem) = authority("one");
    let files = Files::new();
    files.write("ca.pem", &ca_pem);
    files.identity(certificate(&ca, None));
    let client = TlsClient::new(files.showing()).expect("the files are good");
    let shown = format!("{client:?}");
    assert!(shown.contains("key.pem") && !shown.contains("PRIVATE"), "{shown}");
}
