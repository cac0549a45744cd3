//! Handshakes against an in-memory server: versions, ALPN, trust, resumption.

mod support;

use std::sync::Arc;

use rcgen::KeyPair;
use redline_tls::{Client, Error, Settings, Version};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{AlertDescription, CertificateError, Error as TlsError};

use support::{Pair, certificates, certificates_of, own_certificate, self_signed, server_config, settings};

const BOTH: [Version; 2] = [Version::V1_2, Version::V1_3];

#[test]
fn both_versions_carry_data() {
    let certificates = certificates("server.test");
    let server = Arc::new(server_config(&certificates, &[]));
    for (version, name) in [(Version::V1_2, "1.2"), (Version::V1_3, "1.3")] {
        let client = Client::new(&settings(&certificates, &[version])).unwrap();
        let mut pair = Pair::new(&client, &server);
        assert!(pair.session.is_handshaking());
        pair.shake().unwrap();
        assert!(pair.last.handshake_done_now && !pair.last.closed);
        assert!(!pair.session.is_handshaking());
        assert_eq!(pair.session.version(), name);
        assert!(pair.session.cipher().contains("AES_128"), "{}", pair.session.cipher());
        assert_eq!(pair.session.alpn(), None);
        for length in [0, 1, 100, 16_384, 16_385, 65_536] {
            let request = vec![b'q'; length];
            let answer = vec![b'a'; length];
            assert_eq!(pair.exchange(&request, &answer), (request, answer), "{length} bytes over {name}");
        }
    }
}

#[test]
fn every_cipher_of_both_versions_carries_data() {
    let certificates = certificates("server.test");
    let all = rustls::crypto::ring::default_provider().cipher_suites;
    for suite in all.into_iter().filter(|suite| !format!("{suite:?}").contains("RSA")) {
        let server = Arc::new(support::server_config_of(&certificates, &[], Some(suite)));
        let client = Client::new(&settings(&certificates, &BOTH)).unwrap();
        let mut pair = Pair::new(&client, &server);
        pair.shake().unwrap();
        assert_eq!(pair.session.cipher(), format!("{:?}", suite.suite()));
        assert_eq!(pair.exchange(b"question", b"answer"), (b"question".to_vec(), b"answer".to_vec()));
    }
}

#[test]
fn alpn_is_the_servers_choice() {
    let certificates = certificates("server.test");
    for version in BOTH {
        let cases: [(&[&str], &[&str], Option<&str>); 4] = [
            (&["h2"], &["h2", "http/1.1"], Some("h2")),
            (&["http/1.1"], &["h2", "http/1.1"], Some("http/1.1")),
            (&["h2"], &[], None),
            (&[], &["h2"], None),
        ];
        for (offered, known, chosen) in cases {
            let server = Arc::new(server_config(&certificates, known));
            let alpn = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
            let client = Client::new(&Settings { alpn, ..settings(&certificates, &[version]) }).unwrap();
            let mut pair = Pair::new(&client, &server);
            pair.shake().unwrap();
            assert_eq!(pair.session.alpn(), chosen.map(str::as_bytes));
        }
        let server = Arc::new(server_config(&certificates, &["http/1.1"]));
        let alpn = vec![b"h2".to_vec()];
        let client = Client::new(&Settings { alpn, ..settings(&certificates, &[version]) }).unwrap();
        let refused = Pair::new(&client, &server).shake().unwrap_err();
        assert!(
            matches!(refused, Error::Refused { alert: AlertDescription::NoApplicationProtocol, .. }),
            "{refused:?}"
        );
    }
}

/// The results of a client with these settings and of a server with a certificate for `server.test`.
fn trust(change: impl Fn(&mut Settings)) -> [(Result<(), Error>, Result<(), TlsError>); 2] {
    let certificates = certificates("server.test");
    let server = Arc::new(server_config(&certificates, &[]));
    BOTH.map(|version| {
        let mut settings = settings(&certificates, &[version]);
        change(&mut settings);
        let client = Client::new(&settings).unwrap();
        let mut pair = Pair::new(&client, &server);
        (pair.shake(), pair.client_speaks())
    })
}

#[test]
fn a_certificate_of_the_ca_is_trusted() {
    for (ours, theirs) in trust(|_| ()) {
        ours.unwrap();
        theirs.unwrap();
    }
}

