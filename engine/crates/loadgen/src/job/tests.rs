use serde_json::json;

use super::Job;

/// A job of one user.
pub fn job(host: &str) -> Job {
    let job = json!({
        "format": "redline.job/1",
        "target": {"host": host, "port": 8080},
        "requests": [{"method": "GET", "path": "/", "expect": {"status": 200}}],
        "load": {"closed": {"users": 1}},
        "warmup_ns": 0,
        "measure_ns": 1,
        "drain_ns": 0,
        "timeout_ns": 1,
        "interval_ns": 10_000_000,
        "deadline_ns": 1,
        "seed": 0,
        "workers": 1,
    });
    Job::parse(&job.to_string()).unwrap_or_else(|trouble| panic!("{}", trouble.message))
}

#[test]
fn an_ipv6_address_is_named_in_one_pair_of_brackets() {
    for (host, address, named) in [
        ("::1", "::1", "[::1]:8080"),
        ("[::1]", "::1", "[::1]:8080"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:8080"),
        ("example.org", "example.org", "example.org:8080"),
    ] {
        let job = job(host);
        assert_eq!(job.target.host, address);
        let request = job.requests[0].template.fixed().unwrap();
        assert_eq!(**request, *format!("GET / HTTP/1.1\r\nHost: {named}\r\n\r\n").as_bytes());
    }
}
