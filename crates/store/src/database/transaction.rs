//! A transaction of either backend, and how its COMMIT is proved.

use sqlx::{Postgres, Sqlite, Transaction};

use super::postgres::{self, Settlement};
use crate::error::is_lost;

/// A transaction; dropped, it is rolled back.
#[derive(Debug)]
pub(crate) struct Tx {
    open: Open,
    /// How to find out what became of a COMMIT whose answer was lost.
    settlement: Option<Settlement>,
}

#[derive(Debug)]
pub(super) enum Open {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Tx {
    pub(super) fn sqlite(tx: Transaction<'static, Sqlite>) -> Self {
        Self { open: Open::Sqlite(tx), settlement: None }
    }

    pub(super) fn postgres(tx: Transaction<'static, Postgres>, settlement: Option<Settlement>) -> Self {
        Self { open: Open::Postgres(tx), settlement }
    }

    pub(super) fn open(&mut self) -> &mut Open {
        &mut self.open
    }

    /// Commits. `Ok` means that everything is written and an error that nothing is, also when the connection was lost
    /// after the COMMIT was sent: then the server is asked what became of the transaction.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self.open {
            Open::Sqlite(tx) => tx.commit().await,
            Open::Postgres(tx) => match (tx.commit().await, self.settlement) {
                (Err(error), Some(settlement)) if is_lost(&error) => postgres::settle(settlement, error).await,
                (result, _) => result,
            },
        }
    }
}
