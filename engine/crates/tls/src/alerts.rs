//! Alerts of a peer, in words.

use rustls::AlertDescription as Alert;

/// What this side offers, which is all that rustls supports (`docs/reference/tls.md`).
const OFFER: &str =
    "TLS 1.2 and 1.3, key exchange by ECDHE, AES-GCM or ChaCha20-Poly1305, certificates of RSA, ECDSA or Ed25519";

/// How far a connection had got when an alert ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The server had not yet chosen from the offer.
    Offered,
    /// The server had chosen.
    Chosen,
    /// The server had chosen, and servers of this target request a client certificate, which this side does not have.
    CertificateRequested,
    /// The server had chosen, and servers of this target request a client certificate, which this side has.
    CertificateShown,
}

/// The name of an alert (RFC 8446, section 6), and what it means.
pub(crate) fn alert_words(alert: Alert, progress: Progress) -> String {
    let means = match (alert, progress) {
        (Alert::CertificateRequired, _)
        | (
            Alert::HandshakeFailure | Alert::BadCertificate | Alert::CertificateUnknown | Alert::AccessDenied,
            Progress::CertificateRequested,
        ) => "it wants a certificate of the client",
        (Alert::CertificateExpired, Progress::CertificateShown) => "it takes the certificate of the client for expired",
        (Alert::UnknownCA, Progress::CertificateShown) => "it does not trust who signed the certificate of the client",
        (
            Alert::HandshakeFailure
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::AccessDenied
            | Alert::DecryptError,
            Progress::CertificateShown,
        ) => "it does not accept the certificate of the client",
        (Alert::HandshakeFailure | Alert::InsufficientSecurity, Progress::Offered) => {
            return format!(
                "the server sent the alert {}: it accepts no combination of what was offered: {OFFER}",
                name(alert)
            );
        }
        (Alert::ProtocolVersion, _) => "it accepts none of the versions that were offered",
        (Alert::UnrecognisedName, _) => "it does not know the name that it was given (SNI)",
        (Alert::NoApplicationProtocol, _) => "it speaks none of the protocols that were offered (ALPN)",
        (Alert::InternalError, _) => "it has failed by itself",
        _ => return format!("the server sent the alert {}", name(alert)),
    };
    format!("the server sent the alert {}: {means}", name(alert))
}

/// The name as in the RFC: `CertificateRequired` is `certificate_required`.
fn name(alert: Alert) -> String {
    let Some(known) = alert.as_str() else {
        return u8::from(alert).to_string();
    };
    let letters: Vec<char> = known.replace("Unrecognised", "Unrecognized").chars().collect();
    let mut name = String::new();
    for (i, letter) in letters.iter().enumerate() {
        // `UnknownCA`, `UnknownPSKIdentity`: a word begins after a small letter, or before a small letter.
        let begins = i > 0 && letter.is_ascii_uppercase();
        if begins && (is_lower(letters.get(i - 1)) || is_lower(letters.get(i + 1))) {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn is_lower(letter: Option<&char>) -> bool {
    letter.is_some_and(char::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::{Alert, Progress, alert_words};

    #[test]
    fn alerts_have_the_names_of_the_rfc_and_a_meaning() {
        let wants = "it wants a certificate of the client";
        let cases = [
            (Alert::CertificateRequired, Progress::Chosen, "certificate_required", wants),
            (Alert::HandshakeFailure, Progress::CertificateRequested, "handshake_failure", wants),
            (
                Alert::HandshakeFailure,
                Progress::Offered,
                "handshake_failure",
                "it accepts no combination of what was offered: TLS 1.2 and 1.3",
            ),
            (Alert::HandshakeFailure, Progress::Chosen, "handshake_failure", ""),
            (Alert::UnknownCA, Progress::CertificateShown, "unknown_ca", "it does not trust who signed"),
            (
                Alert::BadCertificate,
                Progress::CertificateShown,
                "bad_certificate",
                "it does not accept the certificate",
            ),
            (Alert::UnknownCA, Progress::Chosen, "unknown_ca", ""),
            (Alert::UnknownPSKIdentity, Progress::Chosen, "unknown_psk_identity", ""),
            (Alert::UnrecognisedName, Progress::Offered, "unrecognized_name", "it does not know the name"),
            (Alert::Unknown(200), Progress::Offered, "200", ""),
        ];
        for (alert, progress, name, means) in cases {
            let said = alert_words(alert, progress);
            let said = said.strip_prefix("the server sent the alert ").unwrap();
            let (named, meant) = said.split_once(": ").unwrap_or((said, ""));
            assert_eq!((named, meant.starts_with(means), meant.is_empty()), (name, true, means.is_empty()), "{said}");
        }
    }
}
