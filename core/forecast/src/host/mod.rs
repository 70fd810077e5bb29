//! One model for the whole host, over the rows of all tenants.

mod growth;
mod kept;
mod learner;
mod reservoir;
mod ridge;

pub use growth::Growth;
pub use learner::{Answer, Learner, LearnerSettings};
pub use reservoir::Reservoir;
pub use ridge::Ridge;
