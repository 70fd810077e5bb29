//! Serves a service's metrics to Prometheus. A connection is one scrape with a time limit, and few run at a time. One more ends the
//! oldest: a scrape takes milliseconds, so that clients that connect and send nothing, however often, do not keep others out.

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

/// Scrapes at the same time.
const CONNECTIONS_MAX: usize = 64;
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
    let mut scrapes = Scrapes { registry: Arc::new(registry), under_way: VecDeque::new() };
    match listener {
        MetricsListener::Unix(listener, _) => {
            let listener = tokio::net::UnixListener::from_std(listener).context("failed to serve metrics")?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => scrapes.begin(stream),
                    Err(error) => failed_to_accept(&error).await,
                }
            }
        }
        MetricsListener::Loopback(listener) => {
            let listener = tokio::net::TcpListener::from_std(listener).context("failed to serve metrics")?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => scrapes.begin(stream),
                    Err(error) => failed_to_accept(&error).await,
                }
            }
        }
    }
}

/// Those under way, the oldest first.
struct Scrapes {
    registry: Arc<Registry>,
    under_way: VecDeque<AbortHandle>,
}

impl Scrapes {
    fn begin(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        self.under_way.retain(|scrape| !scrape.is_finished());
        if self.under_way.len() >= CONNECTIONS_MAX
            && let Some(oldest) = self.under_way.pop_front()
        {
            oldest.abort();
        }
        self.under_way.push_back(tokio::spawn(scrape(stream, Arc::clone(&self.registry))).abort_handle());
    }
}

/// One connection.
async fn scrape<S>(stream: S, registry: Arc<Registry>)
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

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS_MAX, MetricsListener, SCRAPE_MAX, serve};
    use prometheus_client::registry::Registry;
    use std::os::unix::net::{UnixListener, UnixStream};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn whoever_says_nothing_keeps_nobody_from_a_scrape() {
        // The clock of the test stands while anything is to be done, and then jumps to the next timer.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("socket");
            let listener = UnixListener::bind(&path).expect("a socket");
            listener.set_nonblocking(true).expect("a socket");
            tokio::spawn(serve(MetricsListener::Unix(listener, path.clone()), Registry::default()));
            let begin = tokio::time::Instant::now();
            let mut silent = Vec::new();
            for _ in 0..3 {
                // No more than the kernel's queue takes while nobody accepts.
                silent.extend((0..CONNECTIONS_MAX).map(|_| UnixStream::connect(&path).expect("room in the queue")));
                let mut scrape = tokio::net::UnixStream::connect(&path).await.expect("room in the queue");
                let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                scrape.write_all(request).await.expect("room");
                let mut answer = String::new();
                scrape.read_to_string(&mut answer).await.expect("an answer");
                assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("# EOF\n"), "{answer}");
            }
            assert!(begin.elapsed() < SCRAPE_MAX, "it waited for those that say nothing: {:?}", begin.elapsed());
        });
    }
}
