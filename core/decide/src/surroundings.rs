//! What coordination asks of those who see all of a disk.

use minerva_model::{DeviceId, Nanos, Operation, TenantId};

/// What the coordinator must know of a disk and cannot see.
pub(crate) trait Surroundings {
    /// Tenants that use the disk and neither stepped back nor coordinate.
    fn competitors(&self, device: DeviceId) -> u32;
    /// It is known who uses the disk. After a start that takes a while.
    fn is_watched(&self, device: DeviceId) -> bool;
    /// Somebody else uses the disk and did not step back.
    fn is_shared(&self, device: DeviceId, tenant: TenantId) -> bool;
    /// Who answers for the tenant's precedence.
    fn account(&self, tenant: TenantId) -> &str;
    /// How long the operation will take if it begins now.
    fn estimate(&self, tenant: TenantId, operation: &Operation) -> Nanos;
    /// The factor of the tenant's place among the groups now.
    fn history_factor(&self, tenant: TenantId, device: DeviceId) -> f64;
    /// The disk's bandwidth was measured, so that a number of slices can be promised.
    fn is_measured(&self, operation: &Operation) -> bool;
}
