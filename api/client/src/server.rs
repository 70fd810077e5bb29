//! The server of a client: there, or absent until it is found by another look.

use crate::error::{Error, NO_SERVER};
use crate::find::{Found, find};
use crate::link::Link;
use crate::options::Options;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A call waits no longer for another look: whoever listens at a socket of this machine is found by then.
const LOOK_MAX: Duration = Duration::from_millis(100);

/// What the clones of a client share.
#[derive(Debug)]
pub(crate) struct Server {
    /// Where to look again; absent: nowhere.
    options: Option<Options>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Present(Box<Link>),
    Absent { reason: String, looked: Instant },
}

impl Server {
    pub(crate) async fn of_options(options: Options) -> Result<Self, Error> {
        Ok(match find(&options).await? {
            Found::Server(link) => Self { options: Some(options), state: Mutex::new(State::Present(link)) },
            Found::Nobody(reason) => {
                warn(&options, &reason);
                Self { options: Some(options), ..Self::absent(&reason) }
            }
        })
    }

    /// None, now and later.
    pub(crate) fn absent(reason: &str) -> Self {
        let state = State::Absent { reason: reason.to_owned(), looked: Instant::now() };
        Self { options: None, state: Mutex::new(state) }
    }

    pub(crate) fn absence(&self) -> Option<String> {
        match &*self.state() {
            State::Present(_) => None,
            State::Absent { reason, .. } => Some(reason.clone()),
        }
    }

    /// The server, if it was there when it was last looked for.
    pub(crate) fn present(&self) -> Option<Link> {
        match &*self.state() {
            State::Present(link) => Some((**link).clone()),
            State::Absent { .. } => None,
        }
    }

    /// The server to ask, looked for again when that is due.
    pub(crate) async fn link(self: &Arc<Self>) -> Option<Link> {
        if let Some(looking) = self.look_again() {
            // What takes longer goes on in the background, for later calls.
            let _ = timeout(LOOK_MAX, looking).await;
        }
        self.present()
    }

    /// An answer; nothing when the request came to an agent that has no server, which is then taken for absent.
    pub(crate) fn unless_absent<T>(&self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Err(error) if error.refusal() == Some(NO_SERVER) => {
                let reason = error.to_string();
                let reason = reason.trim_end_matches('.');
                if let Some(options) = &self.options {
                    warn(options, reason);
                }
                *self.state() = State::Absent { reason: reason.to_owned(), looked: Instant::now() };
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    fn look_again(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let options = self.options.as_ref()?;
        let mut state = self.state();
        let State::Absent { looked, .. } = &mut *state else { return None };
        if looked.elapsed() < options.look_period {
            return None;
        }
        *looked = Instant::now();
        let (server, options) = (Arc::clone(self), options.clone());
        Some(tokio::spawn(async move {
            // An error is for somebody to mend; this program goes on without, as before.
            if let Ok(Found::Server(link)) = find(&options).await {
                *server.state() = State::Present(link);
            }
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A warning a process, however often it connects.
fn warn(options: &Options, reason: &str) {
    static WARNED: Once = Once::new();
    if !options.quiet {
        WARNED.call_once(|| eprintln!("minerva: {reason}; going on without"));
    }
}
