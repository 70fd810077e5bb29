//! Metrics for Prometheus, of whichever service has some. A connection is one scrape and lasts no longer than that may take; there are few at a time.

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// Scrapes at the same time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 16;
/// From connecting to the last byte of the answer.
const SCRAPE_MAX: Duration = Duration::from_secs(5);
/// When no descriptor is left, accepting again at once would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where metrics are scraped.
#[derive(Debug)]
pub enum MetricsListener {
    /// A Unix socket, and its path.
    Unix(std::os::unix::net::UnixListener, PathBuf),
    /// A TCP port of this host.
    Loopback(std::net::TcpListener),
}

/// Serves scrapes until its task is dropped.
pub async fn serve(listener: MetricsListener, registry: Registry) -> anyhow::Result<()> {
    let registry = Arc::new(registry);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    match listener {
        MetricsListener::Unix(listener, _) => {
            let listener = tokio::net::UnixListener::from_std(listener).context("failed to serve metrics")?;
            loop {
                let permit = Arc::clone(&room).acquire_owned().await;
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(scrape(stream, Arc::clone(&registry), permit))),
                    Err(error) => failed_to_accept(&error).await,
                }
            }
        }
        MetricsListener::Loopback(listener) => {
            let listener = tokio::net::TcpListener::from_std(listener).context("failed to serve metrics")?;
            loop {
                let permit = Arc::clone(&room).acquire_owned().await;
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(scrape(stream, Arc::clone(&registry), permit))),
                    Err(error) => failed_to_accept(&error).await,
                }
            }
        }
    }
}

/// One connection. `permit` is given back at its end.
async fn scrape<S, P>(stream: S, registry: Arc<Registry>, permit: P)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answer(&request, &registry);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).keep_alive(false);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(SCRAPE_MAX, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::trace!(%error, "a scrape of the metrics was not finished"),
        Err(_) => tracing::debug!("a scrape of the metrics took too long and was ended"),
    }
    drop(permit);
}

fn answer(request: &Request<Incoming>, registry: &Registry) -> Response<Full<Bytes>> {
    if request.uri().path() != "/metrics" {
        return response(StatusCode::NOT_FOUND, "text/plain", "metrics are at /metrics\n".to_owned());
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "metrics are read with GET\n".to_owned());
    }
    match render(registry) {
        Ok(text) => response(StatusCode::OK, TYPE, text),
        Err(error) => response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string()),
    }
}

/// The text that a scrape gets. Errors: none, for a string takes everything.
pub fn render(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(text)
}

fn response(status: StatusCode, media_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    response
}

async fn failed_to_accept(error: &std::io::Error) {
    tracing::warn!(%error, "a scrape of the metrics was not accepted, trying again");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
