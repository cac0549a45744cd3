//! Reading and writing repeatedly allocates nothing after the first times.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use redline_wire::{
    Body, BodyEscape, Fields, Heads, KeptBody, Names, Parser, ReadOptions, Spec, Template, TraceContext, Values,
};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with a count per thread, because tests run at the same time.
struct Counting;

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from the same allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(mut step: impl FnMut()) -> usize {
    (0..20).for_each(|_| step());
    let before = ALLOCATIONS.get();
    (0..200).for_each(|_| step());
    ALLOCATIONS.get() - before
}

struct Zeros;

impl Values for Zeros {
    fn seq(&mut self) -> u64 {
        0
    }
    fn between(&mut self, a: i64, _: i64) -> i64 {
        a
    }
    fn pick(&mut self, _: usize) -> usize {
        0
    }
    fn trace_context(&mut self) -> TraceContext {
        TraceContext::new(1, 2, 3)
    }
}

#[test]
fn answers_are_read_without_allocating() {
    const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let plain = ReadOptions::default();
    let looked_into = ReadOptions { hash: true, keep: KeptBody::Whole, ..plain };
    for (options, cut) in [(plain, 0), (plain, 20), (plain, 40), (looked_into, 0), (looked_into, 20), (looked_into, 40)]
    {
        let (mut parser, mut heads) = (Parser::new(), Heads::new());
        let count = allocations(|| {
            for bytes in [LENGTH, CHUNKED] {
                assert_eq!(parser.feed(&bytes[..cut], options, &mut heads), Ok(None));
                assert!(parser.feed(&bytes[cut..], options, &mut heads).unwrap().is_some());
                parser.forget_body();
            }
        });
        assert_eq!(count, 0, "{options:?} cut at {cut}");
    }
}

#[test]
fn requests_are_written_without_allocating() {
    let picks = BTreeMap::from([("ids".to_owned(), vec!["1".to_owned()])]);
    let headers = [("X-Id".to_owned(), "{seq}-{rand:1..9}{traceparent:1%}".to_owned())];
    for (http2, chunks) in [(false, None), (false, NonZeroUsize::new(2)), (true, None)] {
        let body = Body::Text("<{seq}>".to_owned(), BodyEscape::None);
        let spec = Spec {
            method: "POST",
            path: "/{pick:ids}",
            host: "h",
            port: 1,
            headers: &headers,
            body,
            chunks,
            tls: false,
            http2,
            cookies: false,
        };
        let template = Template::compile(spec, &Names::picks(&picks)).unwrap();
        let (mut out, mut fields) = (Vec::new(), Fields::new());
        let count = allocations(|| {
            out.clear();
            template.render(&mut out, &mut Zeros).unwrap();
            template.render_fields(&mut fields, &mut Zeros).unwrap();
        });
        assert_eq!(count, 0);
    }
}
