//! Whatever a server sends, the cookies and the values that a visitor keeps of it can be sent back.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use redline_visitor::{Jar, Site, Take};
use redline_wire::values_in;

#[derive(Arbitrary, Debug)]
struct Input {
    answers: Vec<(Vec<u8>, Vec<u8>)>,
    host: String,
    tls: bool,
    now_s: i32,
    name: String,
    pointer: String,
    expression: String,
}

fuzz_target!(|input: Input| {
    let now_s = i64::from(input.now_s);
    let mut takes = vec![Take::header(&input.name), Take::cookie(&input.name)];
    takes.extend(Take::json(&input.pointer));
    // Large expressions are refused by the job's size and by the library; here they would only be slow.
    takes.extend(Take::regex(&input.expression).ok().filter(|_| input.expression.len() < 40));
    let site = Site::new(&input.host, input.tls);
    let (mut jar, mut value) = (Jar::new(), Vec::new());
    for (head, body) in &input.answers {
        for value in values_in(head, b"set-cookie") {
            assert!(!value.contains(&b'\n'));
            let _ = jar.set(value, b"/a/b?c", &site, now_s);
        }
        let cookies = jar.header(b"/a/b", &site, now_s);
        assert!(cookies.len() <= 50 * 4096);
        assert!(cookies.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control()));
        assert!(!matches!(cookies.first(), Some(b' ' | b'\t')) && !matches!(cookies.last(), Some(b' ' | b'\t')));
        for take in &takes {
            value.clear();
            value.extend_from_slice(b"before");
            let has = take.take(head, body, &jar, now_s, &mut value);
            assert!(has || value == b"before");
        }
    }
});
