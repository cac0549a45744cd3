//! The petstore on axum 0.8: its Router and Json, and axum-server with rustls for TLS.
//!
//! Both ways of serving tell HTTP/1.1 from HTTP/2 by themselves, by ALPN or by the client's first bytes.

use std::net::SocketAddr;
use std::process::ExitCode;

use axum::routing::get;
use axum::{Json, Router};
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use redline_catalogue_rust::{Options, run};
use serde::Serialize;
use tokio::net::TcpSocket;

/// How many connections may wait to be accepted. A proxy may open one for each of thousands of requests at once.
const BACKLOG: u32 = 4096;

#[derive(Serialize)]
struct Pet {
    id: i64,
    name: &'static str,
    tag: &'static str,
}

async fn pets() -> Json<Vec<Pet>> {
    Json(vec![Pet { id: 1, name: "catten", tag: "cat" }, Pet { id: 2, name: "doggy", tag: "dog" }])
}

async fn serve(options: Options) -> std::io::Result<()> {
    let app = Router::new().route("/v1/pets", get(pets)).into_make_service();
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(options.host, options.port))?;
    let server = axum_server::from_tcp(socket.listen(BACKLOG)?.into_std()?)?;
    let Some(tls) = options.tls else {
        return server.acceptor(NoDelayAcceptor::new()).serve(app).await;
    };
    let config = RustlsConfig::from_pem_file(tls.join("server.pem"), tls.join("server.key")).await?;
    server.acceptor(RustlsAcceptor::new(config).acceptor(NoDelayAcceptor::new())).serve(app).await
}

fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().expect("nothing was installed before");
    run(serve)
}