#[test]
fn a_certificate_may_be_for_an_address() {
    let certificates = certificates("127.0.0.1");
    let server = Arc::new(server_config(&certificates, &[]));
    for (name, trusted) in [("127.0.0.1", true), ("127.0.0.2", false)] {
        let settings = Settings { server_name: name.to_owned(), ..settings(&certificates, &BOTH) };
        assert_eq!(Pair::new(&Client::new(&settings).unwrap(), &server).shake().is_ok(), trusted);
    }
}

#[test]
fn a_certificate_of_another_ca_is_refused_and_the_server_gets_an_alert() {
    let other = certificates("server.test");
    for (ours, theirs) in trust(|settings| settings.ca_pem = Some(other.ca_pem.clone())) {
        assert!(matches!(ours, Err(Error::Tls(TlsError::InvalidCertificate(_)))), "{ours:?}");
        assert!(matches!(theirs, Err(TlsError::AlertReceived(_))), "{theirs:?}");
    }
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    for (ours, theirs) in trust(|settings| settings.server_name = "other.test".to_owned()) {
        let Err(Error::Tls(TlsError::InvalidCertificate(why))) = ours else { panic!("{ours:?}") };
        assert!(matches!(why, CertificateError::NotValidForNameContext { .. }), "{why:?}");
        assert!(matches!(theirs, Err(TlsError::AlertReceived(_))), "{theirs:?}");
    }
}

/// A server's own certificate is accepted if it was given itself, only for its name; a similar certificate is not.
#[test]
fn a_servers_own_certificate_may_be_given() {
    let own = own_certificate("server.test");
    let server = Arc::new(server_config(&own, &[]));
    let shake = |settings: &Settings| Pair::new(&Client::new(settings).unwrap(), &server).shake();
    let trusting = settings(&own, &BOTH);
    shake(&trusting).unwrap();
    assert!(shake(&Settings { server_name: "other.test".to_owned(), ..trusting }).is_err());
    assert!(shake(&settings(&own_certificate("server.test"), &BOTH)).is_err());
}

#[test]
fn errors_say_in_plain_words_what_is_wrong_with_a_certificate() {
    let signed = certificates("server.test");
    let own = own_certificate("server.test");
    let no_authority = self_signed("server.test");
    let namesake = certificates_of(KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap(), "server.test");
    let trusting = settings(&signed, &BOTH);
    let other_name = Settings { server_name: "other.test".to_owned(), ..trusting.clone() };
    let address = Settings { server_name: "127.0.0.1".to_owned(), ..trusting.clone() };
    let cases = [
        (&own, &trusting, "the server's certificate is self-signed and not trusted"),
        (&no_authority, &trusting, "the server's certificate is self-signed and not trusted"),
        (&signed, &settings(&own, &BOTH), "the server's certificate is signed by an authority that is not trusted"),
        (
            &signed,
            &settings(&namesake, &BOTH),
            "the server's certificate is signed by an authority that is not trusted, though one of its name is",
        ),
        (&signed, &other_name, "the server's certificate is not for other.test, but for server.test"),
        (&signed, &address, "the server's certificate is not for 127.0.0.1, but for server.test"),
    ];
    for (certificates, settings, expected) in cases {
        let server = Arc::new(server_config(certificates, &[]));
        let error = Pair::new(&Client::new(settings).unwrap(), &server).shake().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn insecure_trusts_any_certificate_for_any_name() {
    for name in ["other.test", "127.0.0.1", "::1"] {
        for (ours, theirs) in trust(|settings| {
            settings.ca_pem = None;
            settings.insecure = true;
            settings.server_name = name.to_owned();
        }) {
            ours.unwrap();
            theirs.unwrap();
        }
    }
}

/// An X.509 version 1 certificate, as `openssl x509 -req -signkey` makes it, which rustls cannot read; made only for this test.
const OLD_PEM: &str = "-----BEGIN CERTIFICATE-----
MIIBGTCBvwIUPyeyBlvr/RkX14Gq0pvl9gNWpTUwCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDb2xkMCAXDTI2MTEyMTA0NDY1OFoYDzIxMjYxMDI4MDQ0NjU4WjAOMQww
CgYDVQQDDANvbGQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR9C9wz3Wn+aVdb
JsWt6LbJKf51sxD7YcLEdKGSQTk5O2EePRnxbYaUjWyqc4xBtjlfgR8DMBBxufkI
Xe1nIENlMAoGCCqGSM49BAMCA0kAMEYCIQDYQP2cLsyIQBRGXDfvmU311HkGJKE3
J4PamBaNyG1CcwIhAJBrNzUn9hq3RyKgBY6yBp9CPMb7dAADa/NhhJrhVFNU
-----END CERTIFICATE-----
";
const OLD_KEY_PEM: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgK1pF7A5VazD2ZjGV
kOCiKgXMTHiia8CtI9l2bYokWsahRANCAAR9C9wz3Wn+aVdbJsWt6LbJKf51sxD7
YcLEdKGSQTk5O2EePRnxbYaUjWyqc4xBtjlfgR8DMBBxufkIXe1nIENl
-----END PRIVATE KEY-----
";

#[test]
fn insecure_trusts_certificates_that_cannot_be_read() {
    let certificates = certificates("server.test");
    let key = any_supported_type(&PrivateKeyDer::from_pem_slice(OLD_KEY_PEM.as_bytes()).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(OLD_PEM.as_bytes()).unwrap()];
    let mut server = server_config(&certificates, &[]);
    server.cert_resolver = Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)));
    let server = Arc::new(server);
    for version in BOTH {
        for insecure in [true, false] {
            let client = Client::new(&Settings { insecure, ..settings(&certificates, &[version]) }).unwrap();
            assert_eq!(Pair::new(&client, &server).shake().is_ok(), insecure);
        }
    }
}

