//! The running agent: one thread that carries and reports, until it is told to end or nobody needs it.

use crate::arguments::Arguments;
use crate::kept::Record;
use crate::listening::{Attendances, Listening, connections};
use crate::proxy::Proxy;
use crate::reporting;
use crate::upstream::Upstream;
use anyhow::Context;
use minerva_client::{Address, Credentials};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

/// Streams that one program may have open.
const STREAMS_PER_CONNECTION: u32 = 256;

/// Runs until a signal or, where that is wished for, until nobody is connected.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    log();
    let address = arguments.upstream()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Looks at processes, and looks up names of servers.
        .max_blocking_threads(2)
        .build()
        .context("failed to start a runtime")?;
    let result = runtime.block_on(async {
        let listening = listen(arguments, &address)?;
        let upstream = Upstream::new(&address, &Credentials::from_environment()?)?;
        tracing::info!(socket = %listening.path.display(), server = %address, "carrying requests");
        let record = Record::of_agent(&listening.path, std::env::var_os("RUNTIME_DIRECTORY"));
        serve(&listening, upstream, arguments, record).await
    });
    // Looking at processes goes on in the background for a moment, and nobody waits for it.
    runtime.shutdown_background();
    result
}

/// At the service manager's socket, or at one of its own.
fn listen(arguments: &Arguments, address: &Address) -> anyhow::Result<Listening> {
    let is_own = |socket: &Path| *address == Address::Unix(socket.to_owned());
    let itself = || anyhow::anyhow!("{address} would be the agent itself: give another --upstream or --socket");
    if let Some(listening) = Listening::handed_over()? {
        return if is_own(&listening.path) { Err(itself()) } else { Ok(listening) };
    }
    let place = arguments.place();
    if is_own(&place.socket) { Err(itself()) } else { Listening::bind(&place) }
}

async fn serve(listening: &Listening, upstream: Upstream, arguments: &Arguments, record: Record) -> anyhow::Result<()> {
    let attendances = Attendances::new();
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for signals")?;
    let server = tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .add_service(Proxy::new(upstream.clone(), attendances.clone(), record))
        .serve_with_incoming(connections(listening, attendances.clone()));
    tokio::select! {
        result = server => result.context("programs are served no more"),
        () = report(upstream, arguments.period()) => Ok(()),
        () = idle(&attendances, arguments.idle_exit) => {
            tracing::info!("nobody is connected, ending");
            Ok(())
        }
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// Finds the server, and reports to it from then on.
async fn report(upstream: Upstream, period: Option<Duration>) {
    upstream.seek().await;
    match period {
        Some(period) => reporting::run(upstream, period).await,
        None => std::future::pending().await,
    }
}

async fn idle(attendances: &Attendances, span: Option<Duration>) {
    match span {
        Some(span) => attendances.idle_for(span).await,
        None => std::future::pending().await,
    }
}

/// To standard error. Lines carry no time where the journal stamps them.
fn log() {
    let in_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let lines = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    if in_journal { lines.without_time().init() } else { lines.init() }
}
