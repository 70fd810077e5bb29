//! What a tenant takes part in, as it and the operator see it. Made only when somebody looks.

use crate::clock::boottime;
use crate::operator::status::mode;
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_model::{Level, Nanos, RefusalKind, TenantId};
use minerva_store::{LedgerRow, Span};
use minerva_tenant_server::decode::level_number;
use minerva_tenant_server::request::Refusal;

impl Driver {
    /// For the tenant itself. How it was identified is the listener's to say.
    pub(crate) fn describe(&self, tenant: TenantId) -> Result<v1::DescribeResponse, Refusal> {
        let (Some(part), Some(known)) = (self.engine.part(tenant), self.tenants.get(&tenant)) else {
            let message = format!("There is no tenant {tenant}.");
            return Err(Refusal::new(RefusalKind::UnknownTenant, message));
        };
        let claims = self.parts.claims.get(&tenant);
        let left = part.level_until.map(|until| until.since(boottime()));
        let spans = claims.and_then(|claims| claims.table()).map_or(&[][..], |table| &table.schedule().spans);
        Ok(v1::DescribeResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tenant: known.name.clone(),
            identified_by: String::new(),
            role: known.terms.role.as_str().to_owned(),
            mode: mode(self.engine.mode()).to_owned(),
            slice_ns: self.file.config.engine.observe.slice.0,
            level: level_number(part.level),
            level_left_ns: left.map(|left| left.0),
            held_micro_credits: part.held.0,
            boosts: part.boosts.into_iter().map(boost).collect(),
            operations: part
                .operations
                .into_iter()
                .map(|(id, operation, begun)| v1::OperationUnderWay {
                    request_id: id.0,
                    size_bytes: operation.bytes,
                    begun,
                })
                .collect(),
            schedule: spans.iter().map(schedule_entry).collect(),
        })
    }

    /// For the operator; nothing while the tenant asks for nothing and holds no credits. A report counts against
    /// `report_bytes_left`, and is left out beyond.
    pub(crate) fn part(&self, tenant: TenantId, report_bytes_left: &mut usize) -> Option<v1::Part> {
        let part = self.engine.part(tenant)?;
        let report = self.parts.reports.get(boottime(), tenant, *report_bytes_left);
        let (report, age) = report.map_or((None, Nanos::ZERO), |(report, age, bytes)| {
            *report_bytes_left -= bytes;
            (Some(report), age)
        });
        let waiting = part.operations.iter().filter(|(.., begun)| !begun).count();
        let shown = v1::Part {
            level: if part.level == Level::Normal { String::new() } else { part.level.as_str().to_owned() },
            held_micro_credits: part.held.0,
            boosted_slices_left: part.boosts.iter().fold(0, |sum, boost| boost.slices_left.saturating_add(sum)),
            operations_waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
            operations_running: u32::try_from(part.operations.len() - waiting).unwrap_or(u32::MAX),
            report,
            report_age_ns: age.0,
        };
        (shown != v1::Part::default()).then_some(shown)
    }
}

fn boost(boost: minerva_model::Boost) -> v1::BoostUnderWay {
    v1::BoostUnderWay {
        request_id: boost.request.0,
        slices_left: boost.slices_left,
        device: boost.device.map(|device| device.to_string()).unwrap_or_default(),
    }
}

fn schedule_entry(span: &Span) -> v1::ScheduleEntry {
    v1::ScheduleEntry {
        begin_minute: span.begin_minute.into(),
        end_minute: span.end_minute.into(),
        days: span.days.into(),
        level: level_number(span.level),
    }
}

/// An entry of the ledger, for the tenant.
pub(crate) fn entry(row: LedgerRow) -> v1::CreditEntry {
    v1::CreditEntry {
        unix_ns: row.at_unix_ms.saturating_mul(1_000_000),
        kind: row.kind.as_str().to_owned(),
        micro_credits: row.amount.0,
        request_id: row.request.map(|id| id.0).unwrap_or_default(),
    }
}
