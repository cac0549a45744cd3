//! An HTTP/2 server based on the crate h2, which the engine does not use, and a server of bare frames for what no well-behaved
//! server does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::task::spawn_local;

use crate::support::server::Peer;

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Answer(&'static str),
    /// The same with this status.
    Status(u16),
    /// `hello`, after this time.
    Late(Duration),
    /// `hello`, the head and a part at once, the rest after this time.
    Pieces(Duration),
    /// So many server-sent events, this far apart, after which the answer ends, or does not.
    Events(u32, Duration, bool),
    /// A gRPC answer with this status in its trailers; without a status if it is empty.
    Grpc(&'static str),
    /// A gRPC answer without a body, with this status in its head.
    GrpcHead(&'static str),
    /// This with a header.
    Headed(&'static str, &'static str, &'static str),
    /// The length of the request's body.
    Length,
    Reset(Reason),
    /// Nothing at all.
    Stall,
    /// `hello`, and GOAWAY as well-behaved servers send it.
    AnswerAndGo,
    /// GOAWAY, without an answer to requests in flight.
    GoAtOnce,
    /// End the connection.
    Hangup,
}

/// A request, and its number on its connection, from 0.
pub struct Received<'a> {
    pub turn: usize,
    pub request: &'a Request<RecvStream>,
}

/// A server; it ends with the test.
pub struct Http2Server {
    pub port: u16,
    pub accepted: Arc<AtomicUsize>,
    /// The most streams that were open at the same time on a connection.
    pub most_open: Arc<AtomicUsize>,
}

impl Http2Server {
    pub fn start(builder: Builder, act: impl Fn(&Received) -> Act + Send + 'static) -> Self {
        let (accepted, most_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, accepted: Arc::clone(&accepted), most_open: Arc::clone(&most_open) };
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::from_std(listener).unwrap();
                let act = std::rc::Rc::new(act);
                while let Ok((socket, _)) = listener.accept().await {
                    accepted.fetch_add(1, SeqCst);
                    let (act, builder, most_open) = (act.clone(), builder.clone(), most_open.clone());
                    spawn_local(async move {
                        let _ = socket.set_nodelay(true);
                        let _ = serve(socket, builder, &*act, most_open).await;
                    });
                }
            });
        });
        server
    }

    /// Answers `hello` to everything.
    pub fn hello() -> Self {
        Self::start(Builder::new(), |_| Act::Answer("hello"))
    }
}

