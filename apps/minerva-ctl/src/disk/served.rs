//! What `minerva-ctl top` shows of guests' disks: the page of `disk top`, of every server that listens.

use super::{Link, config_of, top};
use crate::place::OperatorFile;
use minerva_linux_actuate::server_names;
use minerva_model::{ControlRequest, ServerReport};

/// The servers, and what each told last.
#[derive(Default)]
pub(crate) struct ServedPages(Vec<(Link, Option<ServerReport>)>);

impl ServedPages {
    /// Those that listen now.
    pub(crate) fn find(file: &OperatorFile) -> Self {
        let Ok(config) = config_of(file) else { return Self::default() };
        let links = server_names(&config.daemon.runtime_dir).into_iter().map(|name| Link::find(file, &name));
        Self(links.filter_map(|link| Some((link.ok()?, None))).collect())
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
}
