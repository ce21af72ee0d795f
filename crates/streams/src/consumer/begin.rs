//! Where a consumer stands: its cursor, made where there is none, the table that it is one in, and the tables it writes.

use std::num::NonZeroUsize;

use pintail_core::diagnostic::nearest;
use pintail_core::id::TableId;
use pintail_engine::lake;

use super::outcome::PassError;
use super::pass::Consumer;
use super::source::{Source, table_of};
use super::tables;
use crate::commit::begin_at;
use crate::dead_letter;
use crate::position::{self, Position};

impl Consumer<'_> {
    /// Returns the cursor's row, after making it for a consumer that has never begun; `None` while there is no source.
    pub(super) fn position(&mut self) -> Result<Option<Position>, PassError> {
        if let Some(position) = position::read(self.writer, &self.spec.cursor())? {
            return Ok(Some(position));
        }
        let Source { schema, table } = &self.spec.source;
        let tables = lake::live_tables(self.writer.session(), self.writer.alias())?;
        let is_source =
            |live: &&lake::LiveTable| live.schema.eq_ignore_ascii_case(schema) && live.name.eq_ignore_ascii_case(table);
        let Some(live) = tables.iter().find(is_source) else { return Ok(None) };
        let start = self.start_of(self.spec.start, live)?;
        let text = self.spec.source_text(&self.writer.lake().name, live.id);
        // The guard may know a cursor of this name from before: it must not vouch for what this one has not read.
        self.set_progress(start)?;
        let position = begin_at(self.writer, &self.by(), &self.spec.cursor(), &start.to_string(), &text)?;
        Ok(Some(position))
    }

    /// Returns the table whose name is nearest to the source's, for people.
    pub(super) fn near_source(&self) -> Result<Option<String>, PassError> {
        let Source { schema, table } = &self.spec.source;
        let tables = lake::live_tables(self.writer.session(), self.writer.alias())?;
        let names =
            tables.iter().filter(|live| live.schema.eq_ignore_ascii_case(schema)).map(|live| live.name.as_str());
        Ok(nearest(table, names).map(str::to_owned))
    }

    /// Returns the table that the cursor is one in; refuses a cursor in another source or of another part of it.
    pub(super) fn source_of(&self, position: &Position) -> Result<TableId, PassError> {
        let table = table_of(&position.source);
        let is = table.map(|table| self.spec.source_text(&self.writer.lake().name, table));
        match table.filter(|_| is.as_deref() == Some(&position.source)) {
            Some(table) => Ok(table),
            None => Err(PassError::OtherSource {
                consumer: self.spec.name.clone(),
                was: position.source.clone(),
                is: is.unwrap_or_else(|| self.asset()),
            }),
        }
    }

    /// Makes the decoder's tables, once.
    pub(super) fn prepare(&mut self) -> Result<(), PassError> {
        if self.targets.is_none() {
            dead_letter::prepare(self.writer)?;
            self.targets = Some(tables::prepare(self.writer, self.decoder, &self.spec)?);
        }
        Ok(())
    }

    pub(super) fn threads(&self) -> NonZeroUsize {
        let machine = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.spec.threads.unwrap_or_else(machine)
    }

    /// Refuses a source without the columns that are read of it; `time` is the column that a range of time is of.
    pub(super) fn check_source(&self, time: Option<&str>) -> Result<(), PassError> {
        let Source { schema, table } = &self.spec.source;
        let refused = |what: String| PassError::SourceShape { asset: self.asset(), what };
        let facts = lake::table_facts(self.writer.session(), self.writer.alias(), schema, table)?;
        let Some(facts) = facts else { return Err(refused("is gone".to_owned())) };
        if facts.is_view {
            return Err(refused("is a view; a view has no change feed".to_owned()));
        }
        let reads = format!("which the decoder `{}` reads", self.decoder.name());
        let read = self.decoder.reads().into_iter().map(|column| (column, reads.as_str()));
        let shard = self.spec.shard.iter().map(|shard| (shard.by.clone(), "by which the shards share its rows"));
        let time = time.iter().map(|column| ((*column).to_owned(), "which `time_column` names"));
        for (wanted, why) in read.chain(shard).chain(time) {
            if facts.schema.column(&wanted).is_none() {
                let names = facts.schema.columns.iter().map(|column| column.name.as_str());
                let near = nearest(&wanted, names).map(|near| format!("; there is `{near}`")).unwrap_or_default();
                return Err(refused(format!("has no column `{wanted}`, {why}{near}")));
            }
        }
        Ok(())
    }

    /// Returns the rows of `relation`, a FROM item with its WHERE, that are this shard's.
    pub(super) fn of_shard(&self, relation: &str) -> String {
        match &self.spec.shard {
            None => relation.to_owned(),
            Some(shard) => format!("{relation} AND {}", shard.condition()),
        }
    }

    pub(super) fn asset(&self) -> String {
        self.spec.source.asset(&self.writer.lake().name)
    }

    pub(super) fn by(&self) -> String {
        format!("consumer {}", self.spec.full_name())
    }
}
