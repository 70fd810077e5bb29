//! One model for the whole host, over the rows of all tenants.

mod learner;
mod reservoir;
mod ridge;

pub use learner::{Answer, Learner, LearnerSettings};
pub use reservoir::Reservoir;
pub use ridge::Ridge;
