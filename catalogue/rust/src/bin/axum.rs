//! axum's Router, one `route` per path, each with a handler of its own.

use std::process::ExitCode;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, Query};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use redline_catalogue_rust::{BODY_LIMIT, Options, now_in, pushes, run};
use serde::Deserialize;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Clock {
    unit: Option<String>,
}

async fn clock(Query(asked): Query<Clock>) -> Result<String, StatusCode> {
    now_in(asked.unit.as_deref().unwrap_or("ms")).ok_or(StatusCode::BAD_REQUEST)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let sent = match message {
            Message::Text(_) | Message::Binary(_) => socket.send(message).await,
            // axum answers pings and the close itself.
            _ => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn push(mut socket: WebSocket) {
    let mut due = pushes();
    loop {
        tokio::select! {
            _ = due.tick() => {
                let now = now_in("ns").unwrap_or_default();
                if socket.send(Message::text(now)).await.is_err() {
                    return;
                }
            }
            received = socket.recv() => if !matches!(received, Some(Ok(_))) {
                return;
            }
        }
    }
}

fn router(routes: usize) -> Router {
    let mut app = Router::new()
        .route("/ts", get(clock))
        .route("/ws/echo", get(async |upgrade: WebSocketUpgrade| -> Response { upgrade.on_upgrade(echo) }))
        .route("/ws/ts", get(async |upgrade: WebSocketUpgrade| -> Response { upgrade.on_upgrade(push) }));
    for number in 0..routes {
        let (path, bytes, string) = (format!("path{number}"), format!("bytes{number}"), format!("string{number}"));
        app = app
            .route(&format!("/path{number}"), get(async move || path.clone()))
            .route(&format!("/bytes{number}"), post(async move |body: Bytes| format!("{bytes} {}", body.len())))
            .route(&format!("/string{number}"), post(async move |body: String| format!("{string} {}", body.len())));
    }
    app.layer(DefaultBodyLimit::max(BODY_LIMIT))
}

async fn serve(options: Options) -> std::io::Result<()> {
    let listener = TcpListener::bind((options.host, options.port)).await?.tap_io(|connection| {
        // A connection that is already gone cannot be tuned, and its next read says so.
        let _ = connection.set_nodelay(true);
    });
    axum::serve(listener, router(options.routes)).await
}

fn main() -> ExitCode {
    run(serve)
}
