//! Handshakes against a server in memory.

mod support;

use std::sync::Arc;

use redline_tls::{Client, Version};
use support::{Pair, certificates, server_config, settings};

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
        for length in [1, 100, 16_384, 16_385, 65_536] {
            let request = vec![b'q'; length];
            let answer = vec![b'a'; length];
            pair.plain.clear();
            assert_eq!(pair.exchange(&request, &answer[..length.min(16_384)]), request);
            assert_eq!(pair.plain, answer[..length.min(16_384)]);
        }
    }
}
