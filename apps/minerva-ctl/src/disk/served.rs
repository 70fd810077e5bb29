//! What `minerva-ctl top` shows of guests' disks: the page of `disk top`, of every server that listens.

use super::{Link, config_of, top};
use crate::place::OperatorFile;
use anyhow::Context;
use minerva_linux_actuate::server_names;
use minerva_model::{ControlRequest, ServerReport};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tokio::sync::watch;

/// Who looks at all of them does not wait for one that hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// The servers, and what each told last.
#[derive(Default)]
pub(crate) struct ServedPages(Vec<(Link, Option<ServerReport>)>);

impl ServedPages {
    /// Those that listen now.
    pub(crate) fn find(file: &OperatorFile) -> Self {
        let Ok(config) = config_of(file) else { return Self::default() };
        let links = server_names(&config.daemon.runtime_dir).into_iter().map(|name| Link::find(file, &name));
        Self(links.filter_map(|link| Some((Link { patience: PATIENCE, ..link.ok()? }, None))).collect())
    }

    /// A page of each server that serves disks; what is in the way of one is said in its place. Empty where there is none.
    pub(crate) fn text(&mut self) -> String {
        let page = |(link, before): &mut (Link, Option<ServerReport>)| match link.ask(&ControlRequest::List, None) {
            Ok(report) => {
                let page = top::page(before.as_ref(), &report);
                *before = Some(report);
                page
            }
            Err(error) => format!("{}: {error:#}\n", link.name),
        };
        self.0.iter_mut().map(page).collect::<Vec<_>>().join("\n")
    }

    /// Asked in a thread of its own from now on, so that servers that hang hold up neither drawing nor keys.
    pub(crate) fn aside(mut self) -> anyhow::Result<ServedAside> {
        // One that is wanted while they are asked is the next.
        let (wanted, is_wanted) = sync_channel(1);
        let (tell, told) = watch::channel("asking the servers of guests' disks\n".to_owned());
        let ask = move || {
            while is_wanted.recv().is_ok() {
                if tell.send(self.text()).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("served".to_owned()).spawn(ask).context("failed to start a thread")?;
        Ok(ServedAside { wanted, told })
    }
}

/// The pages as they were told last.
pub(crate) struct ServedAside {
    wanted: SyncSender<()>,
    told: watch::Receiver<String>,
}

impl ServedAside {
    /// Asks for the pages anew.
    pub(crate) fn want(&self) {
        // One that is wanted already is enough.
        let _ = self.wanted.try_send(());
    }

    /// Waits until they were told.
    pub(crate) async fn changed(&mut self) {
        if self.told.changed().await.is_err() {
            // The thread has ended, which it does with the program.
            std::future::pending().await
        }
    }

    pub(crate) fn text(&self) -> String {
        self.told.borrow().clone()
    }
}
