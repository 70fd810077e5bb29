//! Background work on the real kernel.
//!
//! | file | what |
//! |---|---|
//! | `delete` | a file or a directory with all in it, entry by entry, never through a link or into a mount |
//! | `pace` | work for a part of the time only |

mod delete;
mod pace;

pub use delete::{DeleteError, Deletion, Left, Removed};
pub use pace::Pace;