async fn serve(
    socket: TcpStream,
    builder: Builder,
    act: &impl Fn(&Received) -> Act,
    most_open: Arc<AtomicUsize>,
) -> Result<(), h2::Error> {
    let mut http2 = builder.handshake::<_, bytes::Bytes>(socket).await?;
    let open = Arc::new(AtomicUsize::new(0));
    let mut turn = 0;
    let mut stalled = Vec::new();
    while let Some(next) = http2.accept().await {
        let (request, mut respond) = next?;
        most_open.fetch_max(open.fetch_add(1, SeqCst) + 1, SeqCst);
        let what = act(&Received { turn, request: &request });
        turn += 1;
        match what {
            Act::Hangup => return Ok(()),
            Act::GoAtOnce => http2.abrupt_shutdown(Reason::NO_ERROR),
            Act::Stall => stalled.push((request, respond)),
            Act::Reset(reason) => {
                respond.send_reset(reason);
                open.fetch_sub(1, SeqCst);
            }
            _ => {
                if let Act::AnswerAndGo = what {
                    http2.graceful_shutdown();
                }
                let open = Arc::clone(&open);
                spawn_local(async move {
                    let _ = answer(request, respond, what).await;
                    open.fetch_sub(1, SeqCst);
                });
            }
        }
    }
    Ok(())
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<bytes::Bytes>,
    act: Act,
) -> Result<(), h2::Error> {
    let mut body = request.into_body();
    let mut length = 0;
    while let Some(data) = body.data().await {
        let data = data?;
        length += data.len();
        body.flow_control().release_capacity(data.len())?;
    }
    let (status, said) = match act {
        Act::Answer(text) | Act::Headed(_, _, text) => (200, text.to_owned()),
        Act::Status(status) => (status, "hello".to_owned()),
        Act::Length => (200, length.to_string()),
        _ => (200, "hello".to_owned()),
    };
    if let Act::Late(time) = act {
        tokio::time::sleep(time).await;
    }
    let response = Response::builder().status(status);
    if let Act::Pieces(time) = act {
        let mut sending = respond.send_response(response.body(()).unwrap(), false)?;
        sending.send_data("hel".into(), false)?;
        tokio::time::sleep(time).await;
        return sending.send_data("lo".into(), true);
    }
    if let Act::Events(events, gap, ends) = act {
        let head = response.header("content-type", "text/event-stream").body(()).unwrap();
        let mut sending = respond.send_response(head, false)?;
        for _ in 0..events {
            tokio::time::sleep(gap).await;
            sending.send_data("data: x\n\n".into(), false)?;
        }
        if !ends {
            std::future::poll_fn(|context| sending.poll_reset(context)).await?;
            return Ok(());
        }
        return sending.send_data(bytes::Bytes::new(), true);
    }
    if let Act::GrpcHead(status) = act {
        return respond.send_response(grpc_head(status).body(()).unwrap(), true).map(drop);
    }
    if let Act::Grpc(status) = act {
        let mut sending = respond.send_response(grpc_head("").body(()).unwrap(), false)?;
        sending.send_data(said.into(), false)?;
        let fields = if status.is_empty() { ("x-other", "1") } else { ("grpc-status", status) };
        let trailers = [fields].map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        return sending.send_trailers(trailers.into_iter().collect());
    }
    let response = if let Act::Headed(name, value, _) = act { response.header(name, value) } else { response };
    let response = response.body(()).unwrap();
    let mut sending = respond.send_response(response, false)?;
    sending.send_data(said.into(), true)
}

/// The head of a gRPC answer.
fn grpc_head(status: &str) -> http::response::Builder {
    let head = Response::builder().header("content-type", "application/grpc+proto");
    if status.is_empty() { head } else { head.header("grpc-status", status) }
}

pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
/// The flags of a HEADERS frame that is a complete answer.
pub const END_HEADERS_AND_STREAM: u8 = 5;
pub const PREFACE_BYTES: usize = 24;

/// A setting (RFC 9113, section 6.5.2).
pub const MAX_CONCURRENT_STREAMS: u16 = 3;

/// A frame (RFC 9113, section 4.1).
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

pub fn read_frame(peer: &mut Peer) -> io::Result<Frame> {
    let head = peer.bytes(9)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    peer.bytes(length as usize)?;
    Ok(Frame { kind: head[3], flags: head[4], stream })
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Read the client's preface, and send SETTINGS.
pub fn greet(peer: &mut Peer) -> io::Result<()> {
    peer.bytes(PREFACE_BYTES)?;
    peer.say_bytes(&frame(SETTINGS, 0, 0, &[]))
}

/// A SETTINGS frame with these entries.
pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entries = entries.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat());
    frame(SETTINGS, 0, 0, &entries.collect::<Vec<_>>())
}

/// Read to the next request. Returns its stream.
pub fn next_stream(peer: &mut Peer) -> io::Result<u32> {
    loop {
        let frame = read_frame(peer)?;
        if frame.kind == SETTINGS && frame.flags & 1 == 0 {
            peer.say_bytes(&self::frame(SETTINGS, 1, 0, &[]))?;
        }
        if frame.kind == HEADERS {
            return Ok(frame.stream);
        }
    }
}

/// `:status 200` and nothing more: entry 8 of HPACK's static table, with both END flags.
pub fn ok(stream: u32) -> Vec<u8> {
    frame(HEADERS, 5, stream, &[0x88])
}

/// A GOAWAY frame: no stream past `last` was or will be processed.
pub fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}
