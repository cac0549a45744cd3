//! The cipher suites that may be negotiated, by name.

use rustls::{CipherSuite, SupportedCipherSuite};

use crate::settings::{Unusable, Version};

/// Names as OpenSSL writes them, where they differ from those of IANA.
const OPENSSL: [(&str, CipherSuite); 6] = [
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];
const HINT: &str = "see the names in docs/reference/tls.md";

/// The suites with these names, in that order; all if there are no names.
pub(crate) fn permitted(
    all: Vec<SupportedCipherSuite>,
    names: &[String],
    versions: &[Version],
) -> Result<Vec<SupportedCipherSuite>, Unusable> {
    if names.is_empty() {
        return Ok(all);
    }
    let mut chosen: Vec<SupportedCipherSuite> = Vec::new();
    for name in names {
        let suite = all.iter().find(|suite| has_name(suite.suite(), name)).ok_or_else(|| {
            Unusable::new("ciphers", format!("{name:?} is not a cipher suite that the engine supports"), HINT)
        })?;
        if !chosen.contains(suite) {
            chosen.push(*suite);
        }
    }
    for (version, is_of) in [(Version::V1_2, false), (Version::V1_3, true)] {
        if versions.contains(&version) && !chosen.iter().any(|suite| suite.tls13().is_some() == is_of) {
            let number = if is_of { "1.3" } else { "1.2" };
            let problem = format!("none of them is a suite of TLS {number}, which may be negotiated");
            return Err(Unusable::new(
                "ciphers",
                problem,
                "add a suite of that version, or allow the other version alone",
            ));
        }
    }
    Ok(chosen)
}

fn has_name(suite: CipherSuite, name: &str) -> bool {
    let wanted = name.to_ascii_uppercase();
    // rustls writes TLS13_AES_128_GCM_SHA256 for TLS_AES_128_GCM_SHA256.
    let iana = suite.as_str().unwrap_or_default().replace("TLS13_", "TLS_");
    iana == wanted || OPENSSL.iter().any(|(openssl, of)| *openssl == wanted && *of == suite)
}
