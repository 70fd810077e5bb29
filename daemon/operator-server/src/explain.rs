//! Answers why a tenant has its shares: from the audit table, or from the loop itself when the store does not work.

use minerva_api::v1;
use minerva_store::AuditRow;
use minerva_store_thread::Questions;
use tonic::Status;

/// `status` is how things stand now: it turns an id or a path into the name under which decisions are kept.
pub(crate) async fn explain(
    questions: &Questions,
    request: v1::ExplainRequest,
    status: v1::StatusResponse,
) -> Result<v1::ExplainResponse, Status> {
    let slice = status.slice.unwrap_or_default();
    let tenant = find(&slice, &request.tenant);
    // A tenant that has gone is known to the store by its name only.
    let name = tenant.map_or(request.tenant.as_str(), |tenant| &tenant.name);
    let at_unix_ms = request.at_unix_ns.map(|nanoseconds| nanoseconds.div_euclid(1_000_000));
    let asked = name.to_owned();
    match questions.look(move |store| store.explain(&asked, at_unix_ms)).await {
        Ok(rows) if rows.is_empty() && tenant.is_none() => {
            Err(Status::not_found(format!("no tenant has the name, id or cgroup path '{}'", request.tenant)))
        }
        Ok(rows) => {
            let wanted = |row: &AuditRow| tenant.is_none_or(|tenant| row.cgroup_path == tenant.cgroup);
            Ok(v1::ExplainResponse { explanations: rows.into_iter().filter(wanted).map(explanation).collect() })
        }
        Err(message) => match tenant {
            Some(tenant) if request.at_unix_ns.is_none() => Ok(from_loop(slice.unix_ns, tenant)),
            _ => Err(Status::unavailable(message)),
        },
    }
}

/// By id, cgroup path or name, in this order: the first two are unique.
pub fn find<'a>(slice: &'a v1::Slice, tenant: &str) -> Option<&'a v1::Tenant> {
    let by = |same: fn(&v1::Tenant, &str) -> bool| slice.tenants.iter().find(|known| same(known, tenant));
    by(|known, text| known.id == text)
        .or_else(|| by(|known, text| known.cgroup == text.trim_start_matches('/')))
        .or_else(|| by(|known, text| known.name == text))
}

fn explanation(row: AuditRow) -> v1::Explanation {
    let factor = |factor: &minerva_model::Factor| v1::Factor {
        policy: factor.policy.as_str().to_owned(),
        value: factor.value,
        reason: factor.reason.to_string(),
    };
    v1::Explanation {
        unix_ns: row.at_unix_ms.saturating_mul(1_000_000),
        tenant: row.tenant_name,
        device: row.decision.device.to_string(),
        share: row.decision.share.get(),
        text: row.text,
        factors: row.decision.factors.iter().map(factor).collect(),
    }
}

/// What the loop itself holds: the line, without the single factors.
fn from_loop(unix_ns: i64, tenant: &v1::Tenant) -> v1::ExplainResponse {
    let explanations = tenant.uses.iter().filter_map(|used| {
        Some(v1::Explanation {
            unix_ns,
            tenant: tenant.name.clone(),
            device: used.device.clone(),
            share: used.share?,
            text: used.why.clone(),
            factors: Vec::new(),
        })
    });
    v1::ExplainResponse { explanations: explanations.collect() }
}
