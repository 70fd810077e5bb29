//! A worker's part, spoken to the daemon as any tenant does: through the client library, from the worker's own cgroup.

use minerva_client::blocking::Client;
use minerva_client::{Access as OperationAccess, Address, Error, Level as ClientLevel, Operation, Options};
use minerva_lab::error::LabError;
use minerva_lab::workload::{Access, Part, TakesPart, WorkloadSpec};
use minerva_model::{Level, Nanos};
use std::time::Duration;

/// Asks, waits until the work may begin, and gives back what is to be done at its end.
pub(crate) fn begin(spec: &WorkloadSpec, takes: &TakesPart) -> Result<Box<dyn FnOnce()>, LabError> {
    let failed = |error: Error| LabError::Worker {
        tenant: spec.tenant.clone(),
        message: format!("{:#}", anyhow::Error::new(error)),
    };
    let address = Some(Address::Unix(takes.socket.clone()));
    let options = Options { address, ..Options::from_environment().map_err(failed)? };
    let client = Client::with_options(options).map_err(failed)?;
    if let Some(absence) = client.absence() {
        return Err(LabError::Worker { tenant: spec.tenant.clone(), message: absence.to_owned() });
    }
    match takes.part {
        Part::StepsBack(level) => {
            let held = client.hold_level(level_of(level)).map_err(failed)?;
            Ok(Box::new(move || drop(held)))
        }
        Part::BeginsWithin(within) => coordinate(&client, operation(spec).begin_within(span(within))).map_err(failed),
        Part::DoneWithin(within) => coordinate(&client, operation(spec).done_within(span(within))).map_err(failed),
    }
}

fn coordinate(client: &Client, operation: Operation) -> Result<Box<dyn FnOnce()>, Error> {
    let mut coordinated = client.coordinate(operation)?;
    coordinated.wait();
    // The daemon notices the end by itself when it is not told.
    Ok(Box::new(move || drop(coordinated.finish())))
}

fn operation(spec: &WorkloadSpec) -> Operation {
    let access = match spec.access {
        Access::SequentialRead => OperationAccess::SequentialRead,
        Access::SequentialWrite | Access::Commit | Access::BufferedWrite | Access::WriteAndSync => {
            OperationAccess::SequentialWrite
        }
        Access::RandomRead => OperationAccess::RandomRead,
        Access::RandomWrite => OperationAccess::RandomWrite,
    };
    Operation { access, ..Operation::of_bytes(spec.bytes.unwrap_or(spec.region_bytes)) }
}

fn span(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}

const fn level_of(level: Level) -> ClientLevel {
    match level {
        Level::Normal => ClientLevel::Normal,
        Level::Low => ClientLevel::Low,
        Level::Lowest => ClientLevel::Lowest,
        Level::Idle => ClientLevel::Idle,
    }
}
