//! hyper 1 as its guide writes a server: a listener, a task per connection, a service function.
//!
//! hyper has no router. Its guide matches on method and path; with hundreds of routes its users keep a table from path to
//! handler, filled at the start, and that is what stands here.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_tungstenite::tungstenite::Message;
use hyper_tungstenite::{HyperWebsocket, upgrade};
use hyper_util::rt::TokioIo;
use redline_catalogue_rust::{BODY_LIMIT, Options, now_in, pushes, run};
use tokio::net::{TcpListener, TcpStream};

type Answer = Response<Full<Bytes>>;
type Table = HashMap<String, Handler>;

/// What answers a path, with the name that it answers with.
enum Handler {
    Path(String),
    Bytes(String),
    Text(String),
    Clock,
    Echo,
    Pushes,
}

impl Handler {
    fn method(&self) -> Method {
        match self {
            Self::Path(_) | Self::Clock | Self::Echo | Self::Pushes => Method::GET,
            Self::Bytes(_) | Self::Text(_) => Method::POST,
        }
    }

    /// Whether its requests become `WebSockets`.
    fn upgrades(&self) -> bool {
        matches!(self, Self::Echo | Self::Pushes)
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<String, StatusCode> {
        match self {
            Self::Path(name) => Ok(name.clone()),
            Self::Bytes(name) => {
                let body = read(request).await?;
                Ok(format!("{name} {}", body.len()))
            }
            Self::Text(name) => {
                let body = String::from_utf8(read(request).await?.into()).map_err(|_| StatusCode::BAD_REQUEST)?;
                Ok(format!("{name} {}", body.len()))
            }
            Self::Echo | Self::Pushes => Err(StatusCode::UPGRADE_REQUIRED),
            Self::Clock => now_in(unit(request.uri().query())).ok_or(StatusCode::BAD_REQUEST),
        }
    }
}

/// The value of `unit` in a query; ms when it is not there.
fn unit(query: Option<&str>) -> &str {
    query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("unit=")).unwrap_or("ms")
}

fn table(routes: usize) -> Table {
    let mut table = Table::from([
        ("/ts".to_string(), Handler::Clock),
        ("/ws/echo".to_string(), Handler::Echo),
        ("/ws/ts".to_string(), Handler::Pushes),
    ]);
    for number in 0..routes {
        table.insert(format!("/path{number}"), Handler::Path(format!("path{number}")));
        table.insert(format!("/bytes{number}"), Handler::Bytes(format!("bytes{number}")));
        table.insert(format!("/string{number}"), Handler::Text(format!("string{number}")));
    }
    table
}

async fn read(request: Request<Incoming>) -> Result<Bytes, StatusCode> {
    match Limited::new(request.into_body(), BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::BAD_REQUEST),
    }
}

async fn handle(table: &Table, mut request: Request<Incoming>) -> Answer {
    let Some(handler) = table.get(request.uri().path()) else {
        return empty(StatusCode::NOT_FOUND);
    };
    if request.method() != handler.method() {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    if handler.upgrades() && hyper_tungstenite::is_upgrade_request(&request) {
        return opened(&mut request, matches!(handler, Handler::Echo));
    }
    match handler.answer(request).await {
        Ok(text) => plain(text),
        Err(status) => empty(status),
    }
}

/// The answer that opens a `WebSocket`, which a task of its own then serves.
fn opened(request: &mut Request<Incoming>, echoes: bool) -> Answer {
    match upgrade(request, None) {
        Ok((answer, socket)) => {
            // A peer that leaves ends its own connection.
            tokio::spawn(async move { if echoes { echo(socket).await } else { push(socket).await } });
            answer
        }
        Err(_) => empty(StatusCode::BAD_REQUEST),
    }
}

async fn echo(socket: HyperWebsocket) -> Option<()> {
    let mut socket = socket.await.ok()?;
    while let Some(Ok(message)) = socket.next().await {
        // tungstenite answers pings and the close itself.
        if message.is_text() || message.is_binary() {
            socket.send(message).await.ok()?;
        }
    }
    None
}

async fn push(socket: HyperWebsocket) -> Option<()> {
    let mut socket = socket.await.ok()?;
    let mut due = pushes();
    loop {
        tokio::select! {
            _ = due.tick() => socket.send(Message::text(now_in("ns")?)).await.ok()?,
            received = socket.next() => {
                received?.ok()?;
            }
        }
    }
}

fn plain(text: String) -> Answer {
    let mut answer = Response::new(Full::from(text));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer
}

async fn converse(stream: TcpStream, table: Arc<Table>) {
    let service = service_fn(move |request| {
        let table = Arc::clone(&table);
        async move { Ok::<_, Infallible>(handle(&table, request).await) }
    });
    // A peer that resets or breaks off ends its own connection and concerns nobody else.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

/// The three kinds that axum passes over without waiting.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

async fn serve(options: Options) -> io::Result<()> {
    let table = Arc::new(table(options.routes));
    let listener = TcpListener::bind((options.host, options.port)).await?;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // That connection is gone already; the next may be there.
            Err(error) if concerns_one_connection(&error) => continue,
            Err(_) => {
                // Out of descriptors, most likely: wait for some to be closed, as axum does.
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        // A connection that is already gone cannot be tuned, and its first read says so.
        let _ = stream.set_nodelay(true);
        tokio::spawn(converse(stream, Arc::clone(&table)));
    }
}

fn main() -> ExitCode {
    run(serve)
}
