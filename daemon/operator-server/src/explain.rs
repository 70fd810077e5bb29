//! Answers why a tenant has its shares: from the audit table, or from the loop itself when the store does not work.

use minerva_api::v1;
use minerva_store::{AuditRow, Store, StoreError};
use minerva_store_thread::Questions;
use tonic::Status;

/// `status` is how things stand now: it turns an id or a path into the name under which decisions are kept.
pub(crate) async fn explain(
    questions: &Questions,
    request: v1::ExplainRequest,
    status: &v1::StatusResponse,
) -> Result<v1::ExplainResponse, Status> {
    let slice = status.slice.as_ref();
    let tenant = slice.and_then(|slice| find(slice, &request.tenant));
    // A tenant that has gone is known to the store by its name only.
    let name = tenant.map_or(request.tenant.as_str(), |tenant| &tenant.name);
    let asked = Asked {
        name: name.to_owned(),
        cgroup: tenant.map(|tenant| tenant.cgroup.clone()),
        is_by_name: request.tenant == name,
        at_unix_ms: request.at_unix_ns.map(|nanoseconds| nanoseconds.div_euclid(1_000_000)),
    };
    match questions.look(move |store| asked.rows(store)).await {
        Ok(rows) if rows.is_empty() && tenant.is_none() => {
            Err(Status::not_found(format!("no tenant has the name, id or cgroup path '{}'", request.tenant)))
        }
        Ok(rows) => {
            let present = tenant.map(|tenant| tenant.cgroup.as_str());
            let explanations = rows.into_iter().map(|row| explanation(row, present)).collect();
            Ok(v1::ExplainResponse { explanations })
        }
        Err(message) => match slice.zip(tenant) {
            Some((slice, tenant)) if request.at_unix_ns.is_none() => Ok(from_loop(slice.unix_ns, tenant)),
            _ => Err(Status::unavailable(message)),
        },
    }
}

/// Whose decisions, and when.
struct Asked {
    name: String,
    /// Where the tenant is now, if it is there.
    cgroup: Option<String>,
    is_by_name: bool,
    at_unix_ms: Option<i64>,
}

impl Asked {
    /// Those of the tenant that is there. Of an instant at which that had none, those of the one that had its name then: a virtual machine
    /// is in another cgroup after each start.
    fn rows(&self, store: &Store) -> Result<Vec<AuditRow>, StoreError> {
        let of_present = self.cgroup.as_deref().map(|cgroup| store.explain(&self.name, Some(cgroup), self.at_unix_ms));
        match of_present.transpose()? {
            Some(rows) if !rows.is_empty() || self.at_unix_ms.is_none() || !self.is_by_name => Ok(rows),
            _ => store.explain(&self.name, None, self.at_unix_ms),
        }
    }
}

/// By id, cgroup path or name, in this order: the first two are unique.
pub fn find<'a>(slice: &'a v1::Slice, tenant: &str) -> Option<&'a v1::Tenant> {
    let by = |same: fn(&v1::Tenant, &str) -> bool| slice.tenants.iter().find(|known| same(known, tenant));
    by(|known, text| known.id == text)
        .or_else(|| by(|known, text| known.cgroup == text.trim_start_matches('/')))
        .or_else(|| by(|known, text| known.name == text))
}

fn explanation(row: AuditRow, present: Option<&str>) -> v1::Explanation {
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
        cgroup: if present == Some(row.cgroup_path.as_str()) { String::new() } else { row.cgroup_path },
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
            cgroup: String::new(),
        })
    });
    v1::ExplainResponse { explanations: explanations.collect() }
}

#[cfg(test)]
mod tests {
    use super::{Asked, explanation};
    use minerva_model::{Decision, DeviceId, Share, TenantId};
    use minerva_store::{AuditRow, Store};

    fn row(cgroup: &str, at_unix_ms: i64, share: u32) -> AuditRow {
        let device = DeviceId { major: 8, minor: 0 };
        AuditRow {
            at_unix_ms,
            tenant_name: "web".to_owned(),
            cgroup_path: cgroup.to_owned(),
            account: String::new(),
            device_name: "sda".to_owned(),
            decision: Decision { tenant: TenantId(1), device, share: Share::new(share), factors: Vec::new() },
            text: "decided".to_owned(),
        }
    }

    #[test]
    fn what_was_decided_before_a_machine_was_started_again_is_found_and_said_to_be_of_another_cgroup() {
        let folder = tempfile::tempdir().expect("a directory");
        let (mut store, _) = Store::open(&folder.path().join("db"), "boot", Box::new(|| 0)).expect("a store");
        store.audit(&[row("machine-1", 1_000, 10), row("machine-2", 5_000, 20)]).expect("written");
        let told = |cgroup: Option<&str>, is_by_name, at_unix_ms| -> Vec<(u32, String)> {
            let cgroup = cgroup.map(str::to_owned);
            let asked = Asked { name: "web".to_owned(), cgroup, is_by_name, at_unix_ms };
            let rows = asked.rows(&store).expect("read").into_iter();
            let told = rows.map(|row| explanation(row, asked.cgroup.as_deref()));
            told.map(|told| (told.share, told.cgroup)).collect()
        };
        let now = Some("machine-2");
        assert_eq!(told(now, true, None), [(20, String::new())]);
        assert_eq!(told(now, true, Some(6_000)), [(20, String::new())]);
        assert_eq!(told(now, true, Some(2_000)), [(10, "machine-1".to_owned())]);
        assert_eq!(told(now, true, Some(500)), []);
        // Of the other, which is there as well, also where the latest of the name is not its own.
        assert_eq!(told(Some("machine-1"), true, None), [(10, String::new())]);
        assert_eq!(told(now, false, Some(2_000)), [], "who names a cgroup or an id means that one");
        // A third was started a moment ago: nothing was decided about it yet.
        assert_eq!(told(Some("machine-3"), true, None), []);
        assert_eq!(told(None, true, None), [(20, "machine-2".to_owned())], "it is gone");
    }
}