#[test]
fn sessions_are_resumed_when_enabled() {
    let certificates = certificates("server.test");
    let server = Arc::new(server_config(&certificates, &[]));
    for version in BOTH {
        for resumption in [true, false] {
            let client = Client::new(&Settings { resumption, ..settings(&certificates, &[version]) }).unwrap();
            let resumed: Vec<bool> = (0..4)
                .map(|_| {
                    let mut pair = Pair::new(&client, &server);
                    pair.shake().unwrap();
                    assert_eq!(pair.exchange(b"question", b"answer").1, b"answer");
                    pair.session.resumed()
                })
                .collect();
            assert_eq!(resumed, [false, resumption, resumption, resumption], "{version:?}");
        }
    }
}

#[test]
fn clones_resume_each_others_sessions() {
    let certificates = certificates("server.test");
    let server = Arc::new(server_config(&certificates, &[]));
    let client = Client::new(&settings(&certificates, &[Version::V1_3])).unwrap();
    let other = client.clone();
    Pair::new(&client, &server).shake().unwrap();
    let mut pair = Pair::new(&other, &server);
    pair.shake().unwrap();
    assert!(pair.session.resumed());
}

#[test]
fn settings_that_cannot_be_used_name_their_field() {
    let good = settings(&certificates("server.test"), &BOTH);
    let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cases = [
        ("ca_pem", Settings { ca_pem: Some("nothing here".to_owned()), ..good.clone() }),
        ("ca_pem", Settings { ca_pem: Some(unreadable.to_owned()), ..good.clone() }),
        ("ca_pem", Settings { ca_pem: Some("-----BEGIN CERTIFICATE-----\nAA".to_owned()), ..good.clone() }),
        ("server_name", Settings { server_name: "a b".to_owned(), ..good.clone() }),
        ("server_name", Settings { server_name: String::new(), ..good.clone() }),
        ("versions", Settings { versions: Vec::new(), ..good.clone() }),
        ("alpn", Settings { alpn: vec![Vec::new()], ..good.clone() }),
        ("ciphers", Settings { ciphers: vec!["AES128-SHA".to_owned()], ..good.clone() }),
        ("ciphers", Settings { ciphers: vec!["TLS_AES_128_GCM_SHA256".to_owned()], ..good.clone() }),
        ("key_pem", Settings { certificate_pem: Some(unreadable.to_owned()), ..good.clone() }),
        ("cert_pem", Settings { key_pem: Some(unreadable.to_owned()), ..good.clone() }),
    ];
    for (field, settings) in cases {
        let unusable = Client::new(&settings).unwrap_err();
        assert_eq!(unusable.field, field);
        assert!(unusable.to_string().contains("\n  hint: "), "{unusable}");
    }
}

#[test]
fn clients_are_shared_and_sessions_moved_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    fn moved<T: Send>() {}
    shared::<Client>();
    moved::<redline_tls::Session>();
}
