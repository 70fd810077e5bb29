//! Transactions: each method's own, or one around several of them.

use crate::Store;
use crate::error::StoreError;
use rusqlite::Connection;

impl Store {
    /// Stores all that `write` does in one transaction, so with one sync: all of it, or on an error nothing.
    pub fn together<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.execute("BEGIN")?;
        let done = write(self).and_then(|done| self.execute("COMMIT").map(|()| done));
        match &done {
            Ok(_) => self.commits.set(self.commits.get() + 1),
            // SQLite ends some transactions that fail by itself. What cannot be taken back is not committed either.
            Err(_) if !self.connection.is_autocommit() => drop(self.execute("ROLLBACK")),
            Err(_) => {}
        }
        done
    }

    /// Transactions that were committed since this was last asked: none of them took more than one sync.
    pub fn take_commits(&self) -> u64 {
        self.commits.take()
    }

    /// What `write` does is a transaction, or part of the one that is under way.
    pub(crate) fn transact<T>(&self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let written = if self.connection.is_autocommit() {
            self.connection.unchecked_transaction().and_then(|transaction| {
                let done = write(&transaction)?;
                transaction.commit()?;
                self.commits.set(self.commits.get() + 1);
                Ok(done)
            })
        } else {
            write(&self.connection)
        };
        written.map_err(|error| self.failed("write to", error))
    }

    fn execute(&self, statement: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(statement).map_err(|error| self.failed("write to", error))
    }
}
